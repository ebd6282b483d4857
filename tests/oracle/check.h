// Programs of the generator on the interpreter and on compiled backends, against what the oracle says.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/oracle/generator.h"

namespace apl::oracle {

struct CheckOptions {
  std::vector<std::string> backends{"c", "emulate"};  // besides the interpreter
  std::vector<std::string> c_flags;                   // more flags for the C compiler
  int patience_s = 60;                                // a step of one program that takes longer hangs
};

enum class Verdict : char { agrees = 'a', unsupported = 'u', differs = 'f' };

struct Report {
  std::size_t number = 0;  // of the program
  Verdict verdict = Verdict::agrees;
  std::string where;    // the backend; or what is not supported
  std::string message;  // with the inputs; how many calls agreed
};

// One for each case, in their order; fewer if `stop` says so.
std::vector<Report> check(const std::vector<Case>& cases, const CheckOptions& options,
                          const std::function<bool()>& stop);

// The smallest case found that differs on the same backend. Tries for `seconds` at most.
Case shrink(const Case& all, const Report& report, const CheckOptions& options, int seconds,
            const std::function<bool()>& stop);

}  // namespace apl::oracle
