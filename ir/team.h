// Teams: threads that share the reduction of each index of a kernel, as the kernel's field `team` says.
//
//   segmap(thread) (i < m) team(32) {
//     let {xs : [n]f32} = A[i]
//     let {s : f32} = redomap(k < n, {xs}, f, op, ne)
//     return {returns s}
//   }
//
// Scans are shared in the same way. It never changes what the kernel means. Code for GPUs gives index i to so many
// threads of one block, a segment of a warp or several warps: neighbours take neighbouring elements, then what they
// have is folded by shuffles and, between warps, in shared memory. All else in the body is done by each of them. The
// number is known when the kernel starts. A scan is shared by a warp at most.
//
//   segmap(thread) (i < m) team(256) blocks(40) {
//
// Several blocks of threads share each index: each has neighbouring elements, and what each gives is folded by the last
// of them to end, in order; it alone does what comes behind the reduction. Then a team is all of a block. A scan over
// all elements of one index is shared in the same way: a block scans a tile, starting with what the tiles before it
// give, which it learns from those that are done (decoupled look-back, Merrill and Garland 2016). With one block a
// reduction is as without, and a scan is one tile of a block, not a team's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ir/module.h"

namespace apl {

// Threads of a team, and of each block of a kernel that has teams.
constexpr std::int64_t kMostTeam = 256;

// The reduction that a team shares: the only one directly in the body that goes over a width. Null if there is none.
const Stm* team_reduction(const SegOp& kernel);

// The elements of each row of a kernel whose team holds rows.
const Poly& row_width(const SegOp& kernel);

// The scatter behind a scan that several blocks share: each thread writes where its elements' rows say. Null if there
// is none.
const Stm* team_scatter(const SegOp& kernel);
// Which row of the scan a scalar result of such a kernel is the last element of, or the neutral element under a
// condition that stands in its statement; nullopt: it is none's.
std::optional<std::size_t> last_of_row(const SegOp& kernel, const Operand& result);

// Words of 32 bits in which blocks publish what the operators of a scan give: one for each 4 bytes of a value.
std::int64_t look_back_words(const Screma& scan, const ValueTable& values);
constexpr std::int64_t kMostLookBackWords = 8;
// Whether all that the scan does is to add 1 or 0 for each element, to one count or to several.
bool counts_flags(const Screma& scan, const ValueTable& values);
// Neighbouring elements that a thread reads at once where they are contiguous and aligned.
constexpr std::int64_t kNeighboursAtOnce = 4;
// How often a thread of a scan of rows does so; and how often one of a scan that looks back, whose tiles have so many
// for each thread of a block at most: the more a tile has, the fewer wait for each other, as far as registers reach.
std::int64_t scan_rounds(const Screma& scan, const ValueTable& values);
std::int64_t tile_rounds(const Screma& scan, const ValueTable& values);
std::int64_t scan_tile(const Screma& scan, const ValueTable& values);

// Whether the operators of a reduction commute, so that it may take elements in any order.
bool folds_in_any_order(const Screma& reduction);

// Elements of a row that each thread of a team holds in registers where the team holds rows. A row has at most so many
// for each thread, or the program ends with an error before the kernel.
constexpr std::int64_t kRowElements = 16;

// Why the kernel cannot have a team: a sentence; nothing if it can. That is so where
//   - the level is `thread`, the space has dims, the results are scalars, or rows of a scan,
//   - one reduction or scan stands directly in the body, with one width and operators on scalars that cannot fail,
//   - all else in the body cannot fail and makes no arrays, only views; it cannot stray (ir/stray.h) either, if what is
//     reduced can fail.
// What is reduced may fail. Where several blocks share a scan, the space has one index, the results are rows of the
// scan and what it scans takes at most kMostLookBackWords. Then one scatter may stand behind the scan, over the same
// width and into arrays that the body makes, whose function cannot fail, has no loops and knows of the scan what its
// rows have at the same index; results may be what it makes, and the last element of a row, if there is one:
//
//   segmap(thread) (c < 1) team(256) blocks(40) {
//     let {places : [n]i64} = screma(i < n, {xs}, f, scan add 0)
//     let {room : [n]f32} = scratch([n]f32)
//     let {ys : [n]f32} = scatter(i < n, {places, xs}, \{at, x} -> {at - 1, x}, {room} at 1)
//     let {count : i64} = if 0 < n { places[n - 1] } else { 0 }
//     return {returns count, returns ys}
//   }
//
// A team that holds rows shares all maps, reductions and scans
// of its kernel:
//
//   segmap(thread) (i < m) team(32) rows {
//     let {xs : [n]f32} = A[i]
//     let {s : f32} = redomap(k < n, {xs}, f, op, ne)
//     let {ys : [n]f32} = map(k < n, {xs}, g)
//     return {returns ys}
//   }
//
// There
//   - one or more of them stand directly in the body, all over one width that the host knows, on scalars, without
//     loops in their functions,
//   - rows that they make are streamed into others of them, or returned, and used by nothing else,
//   - nothing can fail, and there are no other arrays but views.
std::optional<std::string> team_fault(const SegOp& kernel, const ValueTable& values);

}  // namespace apl
