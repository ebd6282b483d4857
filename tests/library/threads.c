// How many threads a library of values.fut for CPUs has, and what of that its caller sees. Prints nothing if it is
// right.
#include <omp.h>

#include "bodies.h"
#include "count_threads.h"

// How many there are after a call.
static int call_with(int threads) {
  const int32_t numbers[] = {1, 2, 3, 4};
  struct futhark_context_config* cfg = futhark_context_config_new();
  futhark_context_config_set_num_threads(cfg, threads);
  struct futhark_context* ctx = futhark_context_new(cfg);
  struct futhark_i32_2d *x = futhark_new_i32_2d(ctx, numbers, 2, 2), *result = NULL;
  futhark_entry_product(ctx, &result, x, x);
  futhark_free_i32_2d(ctx, result);
  futhark_free_i32_2d(ctx, x);
  futhark_context_free(ctx);
  futhark_context_config_free(cfg);
  return count_threads();
}

int main(void) {
  omp_set_num_threads(2);
  int wrong = is_wrong("threads when 1 was asked for", 1, call_with(1));
  wrong += is_wrong("threads when 5 were asked for", 5, call_with(5));
  wrong += is_wrong("the caller's own number of threads", 2, omp_get_max_threads());
  return wrong;
}
