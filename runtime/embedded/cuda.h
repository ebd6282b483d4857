// The CUDA backend of a generated library: the driver's API alone, found at run time.
#ifndef APL_LIBRARY_CUDA_H
#define APL_LIBRARY_CUDA_H

#include <ctype.h>

#include "runtime/backends/cuda/functions.h"
#include "runtime/backends/cuda/heap.h"
#include "runtime/backends/cuda/pool.h"
#include "runtime/embedded/choose.h"
#include "runtime/embedded/known.h"
#include "runtime/embedded/nvrtc.h"
#include "runtime/embedded/products.h"

struct apl_kernel {
  const char* name;
  CUfunction function;
  int32_t shared_bytes;  // dynamic ones that a launch can have: for more the kernel must ask
};

// Memory of the host that the device writes to. A failed check and scalars that kernels make for the host are seen
// without a copy, and few bytes come in one that waits for no pages.
enum { kStagedBytes = 1024, kCells = 64 };
struct apl_page {
  struct apl_failure failure;
  char staged[kStagedBytes];
  char cells[kCells][APL_CELL_BYTES];
};

struct apl_machine {
#define APL_CUDA_DECLARE(member, symbol, parameters) int(*member) parameters;
  APL_CUDA_FUNCTIONS(APL_CUDA_DECLARE)
#undef APL_CUDA_DECLARE
  CUdevice device;
  CUcontext context;
  CUstream stream;
  bool owns_stream;
  char architecture[16];
  struct apl_page* page;
  CUdeviceptr failed;  // the word of the device's memory that kernels look at (struct apl_context)
  bool is_cell_taken[kCells];
  bool is_idle;           // nothing was given to the stream since it was waited for
  CUevent before, after;  // a kernel, while profiling
  CUmodule* modules;
  int32_t module_count;
  struct apl_kernel* kernels;
  int32_t kernel_count;
  char** names;  // of kernels that got them when the program ran
  int32_t name_count;
  bool* is_loaded;  // one a lazy kernel
  struct apl_pool pool;
  uint64_t zeros;  // for what blocks of a kernel publish
  int64_t zero_bytes;
#if APL_HAS_PRODUCTS
  struct apl_made_operands operands;
#endif
};

static int apl_cuda_check(struct apl_context* base, int result, const char* what) {
  if (result == 0) return APL_SUCCESS;
  const struct apl_machine* m = apl_of(base)->machine;
  const char *name = NULL, *text = NULL;
  m->error_name(result, &name);
  m->error_string(result, &text);
  return apl_backend_error(base, result == kOutOfMemory ? APL_OUT_OF_MEMORY : APL_ERROR, "CUDA: %s: %s (%s)", what,
                           name ? name : "unknown error", text ? text : "");
}

// The device's context is current between the two, and what was current before after them.
static struct apl_machine* apl_cuda_enter(struct apl_context* base) {
  struct apl_machine* m = apl_of(base)->machine;
  m->context_push(m->context);
  m->is_idle = false;
  return m;
}
static int apl_cuda_leave(struct apl_context* base, int result, const char* what) {
  struct apl_machine* m = apl_of(base)->machine;
  CUcontext ignored = NULL;
  m->context_pop(&ignored);
  return apl_cuda_check(base, result, what);
}

// ---- memory ----
// What the pool calls; `user` is the context. A block that the pool has costs no call of the driver, so that these make
// the driver's context current themselves.

