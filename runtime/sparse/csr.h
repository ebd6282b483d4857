// A sparse matrix as compressed rows, in C11; C++ that has ir/csr.h gives a view of it (runtime/sparse/csr_view.h).
#ifndef APL_SPARSE_CSR_H
#define APL_SPARSE_CSR_H

#include <stdint.h>

// Columns rise within a row. Everything is borrowed.
struct apl_sparse_csr {
  int64_t rows, columns, nonzeros;
  const int64_t* row_start;  // rows + 1 of them
  const int32_t* column;
  const void* values;  // for who reads them, of the element type that he knows; null: each is 1
};

#endif
