// How a run ends early: thrown inside the interpreter only, and made a Result at its border.
#pragma once

#include <string>
#include <utility>

#include "ir/diagnostic.h"

namespace apl::interpreter {

struct RunError {
  Diagnostic diagnostic;
};

// The location is filled in by the innermost statement that has one.
[[noreturn]] inline void fail(Code code, std::string message) {
  throw RunError{make_error(code, Location{}, std::move(message))};
}

}  // namespace apl::interpreter
