// The rules of simplify, for passes that make much code at once.
#pragma once

#include "ir/module.h"

namespace apl {

// One round of simplify (passes/simplify.cpp): a walk over the body, then what nothing needs is dropped. True if
// something changed.
bool simplify_once(Function& function, const Module& module);

// Removes statements, results, inputs and loop parameters that nothing needs (passes/simplify/dead_code.cpp). True if
// something changed.
bool remove_dead_code(Function& function, const Module& module);

}  // namespace apl
