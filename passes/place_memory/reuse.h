// Fewer and smaller allocations: the second half of place-memory, over host code whose arrays have their blocks.
#pragma once

#include "ir/module.h"
#include "passes/pass.h"

namespace apl::memory {

// Blocks that are dead serve again, results are written over dead inputs or where they are yielded to, and loops
// allocate before they start. Each decision is a remark.
void reuse_blocks(Function& function, const PassContext& context);

}  // namespace apl::memory
