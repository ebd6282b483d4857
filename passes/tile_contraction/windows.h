// Where a tiled kernel's tiles come from and lie, for explanations.
#pragma once

#include "passes/analysis/contraction_facts.h"

namespace apl::tile {

// Of each operand the window of the first tile's copy in memory and its tile in shared memory (T eq 16).
RemarkFacts window_facts(const SegOp& kernel, const Function& function);

}  // namespace apl::tile
