// The sizes that entries of programs under test are tried with.
#pragma once

#include <vector>

#include "ir/module.h"
#include "tests/testing.h"

namespace apl::testing {

struct Try {
  Sizes sizes;
  bool is_end = false;  // of what is tried: no dim between the smallest and the largest
};

// Every dim takes every value of 0, 1, primes and tile multiples while the others stay small; and all dims together.
std::vector<Try> size_sets(const Function& entry, bool large);

}  // namespace apl::testing
