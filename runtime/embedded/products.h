// Products over non-zeros by the runtime's kernels, in a generated CUDA library. What is made of a sparse argument, by
// its plan or without one, is kept by the numbers of its arrays.
#ifndef APL_LIBRARY_PRODUCTS_H
#define APL_LIBRARY_PRODUCTS_H

#include "runtime/embedded/object.h"
#include "runtime/sparse/device_operand.h"

// Smaller products do not pay for a kernel that is compiled when the program runs.
enum { APL_LEAST_PRODUCTS = 1 << 16, APL_MOST_OPERANDS = 8 };

struct apl_made_operand {
  uint64_t pattern, values;  // numbers of arrays; no pattern: nothing is here
  int64_t width;             // of SpMM, as a power of two: those that are alike share an operand; the depth of SDDMM
  int32_t type, sddmm;
  struct apl_sparse_operand product;
  struct apl_sparse_sddmm_operand samples;
};
struct apl_made_operands {
  struct apl_made_operand made[APL_MOST_OPERANDS];
  uint32_t next;
};

static void apl_drop_operand(struct apl_context* base, struct apl_made_operand* made) {
  if (made->pattern && made->sddmm) apl_sparse_release_sddmm(base, &made->samples);
  if (made->pattern && !made->sddmm) apl_sparse_release(base, &made->product);
  memset(made, 0, sizeof *made);
}
// Of an array with this number; 0: all.
static void apl_drop_operands(struct apl_context* base, struct apl_made_operands* operands, uint64_t pattern) {
  for (int k = 0; k < APL_MOST_OPERANDS; ++k)
    if (pattern == 0 || operands->made[k].pattern == pattern) apl_drop_operand(base, &operands->made[k]);
}

static int apl_refuse_operand(struct apl_context* base, int status) {
  return apl_backend_error(base, status == APL_SPARSE_OUT_OF_MEMORY ? APL_OUT_OF_MEMORY : APL_ERROR,
                           "sparse operand: %s", apl_sparse_status_text(status));
}

// The operand of this key, or an empty one for it.
static struct apl_made_operand* apl_find_operand(struct apl_context* base, struct apl_made_operands* operands,
                                                 const struct apl_made_operand* key) {
  for (int k = 0; k < APL_MOST_OPERANDS; ++k) {
    struct apl_made_operand* made = &operands->made[k];
    if (made->pattern == key->pattern && made->width == key->width && made->type == key->type &&
        made->sddmm == key->sddmm)
      return made;
  }
  struct apl_made_operand* oldest = &operands->made[operands->next++ % APL_MOST_OPERANDS];
  apl_drop_operand(base, oldest);
  return oldest;
}

// The rows of non-zeros, or where each starts: whichever the program has.
static int apl_make_operand(struct apl_context* base, const int64_t sizes[3], const void* row_start, const void* row,
                            const void* column, const struct apl_sparse_plan* plan, struct apl_made_operand* made) {
  struct futhark_context* ctx = apl_of(base);
  const struct apl_backend* backend = base->backend;
  const int64_t rows = sizes[0], nonzeros = sizes[2];
  int64_t* starts = calloc((size_t)rows + 1, sizeof *starts);
  int32_t *columns = malloc(sizeof *columns * ((size_t)nonzeros + 1)),
          *of = row ? malloc(sizeof *of * ((size_t)nonzeros + 1)) : NULL;
  int status = starts && columns && (of || !row) ? APL_SUCCESS : apl_refuse_operand(base, APL_SPARSE_OUT_OF_MEMORY);
  if (status == APL_SUCCESS) status = backend->download(base, columns, column, (int64_t)sizeof *columns * nonzeros);
  if (status == APL_SUCCESS && row) {
    status = backend->download(base, of, row, (int64_t)sizeof *of * nonzeros);
    for (int64_t k = 0; status == APL_SUCCESS && k < nonzeros; ++k) ++starts[of[k] + 1];
    for (int64_t k = 0; k < rows; ++k) starts[k + 1] += starts[k];
  } else if (status == APL_SUCCESS) {
    status = backend->download(base, starts, row_start, (int64_t)sizeof *starts * (rows + 1));
  }
  const struct apl_sparse_csr csr = {rows, sizes[1], nonzeros, starts, columns, NULL};
  if (status == APL_SUCCESS && made->sddmm) {
    struct apl_sparse_sddmm_packed* packed = NULL;
    const int failed = apl_sparse_sddmm_packed_make(&csr, plan, &ctx->device, made->type, made->width, NULL, &packed);
    status =
        failed ? apl_refuse_operand(base, failed) : apl_sparse_upload_sddmm(base, packed, made->type, &made->samples);
    apl_sparse_sddmm_packed_free(packed);
  } else if (status == APL_SUCCESS) {
    struct apl_sparse_packed* packed = NULL;
    struct apl_sparse_reordering rows = {NULL, 0, 0};
    int failed = plan ? APL_SPARSE_FINE : apl_sparse_reorder(&csr, &ctx->device, made->type, made->width, &rows);
    const struct apl_sparse_options options = {.row_order = rows.order};
    if (rows.order)
      apl_log(ctx, "sparse operand: rows are reordered: %.1f us by the model, as they are %.1f us", rows.after,
              rows.before);
    if (!failed) failed = apl_sparse_packed_make(&csr, plan, &ctx->device, made->type, made->width, &options, &packed);
    status = failed ? apl_refuse_operand(base, failed) : apl_sparse_upload(base, packed, made->type, &made->product);
    apl_sparse_packed_free(packed);
    free(rows.order);
  }
  free(starts);
  free(columns);
  free(of);
  return status;
}

