// Fast products over tiles on CPUs, in C11. An operand is packed once from tiles, values are put in its order once;
// then any number of products go over it. Every row has one owner: nothing is added atomically, and results do not
// depend on the number of threads.
#ifndef APL_SPARSE_CPU_H
#define APL_SPARSE_CPU_H

#include "runtime/sparse/sparse.h"

#ifdef __cplusplus
extern "C" {
#endif

// Elements of all operands. Floats of 16 bits are added up in f32; `WIDE`: results are f32. Integers wrap.
enum apl_sparse_type {
  APL_SPARSE_F32,
  APL_SPARSE_F64,
  APL_SPARSE_F16,
  APL_SPARSE_F16_WIDE,
  APL_SPARSE_BF16_WIDE,
  APL_SPARSE_I8,
  APL_SPARSE_I16,
  APL_SPARSE_I32,
  APL_SPARSE_I64,
  APL_SPARSE_TYPES
};
APL_SPARSE_API size_t apl_sparse_type_bytes(enum apl_sparse_type type);
// Floats of 16 bits, whose values are packed as what they are added up in.
APL_SPARSE_API int apl_sparse_cpu_is_half(enum apl_sparse_type type);
// Whether there are kernels for the type: not every compiler has halves.
APL_SPARSE_API int apl_sparse_cpu_has(enum apl_sparse_type type);

// Groups [begin, end) with about so many multiplications for each iteration of the dense loop.
struct apl_sparse_chunk {
  int64_t begin, end, work;
};

// Who writes a row first sets it, the others add: a target is the row, or ~row if something was there before.
struct apl_sparse_cpu_packed {
  const struct apl_sparse_tiles* tiles;  // borrowed
  uint64_t* block_adds;                  // of each block: bit i says that row i of it adds
  int32_t* ell_target;                   // of each ELL row
  // Of nnz segments, the stretches of one row: elements [stripe_first[k], stripe_first[k + 1]). Stripes of group g are
  // those from group_stripe[g] up to group_stripe[g + 1].
  int64_t stripes;
  int32_t* stripe_target;
  int64_t *stripe_first, *group_stripe;
  // Rows that nobody writes.
  int32_t* clear;
  int64_t* group_clear;
  // The longest first.
  int64_t chunks;
  struct apl_sparse_chunk* chunk;
  struct apl_sparse_tiles* rows;  // instead of tiles: those of apl_sparse_cpu_packed_rows
};

// `threads` is for how many the work should be cut.
APL_SPARSE_API int apl_sparse_cpu_packed_new(const struct apl_sparse_tiles* tiles, int threads,
                                             struct apl_sparse_cpu_packed** packed);
// Without tiles: a stripe is a row of the matrix. It costs as much as there are rows; the columns are borrowed, may be
// set anew, and packed values are the matrix' own (of halves: floats). The row of each non-zero, if it is
// given, is of use for SDDMM with short rows.
APL_SPARSE_API int apl_sparse_cpu_packed_rows(const struct apl_sparse_csr* matrix, int threads,
                                              struct apl_sparse_cpu_packed** packed);
APL_SPARSE_API void apl_sparse_cpu_packed_columns(struct apl_sparse_cpu_packed* packed, const int32_t* column,
                                                  const int32_t* row);
APL_SPARSE_API void apl_sparse_cpu_packed_free(struct apl_sparse_cpu_packed* packed);

// Packed values, with zeros where there are none; `packed_values` has the capacity of so many bytes.
APL_SPARSE_API size_t apl_sparse_cpu_values_bytes(const struct apl_sparse_cpu_packed* packed,
                                                  enum apl_sparse_type type);
APL_SPARSE_API void apl_sparse_cpu_values(const struct apl_sparse_cpu_packed* packed, enum apl_sparse_type type,
                                          const void* values, void* packed_values);

// One product. Rows of b, c, x and y are contiguous and begin so many elements apart.
struct apl_sparse_cpu_call {
  const struct apl_sparse_cpu_packed* packed;
  enum apl_sparse_type type;
  int sddmm;           // result[n] = values[n] * sum of x[row of n][k] y[column of n][k], else c = A b
  const void* values;  // of apl_sparse_cpu_values
  int64_t dense;       // iterations of the dense loop
  int64_t part;        // SpMM's in so many at a time; 0: whole
  const void *b, *x, *y;
  int64_t b_stride, x_stride, y_stride, c_stride;
  void *c, *result;
  int64_t next;  // 0 before; counts the tasks that were begun
};

// Does what is left to do. Any number of threads may be in it for the same call; the call is done when all have come
// back.
APL_SPARSE_API void apl_sparse_cpu_work(struct apl_sparse_cpu_call* call);
// How many threads a call is worth, at most `threads`.
APL_SPARSE_API int apl_sparse_cpu_threads(const struct apl_sparse_cpu_call* call, int threads);

#ifdef __cplusplus
}
#endif

#endif
