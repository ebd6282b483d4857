// Loops on CPUs over parts of an array, as concatenations and rotations are.
//
//   for (i < n + m)                                       for (i < n)
//     for (j < 2) {                                         out[i] = xs[i] over 2 * n flat positions
//       if (i < n) x = xs[2 * i + j];                =>   for (n <= i < n + m)
//       else x = ys[2 * i + j - 2 * n];                     out[i] = ys[i - 2 * n], flat, too
//       out[2 * i + j] = x;
//     }
//
// 1. A branch that compares a loop's variable with what the loop does not change splits the loop: each part knows the
//    answer, and copies as fast as memory allows.
// 2. Two loops are one where all positions go on from the last index of the inner one to the first of the next row.
// Short
//    rows are vectors then.
//
// Left alone: loops that may be left by a failed check, bodies that are long (they would be written several times),
// conditions on sums with the variable, which may wrap.
#pragma once

#include <functional>
#include <string>

#include "codegen/kernel/kernel_language.h"

namespace apl::kernel {

// The block with its loops split and joined. `fresh` gives a name that nothing in the file has, like the one given.
Block split_loops(Block block, const std::function<std::string(const std::string&)>& fresh);

}  // namespace apl::kernel
