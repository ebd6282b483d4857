// Finding the driver and a device, and what is set up there. `apl_device_records` stands before: records of machines by
// name; the last one is that of any GPU, "gpu".
#ifndef APL_LIBRARY_CUDA_CONTEXT_H
#define APL_LIBRARY_CUDA_CONTEXT_H

#include "runtime/embedded/cuda.h"

void futhark_context_config_set_device(struct futhark_context_config* cfg, const char* s) {
  free(cfg->device);
  cfg->device = apl_copied(s);
}
void futhark_context_config_add_nvrtc_option(struct futhark_context_config* cfg, const char* opt) {
  char** grown = realloc(cfg->options, (size_t)(cfg->option_count + 1) * sizeof *grown);
  if (!grown) return;
  cfg->options = grown;
  cfg->options[cfg->option_count++] = apl_copied(opt);
}
void futhark_context_config_set_stream(struct futhark_context_config* cfg, void* stream) { cfg->stream = stream; }
void futhark_context_config_set_allocator(struct futhark_context_config* cfg,
                                          int (*allocate)(void* user, void** data, size_t bytes, void* stream),
                                          void (*release)(void* user, void* data, void* stream), void* user) {
  cfg->allocate = allocate;
  cfg->release = release;
  cfg->user = user;
}

// ---- whom plans are chosen for ----

#if APL_HAS_PLANS

// A record that the driver's name has in it, else the one of any GPU, with the device's own numbers.
static void apl_describe_device(struct futhark_context* ctx, const char* name) {
  struct apl_machine* m = ctx->machine;
  char lower[256];
  size_t length = 0;
  for (; name[length] && length + 1 < sizeof lower; ++length)
    lower[length] = (char)tolower((unsigned char)name[length]);
  lower[length] = '\0';
  const struct apl_device_record* record = apl_device_records;
  while (strcmp(record->name, "gpu") != 0 && !strstr(lower, record->name)) ++record;
  int line = 0;
  apl_device_parse(record->text, &ctx->device, &line);
  const int32_t attributes[] = {kMultiprocessors, kBlockShared, kMultiprocessorShared, kMultiprocessorThreads,
                                kMultiprocessorRegisters};
  int32_t* const facts[] = {&ctx->device.multiprocessors, &ctx->device.block_shared, &ctx->device.multiprocessor_shared,
                            &ctx->device.multiprocessor_threads, &ctx->device.registers};
  for (int k = 0; k < 5; ++k) {
    int value = 0;
    if (m->device_attribute(&value, attributes[k], m->device) == 0 && value > 0) *facts[k] = value;
  }
  if (strcmp(record->name, "gpu") != 0) return;
  int clock = 0, memory = 0, width = 0;
  if (m->device_attribute(&clock, kClockRate, m->device) == 0 && clock > 0) ctx->device.clock_ghz = clock * 1e-6;
  if (m->device_attribute(&memory, kMemoryClockRate, m->device) == 0 && memory > 0 &&
      m->device_attribute(&width, kMemoryBusWidth, m->device) == 0 && width > 0)
    ctx->device.memory_gbs = memory * 1e-6 * width / 8 * 2;
}

#endif

static int apl_find_device(struct futhark_context* ctx, char* name, size_t capacity) {
  struct apl_machine* m = ctx->machine;
  const char* wanted = ctx->config->device;
  int count = 0;
  const int status = apl_cuda_check(&ctx->base, m->device_count(&count), "counting devices");
  if (status != APL_SUCCESS) return status;
  for (int k = 0; k < count; ++k) {
    if (m->device_get(&m->device, k) != 0 || m->device_name(name, (int)capacity, m->device) != 0) continue;
    if (!wanted || !*wanted || (wanted[0] == '#' ? atoi(wanted + 1) == k : strstr(name, wanted) != NULL))
      return APL_SUCCESS;
  }
  return apl_backend_error(&ctx->base, APL_ERROR, "no CUDA device %s among %d", wanted ? wanted : "", count);
}

static int apl_start_device(struct futhark_context* ctx) {
  struct apl_machine* m = ctx->machine;
  int result = 0, major = 0, minor = 0;
  if (result == 0) result = m->device_attribute(&major, kCapabilityMajor, m->device);
  if (result == 0) result = m->device_attribute(&minor, kCapabilityMinor, m->device);
  // Matrix units' asynchronous products are of this one architecture alone (device.h).
  snprintf(m->architecture, sizeof m->architecture, "sm_%d%d%s", major, minor, major == 9 ? "a" : "");
  if (result == 0) result = m->primary_retain(&m->context, m->device);
  if (result != 0) return apl_cuda_check(&ctx->base, result, "opening the device");
  apl_cuda_enter(&ctx->base);
  m->stream = (CUstream)ctx->config->stream;
  if (!m->stream) {
    result = m->stream_create(&m->stream, kNonBlocking);
    m->owns_stream = result == 0;
  }
  void* page = NULL;
  if (result == 0) result = m->host_allocate(&page, sizeof *m->page, kHostMapped);
  if (result == 0) {
    m->page = page;
    memset(page, 0, sizeof *m->page);
    ctx->base.failure = &m->page->failure;
    result = m->allocate(&m->failed, sizeof(int32_t));
  }
  if (result == 0) result = m->set_bytes(m->failed, 0, sizeof(int32_t), m->stream);
  ctx->base.failed = (int32_t*)m->failed;
  return apl_cuda_leave(&ctx->base, result, "setting up the device");
}

