// Functions without places in the source, for modules that are made to evaluate a part of a program: places may name
// calls of the module's own table (ir/call_table.h), which such a module does not have.
#pragma once

#include <memory>
#include <utility>

#include "ir/walk.h"

namespace apl {

inline FunctionPtr without_places(const Function& function) {
  Function bare = function;
  Substitution none;
  bare.location = {};
  bare.body = copy_fresh(bare.body, none, bare.values, bare.values, [](const Location&) { return Location{}; });
  return std::make_shared<const Function>(std::move(bare));
}

}  // namespace apl
