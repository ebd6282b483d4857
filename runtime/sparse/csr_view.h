// Matrices of C++ (ir/csr.h) for the sparse library, without a copy.
#pragma once

#include "runtime/sparse/csr.h"

namespace apl {

// The pattern; it is the matrix' as long as that is there.
template <class CompressedRows>
apl_sparse_csr csr_view(const CompressedRows& matrix) {
  return {matrix.rows, matrix.columns, matrix.nonzeros(), matrix.row_start.data(), matrix.column.data(), nullptr};
}

}  // namespace apl
