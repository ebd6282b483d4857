// The invariants of the IR, one function each in ir/verify/*.cpp.
#pragma once

#include <vector>

#include "ir/module.h"

namespace apl {

// Every broken invariant, in order; empty for a well-formed module of its stage. Code ir.invalid.
std::vector<Diagnostic> verify(const Module& module);

}  // namespace apl
