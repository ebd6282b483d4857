#include "runtime/sparse/cpu_operands.h"

#include <stdlib.h>
#include <string.h>

// Less than so many multiplications are done before a packed operand is found.
enum { kLeastWork = 1 << 13 };
// Packing takes as long as a product of some hundred columns.
enum { kPackFrom = 512 };

// The type whose kernels do it; numbers wrap with and without a sign.
static int find_type(int32_t type, int32_t is_wide, enum apl_sparse_type* found) {
  switch (type) {
    case APL_F16: *found = is_wide ? APL_SPARSE_F16_WIDE : APL_SPARSE_F16; break;
    case APL_BF16: *found = APL_SPARSE_BF16_WIDE; break;
    case APL_F32: *found = APL_SPARSE_F32; break;
    case APL_F64: *found = APL_SPARSE_F64; break;
    case APL_I8:
    case APL_U8: *found = APL_SPARSE_I8; break;
    case APL_I16:
    case APL_U16: *found = APL_SPARSE_I16; break;
    case APL_I32:
    case APL_U32: *found = APL_SPARSE_I32; break;
    case APL_I64:
    case APL_U64: *found = APL_SPARSE_I64; break;
    default: return 0;
  }
  return apl_sparse_cpu_has(*found);
}

static int is_worth_it(int64_t rows, int64_t nonzeros, int64_t dense, const struct apl_sparse_plan* plan) {
  if (rows > INT32_MAX || nonzeros == 0 || dense <= 0) return 0;
  // A plan that was asked for acts, whatever the size.
  return plan || nonzeros >= (kLeastWork + dense - 1) / dense;
}

static void forget_operand(struct apl_sparse_cpu_operand* operand) {
  apl_sparse_cpu_packed_free(operand->packed);
  apl_sparse_tiles_free(operand->tiles);
  free(operand->packed_values);
  memset(operand, 0, sizeof *operand);
}

void apl_sparse_cpu_forget(struct apl_sparse_cpu_operands* operands) {
  for (int k = 0; k < operands->count; ++k) forget_operand(&operands->known[k]);
  operands->count = 0;
}

void apl_sparse_cpu_forget_pattern(struct apl_sparse_cpu_operands* operands, uint64_t pattern) {
  int kept = 0;
  for (int k = 0; k < operands->count; ++k) {
    if (operands->known[k].pattern == pattern) {
      forget_operand(&operands->known[k]);
    } else {
      operands->known[kept++] = operands->known[k];
    }
  }
  operands->count = kept;
}

static struct apl_sparse_cpu_operand* find_operand(struct apl_sparse_cpu_operands* operands, uint64_t pattern,
                                                   int sddmm) {
  for (int k = 0; k < operands->count; ++k)
    if (operands->known[k].pattern == pattern && operands->known[k].sddmm == sddmm) return &operands->known[k];
  return NULL;
}

static int add_operand(struct apl_sparse_cpu_operands* operands, const struct apl_sparse_csr* matrix, uint64_t pattern,
                       int sddmm, struct apl_sparse_cpu_operand** added) {
  if (operands->count == APL_SPARSE_CPU_KNOWN) {
    forget_operand(&operands->known[0]);
    memmove(operands->known, operands->known + 1, sizeof operands->known - sizeof operands->known[0]);
    --operands->count;
  }
  struct apl_sparse_cpu_operand* operand = &operands->known[operands->count];
  memset(operand, 0, sizeof *operand);
  const int status = apl_sparse_cpu_packed_rows(matrix, operands->threads, &operand->packed);
  if (status) return status;
  operand->pattern = pattern;
  operand->sddmm = sddmm;
  ++operands->count;
  *added = operand;
  return APL_SPARSE_FINE;
}

// Tiles: by the plan, or if neighbouring rows share columns, as blocks read a row of B once for several rows. Samples
// of blocks that are not full are made for nothing: they stay with their rows.
static int resolve_operand(struct apl_sparse_cpu_operand* operand, const int32_t* column,
                           const struct apl_sparse_plan* plan, int threads) {
  const struct apl_sparse_tiles* rows = operand->packed->tiles;
  const struct apl_sparse_csr matrix = {rows->rows, rows->columns, rows->nonzeros, operand->packed->stripe_first,
                                        column,     NULL};
  struct apl_sparse_plan* builtin = NULL;
  struct apl_sparse_tiles* tiles = NULL;
  struct apl_sparse_cpu_packed* packed = NULL;
  int status = plan || operand->sddmm ? APL_SPARSE_FINE : apl_sparse_plan_builtin(&matrix, &builtin);
  operand->is_resolved = 1;
  if (plan || (builtin && !status && builtin->stretches > 0 && builtin->stretch[0].selections > 0)) {
    status = apl_sparse_pack(&matrix, plan ? plan : builtin, &tiles);
    if (!status) status = apl_sparse_cpu_packed_new(tiles, threads, &packed);
    if (packed) {
      apl_sparse_cpu_packed_free(operand->packed);
      operand->packed = packed;
      operand->tiles = tiles;
      operand->values = 0;
    } else {
      apl_sparse_tiles_free(tiles);
    }
  }
  apl_sparse_plan_free(builtin);
  return status;
}

// Samples that nothing is multiplied by have ones for values, which are kept by numbers that no array has.
static uint64_t ones_of(enum apl_sparse_type type) { return UINT64_MAX - (uint64_t)type; }