static int apl_cuda_take_memory(void* user, uint64_t bytes, uint64_t* data) {
  const struct futhark_context* ctx = user;
  const struct futhark_context_config* cfg = ctx->config;
  const struct apl_machine* m = ctx->machine;
  CUcontext ignored = NULL;
  int result = 0;
  m->context_push(m->context);
  if (cfg->allocate) {
    void* given = NULL;
    result = cfg->allocate(cfg->user, &given, (size_t)bytes, m->stream) == 0 ? 0 : kOutOfMemory;
    *data = (uintptr_t)given;
  } else {
    CUdeviceptr given = 0;
    result = m->allocate(&given, (size_t)bytes);
    *data = given;
  }
  m->context_pop(&ignored);
  return result;
}
static int apl_cuda_give_memory(void* user, uint64_t data) {
  const struct futhark_context* ctx = user;
  const struct futhark_context_config* cfg = ctx->config;
  const struct apl_machine* m = ctx->machine;
  CUcontext ignored = NULL;
  int result = 0;
  m->context_push(m->context);
  if (cfg->allocate) {
    cfg->release(cfg->user, (void*)(uintptr_t)data, m->stream);
  } else {
    result = m->free(data);
  }
  m->context_pop(&ignored);
  return result;
}
static int apl_cuda_wait(void* user) {
  const struct apl_machine* m = ((const struct futhark_context*)user)->machine;
  CUcontext ignored = NULL;
  m->context_push(m->context);
  const int result = m->stream_synchronise(m->stream);
  m->context_pop(&ignored);
  return result;
}

static int apl_cuda_allocate(struct apl_context* base, int64_t bytes, const char* what, void** data) {
  struct futhark_context* ctx = apl_of(base);
  struct apl_machine* m = ctx->machine;
  uint64_t block = 0;
  const int result = apl_pool_allocate(&m->pool, bytes, &block);
  char words[160];
  words[0] = 0;
  if (result != 0) snprintf(words, sizeof words, "allocating %lld bytes for %s", (long long)bytes, what ? what : "?");
  const int status = apl_cuda_check(base, result, words);
  if (status != APL_SUCCESS) return status;
  ctx->bytes = (int64_t)m->pool.requested;
  if (ctx->bytes > ctx->peak_bytes) ctx->peak_bytes = ctx->bytes;
  *data = (void*)(uintptr_t)block;
  return APL_SUCCESS;
}

// The number of a cell; kCells for what is none.
static int32_t apl_cell_of(const struct apl_machine* m, const void* data) {
  const uintptr_t first = (uintptr_t)m->page->cells, at = (uintptr_t)data;
  return at >= first && at < first + sizeof m->page->cells ? (int32_t)((at - first) / APL_CELL_BYTES) : kCells;
}
static int apl_cuda_allocate_cell(struct apl_context* base, void** data) {
  struct apl_machine* m = apl_of(base)->machine;
  int32_t cell = 0;
  while (cell < kCells && m->is_cell_taken[cell]) ++cell;
  if (cell == kCells) return APL_SUCCESS;
  m->is_cell_taken[cell] = true;
  *data = m->page->cells[cell];
  return APL_SUCCESS;
}

static int apl_cuda_release(struct apl_context* base, void* data) {
  if (!data) return APL_SUCCESS;
  const int32_t cell = apl_cell_of(apl_of(base)->machine, data);
  if (cell < kCells) {
    // A kernel that still writes to it comes before those that get it next.
    apl_of(base)->machine->is_cell_taken[cell] = false;
    return APL_SUCCESS;
  }
  struct apl_machine* m = apl_of(base)->machine;
  const int result = apl_pool_release(&m->pool, (uintptr_t)data);
  apl_of(base)->bytes = (int64_t)m->pool.requested;
  const int status = apl_cuda_check(base, result == APL_POOL_UNKNOWN ? 0 : result, "freeing memory");
  return result == APL_POOL_UNKNOWN
             ? apl_backend_error(base, APL_ERROR, "a block of device memory is released that is no allocation")
             : status;
}

