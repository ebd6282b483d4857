// The kernels that are broken, and the mutants that compute the same all the same.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/testing.h"

namespace apl::mutants {

struct Case {
  std::string entry;
  std::string source;
  std::map<std::string, std::int64_t> plan;  // what is behind the entry's name
  std::vector<testing::Sizes> sizes;
  bool fast = true;       // has the mainloop
  std::string only = {};  // the kernel that is broken; empty: all of the entry
};
std::vector<Case> cases();

// A mutant that no input tells from its kernel, and why. `entries` are the cases, with blanks between; none stand for
// all. Without a number at its end, `what` stands for all of that text. `sometimes`: few orders of blocks tell it.
struct Equivalent {
  std::string entries, what, why;
  bool sometimes = false;
};
const std::vector<Equivalent>& equivalents();

}  // namespace apl::mutants
