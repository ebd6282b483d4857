// Which threads of a reduction in segments should be neighbours.
#pragma once

#include <unordered_map>

#include "ir/module.h"
#include "passes/extract_kernels/chunks.h"

namespace apl {

// Statements of the host that make views, by what they bind.
using HostViews = std::unordered_map<Value, Stm>;
void note_view(const Stm& stm, HostViews& views);

// Whether the elements of neighbouring segments lie side by side in memory, and those of one segment apart, as far as
// the index functions of what the reduction `stm` reads are known.
bool segments_lie_side_by_side(const Stm& stm, const Segments& segments, const HostViews& views,
                               const ValueTable& values);

}  // namespace apl
