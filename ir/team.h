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

// Whether the operators of a reduction commute, so that it may take elements in any order.
bool folds_in_any_order(const Screma& reduction);

// Why the kernel cannot have a team: a sentence; nothing if it can. That is so where
//   - the level is `thread`, the space has dims, the results are scalars, or rows of a scan,
//   - one reduction or scan stands directly in the body, with one width and operators on scalars that cannot fail,
//   - all else in the body cannot fail and makes no arrays, only views.
// What is reduced may fail.
std::optional<std::string> team_fault(const SegOp& kernel, const ValueTable& values);

}  // namespace apl
