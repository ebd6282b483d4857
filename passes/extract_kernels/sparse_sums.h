// Sums over sparse operands.
#pragma once

#include "ir/module.h"

namespace apl {

// Reductions inside of maps that read an operand that the entry calls sparse, or what may be sparse like it, are marked
// `#[sparse_sum]`: sparsify makes them sums over a row's non-zeros, which a thread does alone. One over all rows and
// columns, which is in no map,
//
//   let {s : f32} = redomap(i < n, j < m, {A}, f, add, {0})
// =>
//   let {sums : [n]f32} = map(i < n, {A}, \{row : [m]f32} -> { #[sparse_sum] redomap(j < m, {row}, f, add, {0}) })
//   let {s : f32} = reduce(i < n, {sums}, add, {0})
//
// is one of the rows' reductions, unless absent elements would change these. A function without sparse operands is the
// same.
BodyPtr keep_sparse_sums(Function& function);

}  // namespace apl
