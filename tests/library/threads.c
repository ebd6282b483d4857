// How many threads loops of a library of values.fut for CPUs have, with and without OpenMP, and what of that its caller
// sees. Prints nothing if it is right.
#ifdef _OPENMP
#include <omp.h>
#endif

#include "bodies.h"
#include "count_threads.h"

enum { kCount = 20000 };
static int32_t numbers[kCount], turned[kCount];
static int64_t indices[kCount];

// How many there are after a call; 0 if its result is wrong.
static int call_with(int threads) {
  struct futhark_context_config* cfg = futhark_context_config_new();
  futhark_context_config_set_num_threads(cfg, threads);
  struct futhark_context* ctx = futhark_context_new(cfg);
  struct futhark_i32_1d *x = futhark_new_i32_1d(ctx, numbers, kCount), *result = NULL;
  struct futhark_i64_1d* at = futhark_new_i64_1d(ctx, indices, kCount);
  int failed = futhark_entry_at(ctx, &result, x, at) || futhark_values_i32_1d(ctx, result, turned);
  for (int k = 0; k < kCount && !failed; ++k) failed = turned[k] != numbers[indices[k]];
  futhark_free_i32_1d(ctx, result);
  futhark_free_i64_1d(ctx, at);
  futhark_free_i32_1d(ctx, x);
  futhark_context_free(ctx);
  futhark_context_config_free(cfg);
  return failed ? 0 : count_threads();
}

int main(void) {
  for (int k = 0; k < kCount; ++k) numbers[k] = 3 * k, indices[k] = kCount - 1 - k;
#ifdef _OPENMP
  omp_set_num_threads(2);
#endif
  int wrong = is_wrong("threads when 1 was asked for", 1, call_with(1));
  wrong += is_wrong("threads when 5 were asked for", 5, call_with(5));
#ifdef _OPENMP
  wrong += is_wrong("the caller's own number of threads", 2, omp_get_max_threads());
#endif
  return wrong;
}
