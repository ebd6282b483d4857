// Sparse operands of a generated library: an object whose items are the arrays that the program's entries take.
#ifndef APL_SPARSE_VALUES_H
#define APL_SPARSE_VALUES_H

#include "runtime/embedded/values.h"
#include "runtime/sparse/csr.h"

static int apl_check_csr(struct futhark_context* ctx, const struct apl_sparse_csr* m) {
  struct apl_context* base = &ctx->base;
  if (m->rows < 0 || m->columns < 0 || m->rows >= INT32_MAX || m->columns >= INT32_MAX)
    return apl_backend_error(base, APL_PROGRAM_ERROR, "a sparse matrix cannot have %lld rows and %lld columns",
                             (long long)m->rows, (long long)m->columns);
  if (m->row_start[0] != 0)
    return apl_backend_error(base, APL_PROGRAM_ERROR, "the first row of a sparse matrix starts at %lld, not at 0",
                             (long long)m->row_start[0]);
  for (int64_t i = 0; i < m->rows; ++i) {
    if (m->row_start[i + 1] < m->row_start[i])
      return apl_backend_error(base, APL_PROGRAM_ERROR, "row %lld of a sparse matrix ends before it starts",
                               (long long)i);
    for (int64_t k = m->row_start[i]; k < m->row_start[i + 1]; ++k) {
      if (m->column[k] < 0 || m->column[k] >= m->columns)
        return apl_backend_error(base, APL_PROGRAM_ERROR, "row %lld of a sparse matrix has column %d of %lld",
                                 (long long)i, m->column[k], (long long)m->columns);
      if (k > m->row_start[i] && m->column[k] <= m->column[k - 1])
        return apl_backend_error(base, APL_PROGRAM_ERROR, "columns of row %lld of a sparse matrix do not rise",
                                 (long long)i);
    }
  }
  return APL_SUCCESS;
}

static void apl_fill_ones(int32_t type, char* to, int64_t count) {
  const float single = 1;
  const double number = 1;
  const int64_t integer = 1;  // of a little-endian machine
  const int64_t size = apl_element_size(type);
  const void* one = type == APL_F32   ? (const void*)&single
                    : type == APL_F64 ? (const void*)&number
                                      : (const void*)&integer;
  const uint64_t narrow = apl_is_float(type) && size < 4 ? apl_narrow_bits(type, 1) : 0;
  if (narrow) one = &narrow;
  for (int64_t k = 0; k < count; ++k) memcpy(to + k * size, one, (size_t)size);
}

static void apl_fill_rows(const struct apl_sparse_csr* m, int32_t* row) {
  for (int64_t i = 0; i < m->rows; ++i)
    for (int64_t k = m->row_start[i]; k < m->row_start[i + 1]; ++k) row[k] = (int32_t)i;
}

// Where columns start, and the non-zeros column by column if `by_column` is there.
static void apl_fill_columns(const struct apl_sparse_csr* m, int64_t* column_start, int32_t* by_column) {
  const int64_t nonzeros = m->nonzeros;
  memset(column_start, 0, sizeof *column_start * (size_t)(m->columns + 2));
  // Counted two positions further on, so that filling moves each start to where it belongs.
  for (int64_t k = 0; k < nonzeros; ++k) ++column_start[m->column[k] + 2];
  for (int64_t j = 0; j < m->columns; ++j) column_start[j + 2] += column_start[j + 1];
  for (int64_t k = 0; k < nonzeros; ++k) {
    const int64_t at = column_start[m->column[k] + 1]++;
    if (by_column) by_column[at] = (int32_t)k;
  }
}

// One of the arrays, made on the host in `made` where the caller does not have it; as many elements as `count` says.
static const void* apl_soa_array(const struct apl_sparse_csr* m, int32_t field, int32_t type, int64_t* count,
                                 void** made) {
  const int64_t nonzeros = m->nonzeros;
  *count = nonzeros;
  switch (field) {
    case APL_FIELD_VALUES:
      if (m->values) return m->values;
      *made = malloc((size_t)(nonzeros * apl_element_size(type)) + 8);
      if (*made) apl_fill_ones(type, *made, nonzeros);
      return *made;
    case APL_FIELD_ROW_START: *count = m->rows + 1; return m->row_start;
    case APL_FIELD_COLUMN: return m->column;
    case APL_FIELD_ROW:
      *made = malloc(sizeof(int32_t) * (size_t)(nonzeros + 1));
      if (*made) apl_fill_rows(m, *made);
      return *made;
    default: break;
  }
  int64_t* start = malloc(sizeof *start * (size_t)(m->columns + 2));
  int32_t* by_column = field == APL_FIELD_BY_COLUMN ? malloc(sizeof *by_column * (size_t)(nonzeros + 1)) : NULL;
  const bool is_there = start && (by_column || field == APL_FIELD_COLUMN_START);
  if (is_there) apl_fill_columns(m, start, by_column);
  if (field == APL_FIELD_COLUMN_START) {
    *count = m->columns + 1;
    *made = start;
    return start;
  }
  free(start);
  *made = by_column;
  return is_there ? by_column : NULL;
}

// All items of the object; what was copied has arrived when it comes back.
static int apl_fill_sparse(struct futhark_context* ctx, struct apl_object* object, const struct apl_sparse_csr* m) {
  const struct apl_api_type* type = object->type;
  int status = apl_check_csr(ctx, m);
  const char nothing = 0;
  for (int32_t k = 0; k < type->value_count && status == APL_SUCCESS; ++k) {
    if (type->soa[k] == APL_FIELD_SHAPE) {
      const int64_t shape[] = {0, m->rows, m->columns};
      status = apl_fill_array(ctx, &object->items[k], &nothing, shape);
      continue;
    }
    int64_t count = 0;
    void* made = NULL;
    const void* data = apl_soa_array(m, type->soa[k], object->items[k].value.type, &count, &made);
    if (data) {
      status = apl_fill_array(ctx, &object->items[k], data, &count);
      if (status == APL_SUCCESS) status = ctx->base.backend->synchronise(&ctx->base);
    } else {
      status = apl_backend_error(&ctx->base, APL_OUT_OF_MEMORY, "out of memory for a sparse matrix");
    }
    free(made);
  }
  return status;
}

static struct apl_object* apl_new_sparse(struct futhark_context* ctx, const struct apl_api_type* type, int64_t rows,
                                         int64_t columns, const int64_t* row_start, const int32_t* column,
                                         const void* values) {
  if (!apl_enter(ctx)) return NULL;
  const struct apl_sparse_csr matrix = {rows, columns, row_start[rows], row_start, column, values};
  struct apl_object* object = apl_make_object(type);
  const int status = object ? apl_fill_sparse(ctx, object, &matrix) : APL_OUT_OF_MEMORY;
  if (status != APL_SUCCESS) {
    apl_drop_object(ctx, object);
    object = NULL;
  }
  apl_leave(ctx, status);
  return object;
}

// Rows and columns stand behind the 0 of the shape; the values are the second item.
static const int64_t* apl_sparse_shape(const struct apl_object* object) { return object->items[0].value.shape + 1; }
static int64_t apl_sparse_nonzeros(const struct apl_object* object) { return object->items[1].value.shape[0]; }

#endif
