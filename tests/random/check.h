// Whether programs mean the same everywhere: on the interpreter as the front end gives them, after each pass that
// changes them, compiled by the C back end and in emulation; and whether the work of those that say so is linear. The
// work is done in a process of its own, so that a crash or an endless loop is a failure like others.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/batch/compiler.h"
#include "tests/random/generator.h"

namespace apl::random_tests {

struct CheckOptions {
  std::vector<std::string> backends{"c", "emulate"};  // besides the interpreter
  testing::CompilerOptions compiler;
  bool stages = true;          // whether the interpreter runs programs after each pass
  bool as_users = false;       // whether C has a kernel for each plan, as users' programs have
  std::int64_t threshold = 0;  // of versions that sizes choose between; 0: as usual
  int patience_s = 60;         // a step of one program that takes longer hangs
};

enum class Outcome : char { agrees = 'a', unsupported = 'u', fails = 'f' };

struct Report {
  std::size_t program = 0;  // its number
  Outcome outcome = Outcome::agrees;
  std::string where;    // what fails: "interpreter after fuse", "c"; or what is not supported
  std::string message;  // with the inputs; how many comparisons agreed
};

// One report for each program, in their order; fewer if `stop` says so.
std::vector<Report> check(const std::vector<Program>& programs, const CheckOptions& options,
                          const std::function<bool()>& stop);

// The smallest program found that fails in the same way. Tries for `seconds` at most.
Program shrink(const Program& program, const Report& report, const CheckOptions& options, int seconds,
               const std::function<bool()>& stop);

}  // namespace apl::random_tests
