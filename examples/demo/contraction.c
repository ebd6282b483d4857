// A contraction of rank 6: plain C loops beside the library that aplc makes of contraction.fut.
//   aplc c --library -o contraction contraction.fut
//   cc -O3 -march=native -fopenmp -I. contraction.c PATH/contraction.c -lm
//   ./a.out [SIZE OF EACH DIM [LENGTH OF THE SUM]]
#include "contraction.h"

#include "measure.h"

// Z_abcijk is the sum over q of X_icaq * Y_qbjk, each dim of size n.

// The loops of the source, in its order.
static void as_written(int n, int sum, const float* restrict X, const float* restrict Y, float* restrict Z) {
  for (int a = 0; a < n; ++a)
    for (int b = 0; b < n; ++b)
      for (int c = 0; c < n; ++c)
        for (int i = 0; i < n; ++i)
          for (int j = 0; j < n; ++j)
            for (int k = 0; k < n; ++k) {
              float z = 0;
              for (int q = 0; q < sum; ++q) z += X[((i * n + c) * n + a) * sum + q] * Y[((q * n + b) * n + j) * n + k];
              Z[((((a * n + b) * n + c) * n + i) * n + j) * n + k] = z;
            }
}

// The sum outside of the dims that are contiguous in Y and Z, so that the compiler makes vector code.
static void reordered(int n, int sum, const float* restrict X, const float* restrict Y, float* restrict Z) {
  for (int a = 0; a < n; ++a)
    for (int b = 0; b < n; ++b)
      for (int c = 0; c < n; ++c)
        for (int i = 0; i < n; ++i) {
          float* z = Z + (((int64_t)a * n + b) * n + c) * n * n * n + i * n * n;
          for (int jk = 0; jk < n * n; ++jk) z[jk] = 0;
          for (int q = 0; q < sum; ++q) {
            const float x = X[((i * n + c) * n + a) * sum + q];
            for (int jk = 0; jk < n * n; ++jk) z[jk] += x * Y[(q * n + b) * n * n + jk];
          }
        }
}

int main(int argc, char** argv) {
  const int n = argc > 1 ? atoi(argv[1]) : 12, sum = argc > 2 ? atoi(argv[2]) : 512;
  const int64_t operand = (int64_t)n * n * n * sum, result = (int64_t)n * n * n * n * n * n;
  float *x = numbers(operand, 1), *y = numbers(operand, 2);
  float *wanted = allocate(result * 4), *z = allocate(result * 4);

  struct futhark_context_config* cfg = futhark_context_config_new();
  struct futhark_context* ctx = futhark_context_new(cfg);
  struct futhark_f32_4d *X = futhark_new_f32_4d(ctx, x, n, n, n, sum), *Y = futhark_new_f32_4d(ctx, y, sum, n, n, n);
  check(ctx, !X || !Y);
  double written, vectors, ours;
  // Memory that nobody has written to yet would be a part of the first time.
  BEST(vectors, 2, reordered(n, sum, x, y, wanted));
  BEST(written, 1, as_written(n, sum, x, y, z));
  want_equal(z, wanted, result);
  struct futhark_f32_6d* Z = NULL;
  BEST(ours, 3, {
    if (Z) futhark_free_f32_6d(ctx, Z);
    check(ctx, futhark_entry_contraction(ctx, &Z, X, Y));
    check(ctx, futhark_context_sync(ctx));
  });
  check(ctx, futhark_values_f32_6d(ctx, Z, z));
  want_equal(z, wanted, result);
  row("plain C, the loops of the source", written, written);
  row("plain C, the sum moved outwards for vector code", vectors, written);
  row_of_library(ours, written);
  return 0;
}
