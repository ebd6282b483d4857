// Uses the library that research-compiler makes of norms.toy.
#include <stdio.h>

#include "norms.h"

int main(void) {
  const float x[] = {1, 2, 3}, y[] = {3, 2, 0};
  struct futhark_context_config* cfg = futhark_context_config_new();
  struct futhark_context* ctx = futhark_context_new(cfg);
  struct futhark_f32_1d *xs = futhark_new_f32_1d(ctx, x, 3), *ys = futhark_new_f32_1d(ctx, y, 3), *zs = NULL;
  float distance = 0, z[3] = {0};
  int bad = futhark_entry_distance(ctx, &distance, xs, ys) || futhark_entry_axpy(ctx, &zs, 10, xs, ys) ||
            futhark_values_f32_1d(ctx, zs, z);
  printf("distance %g, axpy %g %g %g\n", distance, z[0], z[1], z[2]);
  bad = bad || distance != 13 || z[0] != 13 || z[1] != 22 || z[2] != 30;
  futhark_free_f32_1d(ctx, xs);
  futhark_free_f32_1d(ctx, ys);
  if (zs) futhark_free_f32_1d(ctx, zs);
  futhark_context_free(ctx);
  futhark_context_config_free(cfg);
  return bad;
}
