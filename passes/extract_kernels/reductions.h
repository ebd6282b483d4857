// Reductions in parallel, at the top of a function or inside maps.
#pragma once

#include <vector>

#include "passes/extract_kernels/chunks.h"

namespace apl {

// Operators on scalars that all reduce, and no mapped rows.
bool reduces_scalars(const Screma& screma, const ValueTable& values);

// Whether a reduction in a map with these indices reads windows that overlap, as xs[i + k] for indices i of the map and
// k of the reduction.
bool reads_windows(const Screma& reduction, const std::vector<Value>& indices);

// The statements of a reduction, the last of which bind the pattern of `stm`: a scalar a segment.
std::vector<Stm> make_chunked_reduction(const Stm& stm, const Segments& segments, const Chunks& chunks,
                                        ValueTable& values);

}  // namespace apl
