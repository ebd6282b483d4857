// Where a CUDA library of values.fut has its device memory from, and what it holds of it. Prints nothing if it is
// right.
#include <dlfcn.h>
#include <stdint.h>

#include "bodies.h"
#include "want.h"

// Of the emulated device.
static int64_t held_bytes(void) {
  size_t free_bytes = 0, total = 0;
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  int (*get_info)(size_t*, size_t*) = NULL;
  if (driver) *(void**)&get_info = dlsym(driver, "cuMemGetInfo_v2");
  if (!get_info || get_info(&free_bytes, &total) != 0) return -1;
  return (int64_t)(total - free_bytes);
}

// The caller's memory: the host's, which the emulated device does not know, so that only empty arrays come of it.
static int64_t given, taken_back;
static int allocate(void* user, void** data, size_t bytes, void* stream) {
  (void)stream;
  if (bytes > 64) return 1;
  *data = malloc(bytes);
  ++*(int64_t*)user;
  return 0;
}
static void release(void* user, void* data, void* stream) {
  (void)user, (void)stream;
  free(data);
  ++taken_back;
}

// Arrays whose sizes vary use each other's memory.
static void varying(void) {
  enum { kMost = 1 << 18, kRounds = 400 };  // numbers of an array
  int32_t* numbers = calloc(kMost, sizeof *numbers);
  int64_t most = 0, all = 0;
  uint32_t random = 1;
  for (int round = 0; round < kRounds; ++round) {
    random = random * 1664525u + 1013904223u;
    const int64_t n = (random >> 8) % kMost;
    struct futhark_i32_1d* array = futhark_new_i32_1d(ctx, numbers, n);
    WANT(array != NULL && futhark_free_i32_1d(ctx, array) == 0);
    if (held_bytes() > most) most = held_bytes();
    all += n * 4;
  }
  free(numbers);
  WANT(all > (int64_t)180 << 20);
  WANT(most > 0 && most <= (int64_t)65 << 20);  // what the pool may always hold, and the library's own
}

// What does not fit is an error, after which all is as it was.
static void exhausted(void) {
  enum { kRows = 40 << 20 };
  struct futhark_i32_2d* rows = NULL;
  WANT(futhark_entry_rows(ctx, &rows, kRows, 4) == FUTHARK_OUT_OF_MEMORY);
  WANT(error_has("CUDA_ERROR_OUT_OF_MEMORY"));
  WANT(held_bytes() < 4096);  // whatever was free has gone back
  WANT(futhark_entry_rows(ctx, &rows, 2, 4) == 0 && futhark_free_i32_2d(ctx, rows) == 0);
}

static void clears(void) {
  const int32_t numbers[1000] = {0};
  const int64_t before = held_bytes();
  struct futhark_i32_1d* array = futhark_new_i32_1d(ctx, numbers, 1000);
  WANT(held_bytes() >= before + 4000);
  WANT(futhark_free_i32_1d(ctx, array) == 0 && held_bytes() >= before + 4000);
  WANT(futhark_context_clear_caches(ctx) == 0 && held_bytes() < 4000);
}

static void begin(struct futhark_context_config* cfg) {
  ctx = futhark_context_new(cfg);
  char* error = futhark_context_get_error(ctx);
  if (error) printf("no context: %s\n", error);
  wrong += error != NULL;
  free(error);
}
static void end(struct futhark_context_config* cfg) {
  futhark_context_free(ctx);
  futhark_context_config_free(cfg);
}

int main(void) {
  const int32_t numbers[4] = {0};
  struct futhark_context_config* cfg = futhark_context_config_new();
  begin(cfg);
  clears();
  varying();
  exhausted();
  futhark_new_i32_1d(ctx, numbers, 4);  // left to the context
  end(cfg);
  if (held_bytes() != 0) printf("%lld bytes are lost\n", (long long)held_bytes());
  wrong += held_bytes() != 0;

  cfg = futhark_context_config_new();
  futhark_context_config_set_allocator(cfg, allocate, release, &given);
  begin(cfg);
  struct futhark_i32_1d* array = futhark_new_i32_1d(ctx, numbers, 0);
  WANT(array != NULL && given == 1 && taken_back == 0);
  WANT(futhark_free_i32_1d(ctx, array) == 0 && taken_back == 1);  // at once
  WANT(futhark_new_i32_1d(ctx, numbers, 0) != NULL && given == 2);
  WANT(futhark_new_i32_1d(ctx, numbers, 17) == NULL && error_has("CUDA_ERROR_OUT_OF_MEMORY"));
  end(cfg);
  if (taken_back != 2) printf("%lld blocks of %lld were given back\n", (long long)taken_back, (long long)given);
  return wrong != 0 || taken_back != 2;
}
