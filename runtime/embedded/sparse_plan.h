// Plans for sparse operands of a generated library: each is held against its matrix once, and acts from then on.
#ifndef APL_LIBRARY_SPARSE_PLAN_H
#define APL_LIBRARY_SPARSE_PLAN_H

#include "runtime/embedded/sparse_values.h"
#include "runtime/sparse/sparse.h"

// One of the object's arrays on the host, for the caller to free; null if it has none of this kind, or with an error.
static void* apl_fetch_field(struct futhark_context* ctx, const struct apl_object* object, int32_t field, int* status) {
  for (int32_t k = 0; k < object->type->value_count && *status == APL_SUCCESS; ++k) {
    if (object->type->soa[k] != field) continue;
    void* data = malloc((size_t)apl_bytes(&object->items[k].value) + 8);
    *status = data ? apl_fetch(ctx, &object->items[k], data)
                   : apl_backend_error(&ctx->base, APL_OUT_OF_MEMORY, "out of memory for a sparse matrix");
    if (*status == APL_SUCCESS) return data;
    free(data);
  }
  return NULL;
}

// Where the rows start, counted if the object has the row of each non-zero instead.
static int64_t* apl_fetch_row_start(struct futhark_context* ctx, const struct apl_object* object, int* status) {
  int64_t* start = apl_fetch_field(ctx, object, APL_FIELD_ROW_START, status);
  int32_t* row = start ? NULL : apl_fetch_field(ctx, object, APL_FIELD_ROW, status);
  if (!row) return start;
  const int64_t rows = apl_sparse_shape(object)[0], nonzeros = apl_sparse_nonzeros(object);
  start = calloc((size_t)rows + 1, sizeof *start);
  if (!start) *status = apl_backend_error(&ctx->base, APL_OUT_OF_MEMORY, "out of memory for a sparse matrix");
  for (int64_t n = 0; n < nonzeros && start; ++n) ++start[row[n] + 1];
  for (int64_t i = 0; i < rows && start; ++i) start[i + 1] += start[i];
  free(row);
  return start;
}

// The column of each non-zero, by the columns' own order if the object has that instead.
static int32_t* apl_fetch_columns(struct futhark_context* ctx, const struct apl_object* object, int* status) {
  int32_t* column = apl_fetch_field(ctx, object, APL_FIELD_COLUMN, status);
  if (column) return column;
  int64_t* start = apl_fetch_field(ctx, object, APL_FIELD_COLUMN_START, status);
  int32_t* by_column = start ? apl_fetch_field(ctx, object, APL_FIELD_BY_COLUMN, status) : NULL;
  if (by_column) column = malloc(sizeof *column * (size_t)(apl_sparse_nonzeros(object) + 1));
  if (by_column && !column)
    *status = apl_backend_error(&ctx->base, APL_OUT_OF_MEMORY, "out of memory for a sparse matrix");
  for (int64_t j = 0; column && j < apl_sparse_shape(object)[1]; ++j)
    for (int64_t k = start[j]; k < start[j + 1]; ++k) column[by_column[k]] = (int32_t)j;
  free(start);
  free(by_column);
  return column;
}

static int apl_check_plan(struct futhark_context* ctx, const struct apl_object* object,
                          const struct apl_sparse_plan* plan) {
  int status = APL_SUCCESS;
  char differs[200];
  int64_t* row_start = apl_fetch_row_start(ctx, object, &status);
  int32_t* column = status == APL_SUCCESS ? apl_fetch_columns(ctx, object, &status) : NULL;
  const int64_t* shape = apl_sparse_shape(object);
  const struct apl_sparse_csr matrix = {shape[0], shape[1], apl_sparse_nonzeros(object), row_start, column, NULL};
  if (status == APL_SUCCESS && !(row_start && column)) {
    status =
        apl_backend_error(&ctx->base, APL_PROGRAM_ERROR,
                          "no entry reads where the non-zeros of a %s are: a plan is of no use", object->type->name);
  } else if (status == APL_SUCCESS && apl_sparse_plan_fits(plan, &matrix, differs, sizeof differs)) {
    status = apl_backend_error(&ctx->base, APL_PROGRAM_ERROR, "the plan %s", differs);
  } else if (status == APL_SUCCESS && plan->dense) {
    status = apl_backend_error(&ctx->base, APL_PROGRAM_ERROR,
                               "the plan says `form dense`: compile the program without #[sparse] for this operand");
  }
  free(row_start);
  free(column);
  return status;
}

static void apl_put_plan(struct futhark_context* ctx, struct apl_object* object, int sddmm,
                         struct apl_sparse_plan* plan) {
  apl_sparse_plan_free(object->plans[sddmm]);
  object->plans[sddmm] = plan;
  for (int32_t k = 0; k < object->type->value_count; ++k)
    if (object->items[k].storage) apl_machine_forget(ctx, object->items[k].storage->number);
}

// Without a text the operand has no plans any more.
static int apl_set_plan(struct futhark_context* ctx, struct apl_object* object, const char* text, size_t length) {
  if (!apl_enter(ctx)) return APL_ERROR;
  struct apl_sparse_plan* plan = NULL;
  char said[200];
  if (!text) {
    for (int sddmm = 0; sddmm < 2; ++sddmm) apl_put_plan(ctx, object, sddmm, NULL);
    return apl_leave(ctx, APL_SUCCESS);
  }
  int status = apl_sparse_plan_parse(text, length, &plan, said, sizeof said);
  if (status != APL_SPARSE_FINE) {
    status = apl_backend_error(&ctx->base, status == APL_SPARSE_OUT_OF_MEMORY ? APL_OUT_OF_MEMORY : APL_PROGRAM_ERROR,
                               "the plan of a sparse operand: %s", said);
    return apl_leave(ctx, status);
  }
  status = apl_check_plan(ctx, object, plan);
  if (status == APL_SUCCESS) {
    apl_put_plan(ctx, object, plan->sddmm != 0, plan);
  } else {
    apl_sparse_plan_free(plan);
  }
  return apl_leave(ctx, status);
}

#endif