static int apl_cuda_upload(struct apl_context* base, void* data, const void* host, int64_t bytes) {
  if (bytes <= 0) return APL_SUCCESS;
  struct apl_machine* m = apl_cuda_enter(base);
  return apl_cuda_leave(base, m->to_device((CUdeviceptr)(uintptr_t)data, host, (size_t)bytes, m->stream),
                        "copying to the device");
}
static int apl_cuda_download(struct apl_context* base, void* host, const void* data, int64_t bytes) {
  if (bytes <= 0) return APL_SUCCESS;
  struct apl_machine* m = apl_cuda_enter(base);
  const bool is_cell = apl_cell_of(m, data) < kCells, is_staged = !is_cell && bytes <= kStagedBytes;
  int result = 0;
  if (!is_cell)
    result = m->to_host(is_staged ? m->page->staged : host, (CUdeviceptr)(uintptr_t)data, (size_t)bytes, m->stream);
  if (result == 0) result = m->stream_synchronise(m->stream);
  if (result == 0 && is_cell) memcpy(host, data, (size_t)bytes);
  if (result == 0 && is_staged) memcpy(host, m->page->staged, (size_t)bytes);
  m->is_idle = result == 0;
  return apl_cuda_leave(base, result, "copying to the host");
}
static int apl_cuda_copy(struct apl_context* base, void* to, const void* from, int64_t bytes) {
  if (bytes <= 0) return APL_SUCCESS;
  struct apl_machine* m = apl_cuda_enter(base);
  return apl_cuda_leave(base,
                        m->copy((CUdeviceptr)(uintptr_t)to, (CUdeviceptr)(uintptr_t)from, (size_t)bytes, m->stream),
                        "copying on the device");
}

static int apl_cuda_zeros(struct apl_context* base, int64_t bytes, void** data) {
  struct apl_machine* m = apl_of(base)->machine;
  if (bytes > m->zero_bytes) {
    apl_cuda_enter(base);
    // What runs may still use those that were.
    int result = m->stream_synchronise(m->stream);
    if (result == 0 && m->zeros != 0) apl_cuda_give_memory(apl_of(base), m->zeros);
    if (result == 0) m->zeros = 0, m->zero_bytes = 0;
    if (result == 0) result = apl_cuda_take_memory(apl_of(base), (uint64_t)bytes, &m->zeros);
    if (result == 0) result = m->set_bytes(m->zeros, 0, (size_t)bytes, m->stream);
    const int status = apl_cuda_leave(base, result, "allocating memory for what blocks publish");
    if (status != APL_SUCCESS) return status;
    m->zero_bytes = bytes;
  }
  *data = (void*)(uintptr_t)m->zeros;
  return APL_SUCCESS;
}

// ---- kernels ----

// Room for what kernels of this text allocate. Where it stays too small, a thread that gets no memory says so.
static void apl_make_heap(struct apl_machine* m, const char* text) {
  int multiprocessors = 0, threads = 0;
  m->device_attribute(&multiprocessors, kMultiprocessors, m->device);
  m->device_attribute(&threads, kMultiprocessorThreads, m->device);
  apl_grow_heap(apl_heap_bytes(text, multiprocessors, threads), m->context_limit, m->set_context_limit);
}

static int apl_load_kernels(struct futhark_context* ctx, const char* text) {
  struct apl_machine* m = ctx->machine;
  char* code = apl_compile(ctx, text, m->architecture);
  if (!code) return APL_ERROR;
  CUmodule* grown = realloc(m->modules, (size_t)(m->module_count + 1) * sizeof *grown);
  int result = kOutOfMemory;
  apl_cuda_enter(&ctx->base);
  if (grown) {
    m->modules = grown;
    apl_make_heap(m, text);
    result = m->module_load(&m->modules[m->module_count], code);
    if (result == 0) ++m->module_count;
  }
  free(code);
  return apl_cuda_leave(&ctx->base, result, "loading kernels");
}

// NULL with an error.
static struct apl_kernel* apl_find_kernel(struct apl_context* base, const char* name) {
  struct apl_machine* m = apl_of(base)->machine;
  for (int32_t k = 0; k < m->kernel_count; ++k)
    if (m->kernels[k].name == name || strcmp(m->kernels[k].name, name) == 0) return &m->kernels[k];
  struct apl_kernel kernel = {name, NULL, 0};
  for (int32_t k = m->module_count; k-- > 0 && !kernel.function;)
    m->get_function(&kernel.function, m->modules[k], name);
  if (kernel.function) m->function_attribute(&kernel.shared_bytes, kMaxDynamicSharedBytes, kernel.function);
  struct apl_kernel* grown =
      kernel.function ? realloc(m->kernels, (size_t)(m->kernel_count + 1) * sizeof *grown) : NULL;
  if (!grown) {
    apl_backend_error(base, APL_ERROR, "no kernel %s is loaded", name);
    return NULL;
  }
  m->kernels = grown;
  m->kernels[m->kernel_count] = kernel;
  return &m->kernels[m->kernel_count++];
}

