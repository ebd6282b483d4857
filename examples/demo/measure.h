// What both programs of the demo share: clocks, numbers, and calls of a library made by aplc.
#pragma once

#include <math.h>
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// The best time of `statement`: at least `runs` of them, and as many as half a second has room for.
#define BEST(best, runs, statement)                                         \
  do {                                                                      \
    (best) = INFINITY;                                                      \
    const double begin_ = seconds();                                        \
    for (int run_ = 0; run_ < (runs) || seconds() - begin_ < 0.5; ++run_) { \
      const double start_ = seconds();                                      \
      statement;                                                            \
      if (seconds() - start_ < (best)) (best) = seconds() - start_;         \
    }                                                                       \
  } while (0)

static void* allocate(int64_t bytes) {
  void* memory = malloc((size_t)bytes);
  if (!memory) {
    fprintf(stderr, "no memory for %lld bytes\n", (long long)bytes);
    exit(1);
  }
  return memory;
}

// Multiples of 1/8 from 0 to 1, so that sums are exact in any order.
static float* numbers(int64_t count, uint64_t seed) {
  float* all = allocate(count * (int64_t)sizeof(float));
  for (int64_t k = 0; k < count; ++k) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    all[k] = (float)((int)(seed >> 33) % 9) / 8;
  }
  return all;
}

static void want_equal(const float* x, const float* y, int64_t count) {
  for (int64_t k = 0; k < count; ++k)
    if (x[k] != y[k]) {
      fprintf(stderr, "element %lld: %g and %g\n", (long long)k, x[k], y[k]);
      exit(1);
    }
}

static void check(struct futhark_context* ctx, int failed) {
  if (!failed) return;
  char* error = futhark_context_get_error(ctx);
  fprintf(stderr, "%s\n", error ? error : "unknown error");
  free(error);
  exit(1);
}

static void row(const char* what, double time, double baseline) {
  const double ratio = baseline / time;
  printf("  %-52s %9.2f ms %7.*fx\n", what, time * 1e3, ratio < 100 ? 1 : 0, ratio);
}

static void row_of_library(double time, double baseline) {
  char what[64];
  snprintf(what, sizeof what, "aplc, %d thread%s", omp_get_max_threads(), omp_get_max_threads() == 1 ? "" : "s");
  row(what, time, baseline);
}