static int apl_device_product(struct apl_context* base, struct apl_made_operands* operands,
                              const struct apl_sparse_product* product, int32_t* done) {
  struct futhark_context* ctx = apl_of(base);
  const struct apl_argument pattern = apl_argument_of(ctx, product->column);
  const struct apl_sparse_plan* plan = pattern.plans ? pattern.plans[0] : NULL;
  if (!pattern.number || product->width <= 0 || product->nonzeros <= 0) return APL_SUCCESS;
  // A plan that was asked for acts, whatever the size.
  if (!plan && product->nonzeros < (APL_LEAST_PRODUCTS + product->width - 1) / product->width) return APL_SUCCESS;
  int64_t width = 32;
  while (width < product->width && width < 512) width *= 2;
  const struct apl_made_operand key = {.pattern = pattern.number, .width = width, .type = product->type};
  struct apl_made_operand* made = apl_find_operand(base, operands, &key);
  int status = APL_SUCCESS;
  if (!made->pattern) {
    *made = key;
    const int64_t sizes[] = {product->rows, product->columns, product->nonzeros};
    status = apl_make_operand(base, sizes, product->row_start, NULL, product->column, plan, made);
    if (status != APL_SUCCESS) memset(made, 0, sizeof *made);
  }
  const uint64_t values = apl_argument_of(ctx, product->values).number;
  if (status == APL_SUCCESS && (values == 0 || values != made->values)) {
    status = apl_sparse_set_values(base, &made->product, product->values);
    made->values = status == APL_SUCCESS ? values : 0;
  }
  if (status != APL_SUCCESS) return status;
  const struct apl_sparse_packed* packed = &made->product.packed;
  if (plan)
    apl_log(ctx, "sparse product by the plan: %d windows of %d rows, %d rows gathered", packed->windows,
            8 * packed->parts, packed->records - packed->pieces + packed->cuts);
  *done = 1;
  made->product.is_wide = product->is_wide;
  return apl_sparse_spmm(base, &made->product, (struct apl_sparse_dense){(void*)product->b, product->b_row},
                         (struct apl_sparse_dense){product->c, product->c_row}, product->width, NULL,
                         product->epilogue);
}

static int apl_device_sddmm(struct apl_context* base, struct apl_made_operands* operands,
                            const struct apl_sparse_sddmm_product* sddmm, int32_t* done) {
  struct futhark_context* ctx = apl_of(base);
  const struct apl_argument pattern = apl_argument_of(ctx, sddmm->column);
  const struct apl_sparse_plan* plan = pattern.plans ? pattern.plans[1] : NULL;
  if (!pattern.number || sddmm->depth <= 0 || sddmm->nonzeros <= 0) return APL_SUCCESS;
  if (!plan && sddmm->nonzeros < (APL_LEAST_PRODUCTS + sddmm->depth - 1) / sddmm->depth) return APL_SUCCESS;
  const struct apl_made_operand key = {
      .pattern = pattern.number, .width = sddmm->depth, .type = sddmm->type, .sddmm = 1};
  struct apl_made_operand* made = apl_find_operand(base, operands, &key);
  if (!made->pattern) {
    *made = key;
    const int64_t sizes[] = {sddmm->rows, sddmm->columns, sddmm->nonzeros};
    const int status = apl_make_operand(base, sizes, NULL, sddmm->row, sddmm->column, plan, made);
    if (status != APL_SUCCESS) {
      memset(made, 0, sizeof *made);
      return status;
    }
  }
  if (plan && made->samples.packed.windows > 0)
    apl_log(ctx, "sparse SDDMM by the plan: %d windows of 8 rows", made->samples.packed.windows);
  if (plan && made->samples.packed.windows == 0) apl_log(ctx, "sparse SDDMM by the plan: a list of the non-zeros");
  *done = 1;
  made->samples.is_wide = sddmm->is_wide;
  return apl_sparse_sddmm(base, &made->samples, sddmm->values, (struct apl_sparse_dense){(void*)sddmm->x, sddmm->x_row},
                          (struct apl_sparse_dense){(void*)sddmm->y, sddmm->y_row}, sddmm->depth, sddmm->result,
                          sddmm->epilogue);
}

#endif
