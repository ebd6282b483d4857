// A copy of an array in another order of its dims, as a kernel whose reads and writes both coalesce.
#pragma once

#include "ir/builder.h"

namespace apl::coalesce {

// Threads of a tile along each of the two dims that are exchanged.
constexpr std::int64_t kTile = 16;

// The array with dim `fast` moved to the end, dense in that order; in tiles through shared memory. In `partner`,
// another dim, its elements are neighbours now.
Value moved_to_end(Value array, std::size_t fast, std::size_t partner, Builder& host);

// The same for any order of the dims: the kernel whose result's dim k is dim order[k] of the array. The last is another
// than `partner`.
SegOp transposition(Value array, const std::vector<std::size_t>& order, std::size_t partner, Builder& host);

}  // namespace apl::coalesce
