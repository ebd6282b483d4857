// Rewriting what one operation reads, without its nested bodies: the step of a forward walk that carries its own
// environment (ir/walk.h's substitute() is for replacing values in a finished piece of IR, all the way down).
#pragma once

#include <functional>

#include "ir/op.h"

namespace apl {

struct UseMap {
  std::function<Operand(const Operand&)> operand;  // scalar positions, and arrays where a constant may stand
  std::function<Value(Value)> value;               // positions that need a value: arrays, accumulators
  std::function<Poly(const Poly&)> poly;           // sizes, indices, offsets
};

Op map_uses(const Op& op, const UseMap& map);
Type map_uses(const Type& type, const UseMap& map);

}  // namespace apl
