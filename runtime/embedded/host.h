// The C backend of a generated library: host memory; kernels are functions of the program itself.
#ifndef APL_HOST_H
#define APL_HOST_H

#include "runtime/backends/host_blocks.h"
#include "runtime/embedded/choose.h"
#include "runtime/embedded/known.h"
#include "runtime/embedded/object.h"

struct apl_machine {
  struct apl_failure failure;
  struct apl_host_blocks blocks;
#if APL_HAS_PRODUCTS
  struct apl_sparse_cpu_operands sparse;
#endif
};

static int apl_host_allocate(struct apl_context* base, int64_t bytes, const char* what, void** data) {
  struct futhark_context* ctx = apl_of(base);
  *data = apl_host_take(&ctx->machine->blocks, bytes);
  if (!*data)
    return apl_backend_error(base, APL_OUT_OF_MEMORY, "out of memory: %lld bytes for %s", (long long)bytes,
                             what ? what : "?");
  ctx->bytes += bytes;
  if (ctx->bytes > ctx->peak_bytes) ctx->peak_bytes = ctx->bytes;
  return APL_SUCCESS;
}

static int apl_host_release(struct apl_context* base, void* data) {
  struct futhark_context* ctx = apl_of(base);
  if (!data) return APL_SUCCESS;
  ctx->bytes -= apl_host_bytes(data);
  apl_host_give(&ctx->machine->blocks, data);
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

#if APL_HAS_PRODUCTS
// What a product's kernels say, and by which plan it is done.
static int apl_host_made(struct apl_context* base, int status, const struct apl_sparse_plan* plan, int32_t done) {
  struct futhark_context* ctx = apl_of(base);
  const struct apl_sparse_cpu_packed* packed = ctx->machine->sparse.call.packed;
  if (status == APL_SPARSE_FINE && plan && done)
    apl_log(ctx, "sparse %s by the plan: %lld blocks, %lld ELL rows, %lld nnz segments",
            plan->sddmm ? "SDDMM" : "product", (long long)packed->tiles->blocks, (long long)packed->tiles->ell_rows,
            (long long)packed->tiles->segments);
  if (status == APL_SPARSE_FINE) return APL_SUCCESS;
  return apl_backend_error(base, status == APL_SPARSE_OUT_OF_MEMORY ? APL_OUT_OF_MEMORY : APL_ERROR,
                           "sparse operand: %s", apl_sparse_status_text(status));
}
static int apl_host_product(struct apl_context* base, const struct apl_sparse_product* product, int32_t* done) {
  struct futhark_context* ctx = apl_of(base);
  const struct apl_argument pattern = apl_argument_of(ctx, product->column);
  const struct apl_sparse_plan* plan = pattern.plans ? pattern.plans[0] : NULL;
  const int status = apl_sparse_cpu_product(&ctx->machine->sparse, product, pattern.number,
                                            apl_argument_of(ctx, product->values).number, plan, done);
  return apl_host_made(base, status, plan, *done);
}
static int apl_host_sddmm(struct apl_context* base, const struct apl_sparse_sddmm_product* sddmm, int32_t* done) {
  struct futhark_context* ctx = apl_of(base);
  const struct apl_argument pattern = apl_argument_of(ctx, sddmm->column);
  const struct apl_sparse_plan* plan = pattern.plans ? pattern.plans[1] : NULL;
  const int status = apl_sparse_cpu_sddmm(&ctx->machine->sparse, sddmm, pattern.number,
                                          apl_argument_of(ctx, sddmm->values).number, plan, done);
  return apl_host_made(base, status, plan, *done);
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
    .constant = apl_constant_values,
    .synchronise = apl_host_synchronise,
    .finish = apl_host_synchronise,
#if APL_HAS_PRODUCTS
    .sparse_product = apl_host_product,
    .sparse_sddmm_product = apl_host_sddmm,
    .sparse_work = apl_host_work,
#endif
#if APL_HAS_KNOWN
    .is_known_matrix = apl_is_known_matrix,
#endif
};

static int apl_swap_threads(int threads) {
  int before = 0;
#ifdef _OPENMP
  if (threads > 0) {
    before = omp_get_max_threads();
    omp_set_num_threads(threads);
  }
#else
  // -1: nothing was asked for.
  if (threads != 0) {
    before = apl_asked_threads > 0 ? apl_asked_threads : -1;
    apl_asked_threads = threads;
  }
#endif
  return before;
}

static int apl_machine_open(struct futhark_context* ctx) {
  ctx->machine = calloc(1, sizeof *ctx->machine);
  if (!ctx->machine) return apl_backend_error(&ctx->base, APL_OUT_OF_MEMORY, "out of memory");
  ctx->base.failure = &ctx->machine->failure;
  ctx->device.multiprocessors = ctx->config->threads > 0 ? ctx->config->threads : (int32_t)apl_threads();
#if APL_HAS_PRODUCTS
  ctx->machine->sparse.threads = ctx->device.multiprocessors;
#endif
  return APL_SUCCESS;
}
static int apl_machine_clear(struct futhark_context* ctx) {
  apl_host_drop_all(&ctx->machine->blocks);
#if APL_HAS_PRODUCTS
  apl_sparse_cpu_forget(&ctx->machine->sparse);
#endif
  return APL_SUCCESS;
}
static void apl_machine_forget(struct futhark_context* ctx, uint64_t number) {
  (void)ctx, (void)number;
#if APL_HAS_PRODUCTS
  apl_sparse_cpu_forget_pattern(&ctx->machine->sparse, number);
#endif
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
