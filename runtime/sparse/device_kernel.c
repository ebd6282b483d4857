#include "runtime/sparse/device_kernel.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// By type; those that are no numbers have no kernels.
enum kernel_kind { of_signed_integer, of_unsigned_integer, of_floating, of_boolean, of_unit };
static const struct kernel_scalar {
  const char *name, *written;
  enum kernel_kind kind;
  int32_t bytes;
} kScalars[] = {
#define APL_SCALAR(name, NAME, text, kind, arithmetic, bytes, bits, mantissa, lowest, kernel_type, host_type) \
  {text, #kernel_type, of_##kind, bytes},
#include "ir/scalar_types.def"
};
enum { kScalarCount = sizeof kScalars / sizeof kScalars[0] };

// What is no type has no kernels, and no size that counts.
static const struct kernel_scalar* kernel_scalar_of(int32_t type) {
  return &kScalars[type >= 0 && type < kScalarCount ? type : 0];
}

int64_t apl_sparse_type_size(int32_t type) { return kernel_scalar_of(type)->bytes; }

int apl_sparse_is_half(int32_t type) {
  const struct kernel_scalar* scalar = kernel_scalar_of(type);
  return scalar->kind == of_floating && scalar->bytes == 2;
}

const char* apl_sparse_result_type(int32_t type, int32_t is_wide, const char** suffix) {
  const char* written = NULL;
  *suffix = "";
  if (!is_wide || !apl_sparse_is_half(type)) return apl_sparse_type_name(type, &written) ? written : NULL;
  *suffix = "_wide";
  return "float";
}

const char* apl_sparse_type_name(int32_t type, const char** written) {
  if (type < 0 || type >= kScalarCount || kScalars[type].kind > of_floating) return NULL;
  *written = kScalars[type].written;
  return kScalars[type].name;
}

int apl_sparse_fail(struct apl_context* ctx, int status, const char* message) {
  snprintf(ctx->error, sizeof ctx->error, "%s", message);
  return status;
}

void apl_sparse_define(struct apl_sparse_kernel* kernel, const char* what, const char* format, ...) {
  char value[128];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(value, sizeof value, format, arguments);
  va_end(arguments);
  const int written = snprintf(kernel->defines + kernel->length, sizeof kernel->defines - kernel->length,
                               "#define APL_SPARSE_%s %s\n", what, value);
  if (written > 0) kernel->length += (size_t)written;
}

int apl_sparse_load_kernel(struct apl_context* ctx, const struct apl_sparse_kernel* kernel,
                           const struct apl_sparse_epilogue* epilogue, const enum apl_sparse_text* parts, int count) {
  if (ctx->backend->load == NULL)
    return apl_sparse_fail(ctx, APL_ERROR, "this backend compiles no kernels at run time");
  size_t length = kernel->length + 128 + (epilogue ? strlen(epilogue->text) + 1 : 0);
  for (int k = 0; k < count; ++k) length += strlen(apl_sparse_kernel_part(parts[k])) + 1;
  char* text = malloc(length + 1);
  if (!text) return apl_sparse_fail(ctx, APL_OUT_OF_MEMORY, "out of memory for the text of a sparse kernel");
  char* at = text + sprintf(text, "#define APL_WARP %d\n#include \"device.h\"\n%s", kernel->warp, kernel->defines);
  for (int k = 0; k < count; ++k) {
    if (k == count - 1 && epilogue) at += sprintf(at, "%s\n", epilogue->text);
    at += sprintf(at, "%s\n", apl_sparse_kernel_part(parts[k]));
  }
  const int status = ctx->backend->load(ctx, kernel->name, text);
  free(text);
  return status;
}

int apl_sparse_start(struct apl_context* ctx, const struct apl_sparse_kernel* kernel, int64_t blocks, int32_t threads,
                     int64_t shared_bytes, void** args, int32_t count) {
  if (blocks > INT32_MAX) return apl_sparse_fail(ctx, APL_ERROR, "a sparse product needs too many blocks");
  const struct apl_launch launch = {kernel->name, blocks, threads, (int32_t)shared_bytes, count, args};
  return ctx->backend->launch(ctx, &launch);
}

int32_t apl_sparse_widest(int64_t size, const struct apl_sparse_dense* a, const struct apl_sparse_dense* b,
                          int64_t length) {
  int64_t wide = 16 / size;
  const int64_t addresses = (int64_t)((uintptr_t)a->data | (uintptr_t)b->data);
  while (wide > 1 && (length % wide || a->row % wide || b->row % wide || addresses % (wide * size))) wide /= 2;
  return (int32_t)wide;
}

int32_t apl_sparse_power_from(int64_t number, int32_t most) {
  int32_t power = 1;
  while (power < number && power < most) power *= 2;
  return power;
}

const char* apl_sparse_misfit(int64_t columns, const struct apl_sparse_dense* a, const struct apl_sparse_dense* b) {
  if (columns > INT32_MAX || a->row > INT32_MAX || b->row > INT32_MAX)
    return "rows of a sparse product's dense operands are too long";
  return NULL;
}
