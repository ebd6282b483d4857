// Which matrix it is, values and all: for programs that have code for one.
#ifndef APL_SPARSE_KNOWN_H
#define APL_SPARSE_KNOWN_H

#include "runtime/sparse/sparse.h"

#ifdef __cplusplus
extern "C" {
#endif

// A hash of sizes, positions and values, whose elements have so many bytes.
APL_SPARSE_API uint64_t apl_sparse_key(const struct apl_sparse_csr* matrix, size_t value_bytes);

#ifdef __cplusplus
}
#endif

#endif
