// Checks of a map nest that can be made before it.
#pragma once

#include <optional>
#include <vector>

#include "ir/module.h"

namespace apl {

struct Unchecked {
  std::vector<Stm> before;  // what the condition is computed by, on the host
  Operand condition;        // true: no check of those that `map` lacks would fail
  Stm map;                  // the nest without them, with values of its own
  bool contracts;           // it is a contraction; else it copies rows
};

// A map nest whose checks keep it from being a contraction, or its rows from being copied by threads of their own,
// without them; nullopt if they do not. Where the condition does not hold the nest as it is must run: it may fail, or
// not.
std::optional<Unchecked> without_checks(const Stm& map, ValueTable& values);

}  // namespace apl
