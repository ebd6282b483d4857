// What is brought into one form before it is differentiated.
#pragma once

#include "ir/differentiate/activity.h"
#include "ir/walk.h"

namespace apl::differentiation {

// Sizes that a loop yields unchanged are what it starts with. Nothing that is read is consumed: updates and scatters
// write copies, which later passes remove again. For reverse mode also: operators fold arrays, with one width, that a
// map of its own has made; and scatters write such.
BodyPtr prepare(const BodyPtr& body, ValueTable& values, bool reverse);

}  // namespace apl::differentiation