static void set_ones(enum apl_sparse_type type, size_t bytes, void* packed_values) {
#define APL_SPARSE_ONES(real) \
  for (size_t k = 0; k < bytes / sizeof(real); ++k) ((real*)packed_values)[k] = 1
  switch (type) {
    case APL_SPARSE_F64: APL_SPARSE_ONES(double); break;
    case APL_SPARSE_I8: APL_SPARSE_ONES(int8_t); break;
    case APL_SPARSE_I16: APL_SPARSE_ONES(int16_t); break;
    case APL_SPARSE_I32: APL_SPARSE_ONES(int32_t); break;
    case APL_SPARSE_I64: APL_SPARSE_ONES(int64_t); break;
    default: APL_SPARSE_ONES(float); break;
  }
#undef APL_SPARSE_ONES
}

static int set_values(struct apl_sparse_cpu_operand* operand, enum apl_sparse_type type, const void* from,
                      uint64_t values) {
  if (!from) values = ones_of(type);
  if (operand->packed_values && values != 0 && operand->values == values) return APL_SPARSE_FINE;
  const size_t bytes = apl_sparse_cpu_values_bytes(operand->packed, type);
  operand->values = 0;
  if (bytes > operand->capacity) {
    free(operand->packed_values);
    operand->capacity = 0;
    operand->packed_values = malloc(bytes);
    if (!operand->packed_values) return APL_SPARSE_OUT_OF_MEMORY;
    operand->capacity = bytes;
  }
  if (from) {
    apl_sparse_cpu_values(operand->packed, type, from, operand->packed_values);
  } else {
    set_ones(type, bytes, operand->packed_values);
  }
  operand->values = values;
  return APL_SPARSE_FINE;
}

// What both operators have in common: the call's packed operand and its values.
static int set_call(struct apl_sparse_cpu_operands* operands, struct apl_sparse_cpu_operand* operand,
                    const int32_t* column, const int32_t* row, const void* from, uint64_t values,
                    const struct apl_sparse_plan* plan, int32_t* threads) {
  struct apl_sparse_cpu_call* call = &operands->call;
  operand->spent += call->dense;
  if (!operand->is_resolved && (plan || operand->spent >= kPackFrom)) {
    const int status = resolve_operand(operand, column, plan, operands->threads);
    if (status) return status;
  }
  // Rows as they are borrow the columns, which may have moved between two calls.
  if (!operand->tiles) apl_sparse_cpu_packed_columns(operand->packed, column, row);
  call->values = from;
  if (!from || operand->tiles || apl_sparse_cpu_is_half(call->type)) {
    const int status = set_values(operand, call->type, from, values);
    if (status) return status;
    call->values = operand->packed_values;
  }
  call->packed = operand->packed;
  call->next = 0;
  *threads = apl_sparse_cpu_threads(call, operands->threads);
  return APL_SPARSE_FINE;
}

int apl_sparse_cpu_product(struct apl_sparse_cpu_operands* operands, const struct apl_sparse_product* product,
                           uint64_t pattern, uint64_t values, const struct apl_sparse_plan* plan, int32_t* threads) {
  enum apl_sparse_type type;
  *threads = 0;
  if (pattern == 0 || !find_type(product->type, product->is_wide, &type) ||
      !is_worth_it(product->rows, product->nonzeros, product->width, plan))
    return APL_SPARSE_FINE;
  struct apl_sparse_cpu_operand* operand = find_operand(operands, pattern, 0);
  if (!operand) {
    const struct apl_sparse_csr matrix = {product->rows,      product->columns, product->nonzeros,
                                          product->row_start, product->column,  NULL};
    const int status = add_operand(operands, &matrix, pattern, 0, &operand);
    if (status) return status;
  }
  operands->call = (struct apl_sparse_cpu_call){.type = type,
                                                .dense = product->width,
                                                .b = product->b,
                                                .b_stride = product->b_row,
                                                .c = product->c,
                                                .c_stride = product->c_row};
  return set_call(operands, operand, product->column, NULL, product->values, values, plan, threads);
}

int apl_sparse_cpu_sddmm(struct apl_sparse_cpu_operands* operands, const struct apl_sparse_sddmm_product* sddmm,
                         uint64_t pattern, uint64_t values, const struct apl_sparse_plan* plan, int32_t* threads) {
  enum apl_sparse_type type;
  *threads = 0;
  if (pattern == 0 || !find_type(sddmm->type, sddmm->is_wide, &type) ||
      !is_worth_it(sddmm->rows, sddmm->nonzeros, sddmm->depth, plan))
    return APL_SPARSE_FINE;
  struct apl_sparse_cpu_operand* operand = find_operand(operands, pattern, 1);
  if (!operand) {
    int64_t* row_start = calloc((size_t)sddmm->rows + 1, sizeof *row_start);
    if (!row_start) return APL_SPARSE_OUT_OF_MEMORY;
    const int32_t* row = sddmm->row;
    for (int64_t n = 0; n < sddmm->nonzeros; ++n) ++row_start[row[n] + 1];
    for (int64_t i = 0; i < sddmm->rows; ++i) row_start[i + 1] += row_start[i];
    const struct apl_sparse_csr matrix = {sddmm->rows, sddmm->columns, sddmm->nonzeros, row_start, sddmm->column, NULL};
    const int status = add_operand(operands, &matrix, pattern, 1, &operand);
    free(row_start);
    if (status) return status;
  }
  operands->call = (struct apl_sparse_cpu_call){.type = type,
                                                .sddmm = 1,
                                                .dense = sddmm->depth,
                                                .x = sddmm->x,
                                                .x_stride = sddmm->x_row,
                                                .y = sddmm->y,
                                                .y_stride = sddmm->y_row,
                                                .result = sddmm->result};
  return set_call(operands, operand, sddmm->column, sddmm->row, sddmm->values, values, plan, threads);
}
