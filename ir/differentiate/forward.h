// Forward mode: tangents beside values.
#pragma once

#include "ir/differentiate/activity.h"
#include "ir/differentiate/partials.h"
#include "ir/walk.h"

namespace apl::differentiation {

// Appends to `b` what the op's function computes of its arguments, and its tangents; gives the operation's results.
std::vector<Operand> forward(Builder& b, const Derivative& op);

}  // namespace apl::differentiation
