// Kernels over the non-zeros of a sparse argument that the runtime has better ones for (runtime/sparse), as their
// schedules (ir/sparse_schedule.h) and memory say.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "codegen/kernel/writer.h"
#include "codegen/lower/lower.h"
#include "ir/module.h"
#include "ir/sparse_schedule.h"

namespace apl::lower {

// Rows of `array`'s elements in memory: element [i][j] lies `offset + row * i + j` elements behind the block's start.
struct DenseRows {
  Value block;
  Poly offset, row;
};

// A number for each non-zero, side by side from element `offset` of the block on.
struct Nonzeros {
  Value block;
  Poly offset;
};

// C[rows][width] = after(A B); A's arrays are parameters of the function, but for the values. Without `j` B and C are
// vectors, and the width is 1.
struct SparseProduct {
  ScalarType type{};
  bool is_wide = false;  // C has the sums' type, f32, where A and B have 16 bits
  Value row_start, column;
  Nonzeros values;
  Poly rows, columns, nonzeros, width;
  DenseRows b, c;
  Value i;  // index of the rows
  std::optional<Value> j;
  // One product for each index of these, which A's values, B, C and what is done after the sum depend on.
  std::vector<SegDim> batches;
  SparseEpilogue epilogue;
};
// `why` (may be null): the condition that is not met, for people.
std::optional<SparseProduct> find_sparse_product(const Stm& kernel, const apl::Function& function,
                                                 std::string* why = nullptr);

// result[e] = after(values[e] * sum over k < depth of x[row e][k] y[column e][k]). If anything else is done with the
// sum, there are no values: the epilogue reads what it needs of them.
struct SparseSddmm {
  ScalarType type{};
  bool is_wide = false;  // as for products
  Value row, column;
  std::optional<Nonzeros> values;
  Nonzeros result;
  Poly rows, columns, nonzeros, depth;
  DenseRows x, y;
  Value e, i, j;                // the non-zero, its row, its column
  std::vector<SegDim> batches;  // as for products
  SparseEpilogue epilogue;
};
std::optional<SparseSddmm> find_sparse_sddmm(const Stm& kernel, const apl::Function& function,
                                             std::string* why = nullptr);

// Whether the runtime has kernels for elements of this type that are added up in that one, and written as a third. f16
// and storage types are added up in f32; what is written is that, or f16 again.
bool has_sparse_kernels(ScalarType type, ScalarType sum, ScalarType result);

// What the runtime's kernels for CPUs do of a kernel of a C program. They leave sums where the results go, and a loop
// of the program does what is left there.
std::optional<SparseProduct> find_host_product(const Stm& kernel, const apl::Function& function,
                                               std::string* why = nullptr);
std::optional<SparseSddmm> find_host_sddmm(const Stm& kernel, const apl::Function& function,
                                           std::string* why = nullptr);

// Host code that asks the runtime for the kernel.
struct SparseCall {
  std::string made;  // the variable that says whether it ran, or "" if the runtime has none for such a kernel
  std::optional<Stm> epilogue;  // what is to run then: a kernel that makes results of the sums where these lie
};
// `block`: what a block is called on the host. `declarations` gets what stands before the entry: code for a known
// matrix.
SparseCall write_sparse_call(const Stm& kernel, Unit& unit, Values& values,
                             const std::function<std::string(Value)>& block, Writer& declarations, Writer& out);

}  // namespace apl::lower
