// Reductions over sparse operands, and nests that make rows of them.
#pragma once

#include <set>

#include "ir/module.h"

namespace apl {

// The arrays of a function that an entry calls sparse, rows and views of them, and what is computed from them element
// by element, which may be sparse, too.
using SparseValues = std::set<Value>;

// Reductions inside of maps that read such an array are marked `#[sparse_sum]`: sparsify makes them sums over a row's
// non-zeros, which a thread does alone. One that makes a row as well is split first, so that the map which makes the
// row can run for all elements of the operand:
//
//   let {s : f32, e : [m]f32} = redomap(j < m, {row}, f, add, {0})
// =>
//   let {e : [m]f32} = map(j < m, {row}, f)
//   #[sparse_sum] let {s : f32} = reduce(j < m, {e}, add, {0})
//
// One over all rows and columns, which is in no map,
//
//   let {s : f32} = redomap(i < n, j < m, {A}, f, add, {0})
// =>
//   let {sums : [n]f32} = map(i < n, {A}, \{row : [m]f32} -> { #[sparse_sum] redomap(j < m, {row}, f, add, {0}) })
//   let {s : f32} = reduce(i < n, {sums}, add, {0})
//
// is one of the rows' reductions, unless absent elements would change these. A function without sparse operands is the
// same, and has no sparse arrays.
SparseValues keep_sparse_sums(Function& function);

// Whether one index of a map without inputs makes a row from a row of a sparse array. In one thread the row has all
// columns, and the operand is read as a dense matrix.
bool makes_sparse_rows(const Stm& flat, SparseValues arrays, const ValueTable& values);

}  // namespace apl