static int apl_machine_prepare(struct futhark_context* ctx, const char* kernel, int32_t* spilled) {
  struct apl_machine* m = ctx->machine;
  for (int32_t k = 0; apl_this_program.lazy_kernels && apl_this_program.lazy_kernels[k].name; ++k) {
    if (m->is_loaded[k] || strcmp(apl_this_program.lazy_kernels[k].name, kernel) != 0) continue;
    m->is_loaded[k] = true;
    const int status = apl_load_kernels(ctx, apl_this_program.lazy_kernels[k].text);
    if (status != APL_SUCCESS) return status;
  }
  apl_cuda_enter(&ctx->base);
  const struct apl_kernel* found = apl_find_kernel(&ctx->base, kernel);
  int bytes = 0;
  const int result = found ? m->function_attribute(&bytes, kLocalBytes, found->function) : 0;
  *spilled = bytes;
  const int status = apl_cuda_leave(&ctx->base, result, "asking what a kernel spills");
  return found ? status : APL_ERROR;
}

#if APL_HAS_KNOWN || APL_HAS_PRODUCTS
// A kernel whose name is made when the program runs.
static int apl_cuda_load_with(struct apl_context* base, const char* name, const char* defines, const char* text) {
  struct apl_machine* m = apl_of(base)->machine;
  for (int32_t k = 0; k < m->name_count; ++k)
    if (strcmp(m->names[k], name) == 0) return APL_SUCCESS;
  char** grown = realloc(m->names, (size_t)(m->name_count + 1) * sizeof *grown);
  if (grown) m->names = grown;
  char* own = grown ? strdup(name) : NULL;
  char* whole = own ? malloc(strlen(defines) + strlen(text) + 1) : NULL;
  if (!whole) {
    free(own);
    return apl_backend_error(base, APL_OUT_OF_MEMORY, "out of memory for a kernel's text");
  }
  strcat(strcpy(whole, defines), text);
  int status = apl_load_kernels(apl_of(base), whole);
  free(whole);
  if (status == APL_SUCCESS) {
    apl_cuda_enter(base);
    // Under a name that stays.
    if (!apl_find_kernel(base, own)) status = APL_ERROR;
    apl_cuda_leave(base, 0, "");
  }
  if (status == APL_SUCCESS)
    m->names[m->name_count++] = own;
  else
    free(own);
  return status;
}
#endif

static int apl_cuda_start(struct apl_machine* m, struct apl_kernel* kernel, const struct apl_launch* launch) {
  return m->launch(kernel->function, (unsigned)launch->blocks, 1, 1, (unsigned)launch->threads, 1, 1,
                   (unsigned)launch->shared_bytes, m->stream, launch->args, NULL);
}

// Alone on the device, between two events.
static int apl_cuda_profile(struct futhark_context* ctx, struct apl_kernel* kernel, const struct apl_launch* launch) {
  struct apl_machine* m = ctx->machine;
  float milliseconds = 0;
  int result = 0;
  if (!m->before) result = m->event_create(&m->before, 0);
  if (result == 0 && !m->after) result = m->event_create(&m->after, 0);
  if (result == 0) result = m->event_record(m->before, m->stream);
  if (result == 0) result = apl_cuda_start(m, kernel, launch);
  if (result == 0) result = m->event_record(m->after, m->stream);
  if (result == 0) result = m->event_synchronise(m->after);
  if (result == 0) result = m->event_elapsed(&milliseconds, m->before, m->after);
  const double end = apl_now();
  if (result == 0) apl_add_event(ctx, kernel->name, true, end - 1e3 * milliseconds, end);
  return result;
}

