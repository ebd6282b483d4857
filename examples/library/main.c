// A C program that uses a library made by aplc: the product of two small matrices.
//
//   aplc c --library -o mm0 ../mm0.fut
//   cc -O3 -fopenmp mm0.c main.c -lm -o product
#include <stdio.h>
#include <stdlib.h>

#include "mm0.h"

static int fail(struct futhark_context* ctx) {
  char* error = futhark_context_get_error(ctx);
  fprintf(stderr, "%s\n", error ? error : "unknown error");
  free(error);
  return 1;
}

int main(void) {
  const float x[] = {6, 2, -2, 5}, y[] = {-2, 5, 1, -3, 4, 0};  // 2 by 2, and 3 by 2
  float z[6];
  struct futhark_context_config* cfg = futhark_context_config_new();
  struct futhark_context* ctx = futhark_context_new(cfg);
  struct futhark_f32_2d *X = futhark_new_f32_2d(ctx, x, 2, 2), *Y = futhark_new_f32_2d(ctx, y, 3, 2), *Z = NULL;
  if (!X || !Y) return fail(ctx);
  // On a GPU the entry returns before its kernels are done; _values waits for them, and has their errors.
  if (futhark_entry_mm0(ctx, &Z, X, Y) != 0) return fail(ctx);
  if (futhark_values_f32_2d(ctx, Z, z) != 0) return fail(ctx);
  const int64_t* shape = futhark_shape_f32_2d(ctx, Z);
  for (int64_t i = 0; i < shape[0]; ++i)
    for (int64_t j = 0; j < shape[1]; ++j) printf("%g%c", z[i * shape[1] + j], j + 1 < shape[1] ? ' ' : '\n');
  futhark_free_f32_2d(ctx, X);
  futhark_free_f32_2d(ctx, Y);
  futhark_free_f32_2d(ctx, Z);
  futhark_context_free(ctx);
  futhark_context_config_free(cfg);
  return 0;
}
