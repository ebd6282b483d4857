// What most passes do with a module.
#pragma once

#include <memory>
#include <utility>

#include "passes/pass.h"

namespace apl {

// Calls `change(Function&)` on a copy of each function, and puts the copy in its place where it returns true.
template <class ChangeFunction>
Change change_functions(Module& module, const ChangeFunction& change) {
  Change result = Change::no;
  for (FunctionPtr& pointer : module.functions) {
    Function function = *pointer;
    if (!change(function)) continue;
    pointer = std::make_shared<const Function>(std::move(function));
    result = Change::yes;
  }
  return result;
}

}  // namespace apl
