// How many threads a product of a library for CPUs has that is compiled without OpenMP, and that its results are those
// of one thread. Prints nothing if it is right.
#include <stdio.h>
#include <string.h>

#include "count_threads.h"
#include "mm0.h"

enum { kSize = 200 };
static float x[kSize * kSize], first[kSize * kSize], again[kSize * kSize];

// How many there are after a product.
static int product_with(int threads, float* result) {
  struct futhark_context_config* cfg = futhark_context_config_new();
  if (threads > 0) futhark_context_config_set_num_threads(cfg, threads);
  struct futhark_context* ctx = futhark_context_new(cfg);
  struct futhark_f32_2d *a = futhark_new_f32_2d(ctx, x, kSize, kSize), *c = NULL;
  if (futhark_entry_mm0(ctx, &c, a, a) != 0 || futhark_values_f32_2d(ctx, c, result) != 0) printf("no product\n");
  futhark_free_f32_2d(ctx, c);
  futhark_free_f32_2d(ctx, a);
  futhark_context_free(ctx);
  futhark_context_config_free(cfg);
  return count_threads();
}

int main(void) {
  for (int k = 0; k < kSize * kSize; ++k) x[k] = (float)(k % 7 - 3);
  int wrong = is_wrong("threads when 1 was asked for", 1, product_with(1, first));
  wrong += is_wrong("threads when 3 were asked for", 3, product_with(3, again));
  wrong += is_wrong("results that differ", 0, memcmp(first, again, sizeof first) != 0);
  // By OMP_NUM_THREADS, which is 5.
  wrong += is_wrong("threads when none were asked for", 5, product_with(0, again));
  wrong += is_wrong("results that differ", 0, memcmp(first, again, sizeof first) != 0);
  return wrong;
}
