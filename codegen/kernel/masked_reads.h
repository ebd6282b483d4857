// Loops that gcc must not make vectors of.
//
// gcc makes a loop with branches a vector loop by reading what a branch reads under a mask. Where such reads of one
// array are neighbours, as the elements of a row of two, they become one masked read of whole rows, and versions of gcc
// (12.2 is one) get its mask or the order of its elements wrong:
//
//   for (i = 0; i < n + m; ++i)
//     for (j = 0; j < 2; ++j)                                 // unrolled
//       if (i < n) out[2 * i + j] = xs[2 * i + j]; else out[2 * i + j] = ys[2 * i + j - 2 * n];
//
// Neighbours that one round reads are less than a step of the loop apart. So a read whose position does not move, or
// moves by one element, has none, and its loop may become vectors. A read that moves by more could be no right vector
// either, so that nothing is lost where its loop stays scalar.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include <cstdint>
#include <map>
#include <string>

#include "codegen/kernel/kernel_language.h"

namespace apl::kernel {

// Variables that are constants of known values.
using Numbers = std::map<std::string, std::int64_t>;

// Whether a branch in the loop's body reads an array at a position that a round of the loop moves by other than -1, 0
// or 1 elements. Short loops of known counts in the body count as unrolled. A loop with other loops in it never becomes
// vectors with masks, nor does one that can fail.
bool reads_rows_in_branches(const Stmt& loop, const Numbers& numbers);

}  // namespace apl::kernel
