// Sums in Einstein's notation, `ij,jk->ik`, as IR.
#pragma once

#include <string>

#include <apl/ir/module.h>

// An entry `einsum` with a matrix or tensor of f32 for each operand: indices that the result lacks are summed over.
// The error says what is wrong with the text.
apl::Result<apl::Module> einsum(const std::string& text);
