// The contractions of T 5.3.2 with sizes like those of T 5.3.3 (whole tiles, partial ones in the reduction and
// everywhere, a long reduction, unit dims) and tile configurations drawn as in T 5.3.5, too large for the interpreter:
// results are checked by sums.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/contractions/spec.h"

namespace apl::contraction_tests {

struct ThesisOptions {
  std::vector<std::string> backends;
  std::uint64_t seed = 1, count = 300, batch = 50;
  bool small = false;
};

// Prints failures and a last line; true if there was no failure.
bool run_thesis(const ThesisOptions& options, const std::function<bool()>& stop);

// Results of more than 2^31 elements: a matrix product and one of rank 6.
bool run_huge(const ThesisOptions& options, const std::function<bool()>& stop);

}  // namespace apl::contraction_tests
