// Whether a contraction computes the same everywhere: the interpreter of the program as the front end gives it against
// the interpreter after tile-contraction, and against what each backend compiled, for every set of sizes, bit for bit.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/contractions/spec.h"

namespace apl::contraction_tests {

struct CheckOptions {
  std::vector<std::string> backends{"c", "emulate"};  // besides the interpreter
  std::string device;                                 // whose kernels they are, and what is emulated; "": the usual
  std::vector<std::string> c_flags;                   // more flags for the C compiler
  int plans = 1;                                      // kernels of a contraction, for numbers that are not given
  int patience_s = 60;                                // a step of one contraction that takes longer hangs
};

enum class Outcome : char { agrees = 'a', unsupported = 'u', fails = 'f' };

struct Report {
  std::size_t number = 0;
  Outcome outcome = Outcome::agrees;
  std::string where;    // what fails
  std::string message;  // with the inputs
  int tiled = 0;        // kernels; of them in the mainloop:
  int fast = 0;
  std::string refusals;  // codes
  int comparisons = 0;
};

// One report for each, in order; fewer if `stop` says so. Fills in plans and sizes that were not drawn before.
std::vector<Report> check(std::vector<Spec>& specs, const CheckOptions& options, const std::function<bool()>& stop);

// The smallest one found that fails in the same way. Tries for `seconds` at most.
Spec shrink(const Spec& spec, const Report& report, const CheckOptions& options, int seconds,
            const std::function<bool()>& stop);

// What repeats a failure by hand: the source, the tile parameters, the sizes.
std::string describe(const Spec& spec);

}  // namespace apl::contraction_tests
