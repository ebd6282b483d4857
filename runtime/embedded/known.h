// Whether a sparse argument is the matrix that a generated library has code for.
#ifndef APL_LIBRARY_KNOWN_H
#define APL_LIBRARY_KNOWN_H

#include "runtime/embedded/object.h"
#include "runtime/sparse/known.h"

static int64_t apl_element_size(int32_t type);  // of values.h

// The key of the matrix in these arrays, 0 if there is no memory for it.
static int apl_key_of(struct apl_context* base, const struct apl_known_matrix* matrix, const void* row_start,
                      const void* column, const void* values, uint64_t* key) {
  const size_t size = (size_t)apl_element_size(matrix->type), nonzeros = (size_t)matrix->nonzeros;
  int64_t* starts = malloc(sizeof *starts * (size_t)(matrix->rows + 1));
  int32_t* columns = malloc(sizeof *columns * (nonzeros + 1));
  char* numbers = malloc(size * (nonzeros + 1));
  int status = APL_SUCCESS;
  if (starts && columns && numbers) {
    const struct apl_backend* backend = base->backend;
    status = backend->download(base, starts, row_start, (int64_t)sizeof *starts * (matrix->rows + 1));
    if (status == APL_SUCCESS)
      status = backend->download(base, columns, column, (int64_t)sizeof *columns * matrix->nonzeros);
    if (status == APL_SUCCESS) status = backend->download(base, numbers, values, (int64_t)size * matrix->nonzeros);
    const struct apl_sparse_csr csr = {matrix->rows, matrix->columns, matrix->nonzeros, starts, columns, numbers};
    if (status == APL_SUCCESS && starts[matrix->rows] == matrix->nonzeros) *key = apl_sparse_key(&csr, size);
  }
  free(starts);
  free(columns);
  free(numbers);
  return status;
}

static int apl_is_known_matrix(struct apl_context* base, const struct apl_known_matrix* matrix, const void* row_start,
                               const void* column, const void* values, int32_t* is_it) {
  struct futhark_context* ctx = apl_of(base);
  const uint64_t numbers[] = {apl_argument_of(ctx, row_start).number, apl_argument_of(ctx, column).number,
                              apl_argument_of(ctx, values).number};
  *is_it = 0;
  if (!numbers[0] || !numbers[1] || !numbers[2]) return APL_SUCCESS;
  for (int32_t k = 0; k < APL_SEEN_MATRICES; ++k)
    if (ctx->seen[k].matrix == matrix && memcmp(ctx->seen[k].numbers, numbers, sizeof numbers) == 0) {
      *is_it = ctx->seen[k].is_it;
      return APL_SUCCESS;
    }
  uint64_t key = 0;
  const int status = apl_key_of(base, matrix, row_start, column, values, &key);
  if (status != APL_SUCCESS) return status;
  *is_it = key == matrix->key;
  struct apl_seen_matrix* seen = &ctx->seen[ctx->next_seen++ % APL_SEEN_MATRICES];
  *seen = (struct apl_seen_matrix){matrix, {numbers[0], numbers[1], numbers[2]}, *is_it};
  apl_log(ctx, "a sparse operand of %lld non-zeros is %s matrix that there is code for", (long long)matrix->nonzeros,
          *is_it ? "the" : "another than the");
  return APL_SUCCESS;
}

#endif
