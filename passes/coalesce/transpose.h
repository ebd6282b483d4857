// A copy of an array in another order of its dims, as a kernel whose reads and writes both coalesce.
#pragma once

#include "ir/builder.h"

namespace apl::coalesce {

// Elements of a tile along the dim that becomes the fast one, and along the one that was: a warp writes 32 neighbours
// and reads as many. A thread has several, which share what finding the tile costs (measured on an H200: with one
// element each, indices took 80 % of the issue slots, and a transposition a quarter of the bandwidth).
constexpr std::int64_t kFast = 32;
constexpr std::int64_t kEach = 8;
constexpr std::int64_t kPartner = 8 * kEach;
// Of an array of three dims or more, a block takes so many such tiles, one beyond the other along a further dim; half
// as many of 64-bit elements, since shared memory is what limits the blocks of a multiprocessor then.
constexpr std::int64_t kTiles = 4;

// The array with dim `fast` moved to the end, dense in that order; in tiles through shared memory. In `partner`,
// another dim, its elements are neighbours now.
Value moved_to_end(Value array, std::size_t fast, std::size_t partner, Builder& host);

// The same for any order of the dims: the kernel whose result's dim k is dim order[k] of the array. The last is another
// than `partner`.
SegOp transposition(Value array, const std::vector<std::size_t>& order, std::size_t partner, Builder& host);

}  // namespace apl::coalesce
