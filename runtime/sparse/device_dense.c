// Sparse operands for dense products of another library.
#include <stdio.h>

#include "runtime/sparse/device_kernel.h"
#include "runtime/sparse/operand_arrays.h"

int apl_sparse_packed_dense(const struct apl_sparse_csr* matrix, const struct apl_device* device,
                            struct apl_sparse_packed** packed) {
  *packed = NULL;
  // Positions have 32 bits.
  if (matrix->rows > INT32_MAX || (matrix->columns > 0 && matrix->rows > UINT32_MAX / matrix->columns))
    return APL_SPARSE_TOO_LARGE;
  struct apl_sparse_packed* f = calloc(1, sizeof *f);
  if (!f) return APL_SPARSE_OUT_OF_MEMORY;
  f->device = device;
  f->rows = matrix->rows;
  f->columns = matrix->columns;
  f->nonzeros = matrix->nonzeros;
  f->values = matrix->rows * matrix->columns;
  f->cuts = f->pieces = (int32_t)matrix->rows;
  f->slot = apl_sparse_array(matrix->nonzeros, sizeof *f->slot);
  f->cut = apl_sparse_array(4 * matrix->rows, sizeof *f->cut);
  if (!f->slot || !f->cut) {
    apl_sparse_packed_free(f);
    return APL_SPARSE_OUT_OF_MEMORY;
  }
  for (int64_t row = 0; row < matrix->rows; ++row) {
    int32_t* cut = f->cut + 4 * row;
    cut[0] = cut[1] = (int32_t)row;
    cut[2] = 1;
    for (int64_t k = matrix->row_start[row]; k < matrix->row_start[row + 1]; ++k)
      f->slot[k] = (uint32_t)(row * matrix->columns + matrix->column[k]);
  }
  *packed = f;
  return APL_SPARSE_FINE;
}

int apl_sparse_sample(struct apl_context* ctx, const struct apl_sparse_sddmm_operand* a, const void* values,
                      const void* all, void* result, const struct apl_sparse_epilogue* epilogue) {
  static const enum apl_sparse_text kParts[] = {APL_SPARSE_TEXT_WARP, APL_SPARSE_TEXT_NUMBERS, APL_SPARSE_TEXT_SAMPLE};
  const char *written = NULL, *type = apl_sparse_type_name(a->type, &written), *suffix;
  if (!type) return apl_sparse_fail(ctx, APL_ERROR, "sparse products have no kernels for this type");
  const char* result_type = apl_sparse_result_type(a->type, a->is_wide, &suffix);
  struct apl_sparse_kernel kernel = {.warp = a->packed.device->warp};
  snprintf(kernel.name, sizeof kernel.name, "apl_sample_%s%s%s%s%s", type, suffix, values ? "_scaled" : "",
           epilogue ? "_" : "", epilogue ? epilogue->type : "");
  apl_sparse_define(&kernel, "NAME", "%s", kernel.name);
  apl_sparse_define(&kernel, "TYPE", "%s", written);
  apl_sparse_define(&kernel, "RESULT", "%s", result_type);
  apl_sparse_define(&kernel, "EPILOGUE", "%s", epilogue ? epilogue->type : "apl_sparse_same");
  apl_sparse_define(&kernel, "SCALED", "%d", values != NULL);
  const int status = apl_sparse_load_kernel(ctx, &kernel, epilogue, kParts, 3);
  if (status) return status;
  int64_t nonzeros = a->packed.nonzeros, columns = a->packed.columns;
  int32_t nothing = 0;
  void *row = a->row, *column = a->column, *with = epilogue && epilogue->value ? (void*)epilogue->value : &nothing;
  void* args[] = {&row, &column, (void*)&values, &nonzeros, (void*)&all, &columns, &result, with};
  return apl_sparse_start(ctx, &kernel, (nonzeros + 255) / 256, 256, 0, args, sizeof args / sizeof args[0]);
}