static int apl_machine_clear(struct futhark_context* ctx) {
#if APL_HAS_PRODUCTS
  apl_drop_operands(&ctx->base, &ctx->machine->operands, 0);
#endif
  apl_cuda_enter(&ctx->base);
  return apl_cuda_leave(&ctx->base, apl_pool_clear(&ctx->machine->pool), "freeing memory");
}

static void apl_machine_close(struct futhark_context* ctx) {
  struct apl_machine* m = ctx->machine;
  if (m->context) {
    apl_cuda_enter(&ctx->base);
    if (m->stream) m->stream_synchronise(m->stream);
    apl_pool_close(&m->pool);
    if (m->zeros != 0) apl_cuda_give_memory(ctx, m->zeros);
    if (m->failed != 0) m->free(m->failed);
    if (m->page) m->host_free(m->page);
    if (m->before) m->event_destroy(m->before);
    if (m->after) m->event_destroy(m->after);
    for (int32_t k = 0; k < m->module_count; ++k) m->module_unload(m->modules[k]);
    if (m->owns_stream) m->stream_destroy(m->stream);
    apl_cuda_leave(&ctx->base, 0, "");
    m->primary_release(m->device);
  }
  free(m->modules);
  free(m->kernels);
  for (int32_t k = 0; k < m->name_count; ++k) free(m->names[k]);
  free(m->names);
  free(m->is_loaded);
  free(m);
}

static int apl_open_driver(struct futhark_context* ctx) {
  static const char* const names[] = {"libcuda.so.1", "libcuda.so", NULL};
  struct apl_machine* m = ctx->machine;
  void* library = apl_open_library(names);
  if (!library) return apl_backend_error(&ctx->base, APL_ERROR, "libcuda.so.1 is not on this machine");
#define APL_CUDA_BIND(member, symbol, parameters)        \
  if (!(*(void**)(&m->member) = dlsym(library, symbol))) \
    return apl_backend_error(&ctx->base, APL_ERROR, "the CUDA driver of this machine has no %s", symbol);
  APL_CUDA_FUNCTIONS(APL_CUDA_BIND)
#undef APL_CUDA_BIND
  return apl_cuda_check(&ctx->base, m->init(0), "starting the driver");
}

static void apl_machine_forget(struct futhark_context* ctx, uint64_t number) {
  (void)ctx, (void)number;
#if APL_HAS_PRODUCTS
  if (number) apl_drop_operands(&ctx->base, &ctx->machine->operands, number);
#endif
}
// No threads of this machine work.
static int apl_swap_threads(int threads) {
  (void)threads;
  return 0;
}

static int apl_machine_open(struct futhark_context* ctx) {
  char name[256] = "";
  int32_t lazy_kernels = 0;
  while (apl_this_program.lazy_kernels && apl_this_program.lazy_kernels[lazy_kernels].name) ++lazy_kernels;
  struct apl_machine* m = ctx->machine = calloc(1, sizeof *m);
  if (m) {
    m->is_loaded = calloc((size_t)lazy_kernels + 1, sizeof *m->is_loaded);
    m->pool.source = (struct apl_pool_source){.user = ctx,
                                              .allocate = apl_cuda_take_memory,
                                              .release = apl_cuda_give_memory,
                                              .wait = apl_cuda_wait,
                                              .out_of_memory = kOutOfMemory,
                                              .is_direct = ctx->config->allocate != NULL};
  }
  int status = m && m->is_loaded ? APL_SUCCESS : apl_backend_error(&ctx->base, APL_OUT_OF_MEMORY, "out of memory");
  if (status == APL_SUCCESS) status = apl_open_driver(ctx);
  if (status == APL_SUCCESS) status = apl_find_device(ctx, name, sizeof name);
  if (status == APL_SUCCESS) status = apl_start_device(ctx);
#if APL_HAS_PLANS
  if (status == APL_SUCCESS && !apl_this_program.device[0]) apl_describe_device(ctx, name);
#endif
  if (status == APL_SUCCESS && apl_this_program.kernels) status = apl_load_kernels(ctx, apl_this_program.kernels);
  if (status == APL_SUCCESS) {
    apl_log(ctx, "device %s, %s", name, m->architecture);
    return status;
  }
  if (m) apl_machine_close(ctx);
  ctx->machine = NULL;
  return status;
}

#endif
