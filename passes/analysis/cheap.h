// What is cheaper to compute again than to keep.
#pragma once

#include "ir/module.h"

namespace apl {

// Only views and a few operations of plain scalar arithmetic, none of which can fail: such statements may run once for
// every index of an inner loop instead of once before it.
bool is_cheap(const Body& body, const ValueTable& values);

}  // namespace apl