static int apl_cuda_launch(struct apl_context* base, const struct apl_launch* launch) {
  if (launch->blocks <= 0) return APL_SUCCESS;
  if (launch->blocks > INT32_MAX)
    return apl_backend_error(base, APL_ERROR, "kernel %s needs %lld blocks, %d at most can be launched", launch->kernel,
                             (long long)launch->blocks, INT32_MAX);
  struct apl_machine* m = apl_cuda_enter(base);
  struct apl_kernel* kernel = apl_find_kernel(base, launch->kernel);
  if (!kernel) {
    apl_cuda_leave(base, 0, "");
    return APL_ERROR;
  }
  int result = 0;
  if (launch->shared_bytes > kernel->shared_bytes) {
    result = m->set_function_attribute(kernel->function, kMaxDynamicSharedBytes, launch->shared_bytes);
    if (result == 0) kernel->shared_bytes = launch->shared_bytes;
  }
  if (result == 0)
    result =
        apl_of(base)->profiling ? apl_cuda_profile(apl_of(base), kernel, launch) : apl_cuda_start(m, kernel, launch);
  char words[160];
  words[0] = 0;
  if (result != 0)
    snprintf(words, sizeof words, "launching kernel %.60s with %lld blocks of %d threads", launch->kernel,
             (long long)launch->blocks, launch->threads);
  return apl_cuda_leave(base, result, words);
}

static int apl_cuda_synchronise(struct apl_context* base) {
  struct apl_machine* m = apl_of(base)->machine;
  if (m->is_idle && m->page->failure.code == APL_OK) return APL_SUCCESS;
  apl_cuda_enter(base);
  const int result = m->stream_synchronise(m->stream);
  m->is_idle = result == 0;
  const struct apl_failure failure = m->page->failure;
  const bool has_failed = result == 0 && failure.code != APL_OK;
  int forgotten = 0;
  if (has_failed) {
    memset(&m->page->failure, 0, sizeof failure);
    forgotten = m->set_bytes(m->failed, 0, sizeof(int32_t), m->stream);
  }
  const int status = apl_cuda_leave(base, result == 0 ? forgotten : result, "running kernels");
  return status == APL_SUCCESS && has_failed ? apl_failed_check(base, &failure) : status;
}

// Entries leave their kernels to the stream: who looks at results waits for them.
static int apl_cuda_finish(struct apl_context* base) {
  return apl_of(base)->config->debugging ? apl_cuda_synchronise(base) : APL_SUCCESS;
}

#if APL_HAS_PRODUCTS
static int apl_cuda_load(struct apl_context* base, const char* name, const char* text) {
  return apl_cuda_load_with(base, name, "", text);
}
static int apl_cuda_product(struct apl_context* base, const struct apl_sparse_product* product, int32_t* done) {
  return apl_device_product(base, &apl_of(base)->machine->operands, product, done);
}
static int apl_cuda_sddmm(struct apl_context* base, const struct apl_sparse_sddmm_product* sddmm, int32_t* done) {
  return apl_device_sddmm(base, &apl_of(base)->machine->operands, sddmm, done);
}
#endif

static const struct apl_backend apl_the_backend = {
    .name = "cuda",
    .allocate = apl_cuda_allocate,
    .allocate_cell = apl_cuda_allocate_cell,
    .release = apl_cuda_release,
    .upload = apl_cuda_upload,
    .download = apl_cuda_download,
    .copy = apl_cuda_copy,
    .zeros = apl_cuda_zeros,
    .launch = apl_cuda_launch,
    .choose = apl_choose,
    .choose_variant = apl_choose_variant,
    .constant = apl_constant_values,
    .synchronise = apl_cuda_synchronise,
    .finish = apl_cuda_finish,
#if APL_HAS_PRODUCTS
    .load = apl_cuda_load,
    .sparse_product = apl_cuda_product,
    .sparse_sddmm_product = apl_cuda_sddmm,
#endif
#if APL_HAS_KNOWN
    .load_with = apl_cuda_load_with,
    .is_known_matrix = apl_is_known_matrix,
#endif
};

#endif
