// The C backend of a generated library: host memory; kernels are functions of the program itself.
#ifndef APL_HOST_H
#define APL_HOST_H

#include <unistd.h>

#include "codegen/runtime/library/choose.h"
#include "codegen/runtime/library/object.h"

struct apl_machine {
  struct apl_failure failure;
#if APL_HAS_SPARSE
  struct apl_sparse_cpu_operands sparse;
#endif
};

// A block's size stands before it; vector code likes whole cache lines.
enum { APL_CACHE_LINE = 64 };

static int apl_host_allocate(struct apl_context* base, int64_t bytes, const char* what, void** data) {
  struct futhark_context* ctx = apl_of(base);
  const int64_t most = INT64_MAX / 2;
  char* block = NULL;
  if (bytes >= 0 && bytes < most)
    block = aligned_alloc(APL_CACHE_LINE, (size_t)((bytes + 2 * APL_CACHE_LINE - 1) / APL_CACHE_LINE) * APL_CACHE_LINE);
  if (!block)
    return apl_backend_error(base, APL_OUT_OF_MEMORY, "out of memory: %lld bytes for %s", (long long)bytes,
                             what ? what : "?");
  memcpy(block, &bytes, sizeof bytes);
  ctx->bytes += bytes;
  if (ctx->bytes > ctx->peak_bytes) ctx->peak_bytes = ctx->bytes;
  *data = block + APL_CACHE_LINE;
  return APL_SUCCESS;
}

static int apl_host_release(struct apl_context* base, void* data) {
  if (!data) return APL_SUCCESS;
  char* block = (char*)data - APL_CACHE_LINE;
  int64_t bytes;
  memcpy(&bytes, block, sizeof bytes);
  apl_of(base)->bytes -= bytes;
  free(block);
  return APL_SUCCESS;
}

static int apl_host_copy(struct apl_context* base, void* to, const void* from, int64_t bytes) {
  (void)base;
  if (bytes > 0) memcpy(to, from, (size_t)bytes);
  return APL_SUCCESS;
}

static int apl_host_launch(struct apl_context* base, const struct apl_launch* launch) {
  return apl_backend_error(base, APL_ERROR, "kernel %s is launched by a program for the host", launch->kernel);
}

static int apl_host_synchronise(struct apl_context* base) {
  struct apl_failure* failure = base->failure;
  if (failure->code == APL_OK) return APL_SUCCESS;
  const int status = apl_failed_check(base, failure);
  memset(failure, 0, sizeof *failure);
  return status;
}

#if APL_HAS_SPARSE
// The number of an array among the call's arguments; 0: it is none.
static uint64_t apl_number_of(const struct futhark_context* ctx, const void* data) {
  for (int32_t k = 0; k < ctx->argument_count; ++k)
    if (ctx->arguments[k].data == data) return ctx->arguments[k].number;
  return 0;
}
static int apl_host_made(struct apl_context* base, int status) {
  if (status == APL_SPARSE_FINE) return APL_SUCCESS;
  return apl_backend_error(base, status == APL_SPARSE_OUT_OF_MEMORY ? APL_OUT_OF_MEMORY : APL_ERROR,
                           "a sparse argument has no form (%d)", status);
}
static int apl_host_product(struct apl_context* base, const struct apl_sparse_product* product, int32_t* done) {
  struct futhark_context* ctx = apl_of(base);
  return apl_host_made(base, apl_sparse_cpu_product(&ctx->machine->sparse, product, apl_number_of(ctx, product->column),
                                                    apl_number_of(ctx, product->values), NULL, done));
}
static int apl_host_sampling(struct apl_context* base, const struct apl_sparse_sampling* sampling, int32_t* done) {
  struct futhark_context* ctx = apl_of(base);
  return apl_host_made(base,
                       apl_sparse_cpu_sampling(&ctx->machine->sparse, sampling, apl_number_of(ctx, sampling->column),
                                               apl_number_of(ctx, sampling->values), NULL, done));
}
static void apl_host_work(struct apl_context* base) { apl_sparse_cpu_work(&apl_of(base)->machine->sparse.call); }
#endif

static const struct apl_backend apl_the_backend = {
    .name = "c",
    .allocate = apl_host_allocate,
    .release = apl_host_release,
    .upload = apl_host_copy,
    .download = apl_host_copy,
    .copy = apl_host_copy,
    .launch = apl_host_launch,
    .choose = apl_choose,
    .choose_variant = apl_choose_variant,
    .synchronise = apl_host_synchronise,
    .finish = apl_host_synchronise,
#if APL_HAS_SPARSE
    .sparse_product = apl_host_product,
    .sparse_sampling = apl_host_sampling,
    .sparse_work = apl_host_work,
#endif
};

static int apl_machine_open(struct futhark_context* ctx) {
  ctx->machine = calloc(1, sizeof *ctx->machine);
  if (!ctx->machine) return apl_backend_error(&ctx->base, APL_OUT_OF_MEMORY, "out of memory");
  ctx->base.failure = &ctx->machine->failure;
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  ctx->device.processors = ctx->config->threads > 0 ? ctx->config->threads : cores > 0 ? (int32_t)cores : 1;
#if APL_HAS_SPARSE
  ctx->machine->sparse.threads = ctx->device.processors;
#endif
  return APL_SUCCESS;
}
static int apl_machine_clear(struct futhark_context* ctx) {
  (void)ctx;
#if APL_HAS_SPARSE
  apl_sparse_cpu_forget(&ctx->machine->sparse);
#endif
  return APL_SUCCESS;
}
static void apl_machine_close(struct futhark_context* ctx) {
  apl_machine_clear(ctx);
  free(ctx->machine);
}
static int apl_machine_prepare(struct futhark_context* ctx, const char* kernel, int32_t* spilled) {
  (void)ctx, (void)kernel;
  *spilled = 0;
  return APL_SUCCESS;
}

#endif
