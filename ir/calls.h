// Calls of functions: what may be called from where, and what stands for a call.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/module.h"

namespace apl {

// The function of that name, or null.
using FindFunction = std::function<const Function*(const std::string&)>;

// Whether the function, and all that it calls, knows no arrays: neither as parameters and results nor on the way. A
// kernel can call such a function.
bool is_scalar_function(const Function& function, const FindFunction& find);

// What takes the place of a call whose callee's body was copied to the statements before: `let` of each value of the
// call's pattern, sizes first. `body` is the copy, whose values `values` knows.
std::vector<Stm> bind_call(const Stm& call, const Function& callee, const Body& body, const ValueTable& values);

}  // namespace apl
