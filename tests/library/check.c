// What a library of values.fut promises, on any backend. Prints nothing if all of it holds.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bodies.h"
#include "want.h"

static void records(void) {
  struct futhark_opaque_tup2_f32_f32 *position, *moved_to;
  struct futhark_opaque_body *body, *moved, *again;
  const uint8_t tags[] = {7, 9};
  uint8_t seen[2];
  struct futhark_u8_1d *tag_array = futhark_new_u8_1d(ctx, tags, 2), *tags_again;
  WANT(futhark_new_opaque_tup2_f32_f32(ctx, &position, 1.5f, 2.0f) == 0);
  WANT(futhark_new_opaque_body(ctx, &body, 80.0, position, tag_array) == 0);
  // The whole keeps what its parts need.
  WANT(futhark_free_opaque_tup2_f32_f32(ctx, position) == 0);
  WANT(futhark_free_u8_1d(ctx, tag_array) == 0);
  WANT(futhark_entry_move(ctx, &moved, body, 3.0f) == 0);

  void* bytes = NULL;
  size_t size = 0;
  WANT(futhark_store_opaque_body(ctx, moved, &bytes, &size) == 0);
  again = futhark_restore_opaque_body(ctx, bytes);
  WANT(again != NULL);
  ((char*)bytes)[3] = 'x';
  WANT(futhark_restore_opaque_body(ctx, bytes) == NULL && error_has("body"));
  free(bytes);

  double mass = 0;
  float x = 0;
  WANT(futhark_project_opaque_body_mass(ctx, &mass, again) == 0 && mass == 80.0);
  WANT(futhark_project_opaque_body_position(ctx, &moved_to, again) == 0);
  WANT(futhark_project_opaque_tup2_f32_f32_0(ctx, &x, moved_to) == 0 && x == 4.5f);
  WANT(futhark_project_opaque_body_tags(ctx, &tags_again, again) == 0);
  WANT(futhark_free_opaque_body(ctx, again) == 0);
  WANT(futhark_values_u8_1d(ctx, tags_again, seen) == 0 && memcmp(seen, tags, 2) == 0);
  WANT(futhark_free_u8_1d(ctx, tags_again) == 0);
  WANT(futhark_free_opaque_tup2_f32_f32(ctx, moved_to) == 0);
  WANT(futhark_free_opaque_body(ctx, body) == 0);
  WANT(futhark_free_opaque_body(ctx, moved) == 0);
}

static void tuples(void) {
  const int64_t numbers[] = {4, 5, 6};
  int64_t sum = 0, more[3], one = 0;
  struct futhark_i64_1d *xs = futhark_new_i64_1d(ctx, numbers, 3), *ys;
  struct futhark_opaque_tup2_i64_arr1d_i64* both;
  WANT(futhark_entry_stats(ctx, &both, xs) == 0);
  WANT(futhark_project_opaque_tup2_i64_arr1d_i64_0(ctx, &sum, both) == 0 && sum == 15);
  WANT(futhark_project_opaque_tup2_i64_arr1d_i64_1(ctx, &ys, both) == 0);
  WANT(futhark_values_i64_1d(ctx, ys, more) == 0 && more[0] == 5 && more[2] == 7);
  WANT(futhark_index_i64_1d(ctx, &one, ys, 1) == 0 && one == 6);
  WANT(futhark_index_i64_1d(ctx, &one, ys, 3) != 0 && error_has("index 3"));
  WANT(futhark_free_opaque_tup2_i64_arr1d_i64(ctx, both) == 0);
  WANT(futhark_free_i64_1d(ctx, xs) == 0 && futhark_free_i64_1d(ctx, ys) == 0);

  const int32_t signs[] = {-1, 2};
  int32_t firsts[2];
  struct futhark_i32_1d *zs = futhark_new_i32_1d(ctx, signs, 2), *first;
  struct futhark_opaque_arr1d_tup2_i32_bool* pairs;
  WANT(futhark_entry_pairs(ctx, &pairs, zs) == 0);
  WANT(futhark_entry_firsts(ctx, &first, pairs) == 0);
  WANT(futhark_values_i32_1d(ctx, first, firsts) == 0 && firsts[0] == -1 && firsts[1] == 2);
  WANT(futhark_free_opaque_arr1d_tup2_i32_bool(ctx, pairs) == 0);
  WANT(futhark_free_i32_1d(ctx, zs) == 0 && futhark_free_i32_1d(ctx, first) == 0);
}

static void failures(void) {
  const int32_t numbers[] = {1, -2, 3, 4};
  const int64_t places[] = {3, 0}, beyond[] = {0, 4};
  int32_t seen[4];
  struct futhark_i32_1d *xs = futhark_new_i32_1d(ctx, numbers, 4), *out = NULL;
  struct futhark_i64_1d *good = futhark_new_i64_1d(ctx, places, 2), *bad = futhark_new_i64_1d(ctx, beyond, 2);
  int status = futhark_entry_at(ctx, &out, xs, bad);
  if (status == 0) status = futhark_context_sync(ctx);
  WANT(status == FUTHARK_PROGRAM_ERROR);
  WANT(error_has("values.fut:15"));
  if (out) futhark_free_i32_1d(ctx, out);
  // The context is as good as before.
  WANT(futhark_entry_at(ctx, &out, xs, good) == 0 && futhark_context_sync(ctx) == 0);
  WANT(futhark_values_i32_1d(ctx, out, seen) == 0 && seen[0] == 4 && seen[1] == 1);
  WANT(futhark_free_i32_1d(ctx, out) == 0);
  WANT(futhark_entry_positive(ctx, &out, xs) == 0);
  WANT(futhark_shape_i32_1d(ctx, out)[0] == 3);
  WANT(futhark_free_i32_1d(ctx, out) == 0);
  WANT(futhark_free_i32_1d(ctx, xs) == 0);
  WANT(futhark_free_i64_1d(ctx, good) == 0 && futhark_free_i64_1d(ctx, bad) == 0);

  struct futhark_i32_2d *A = futhark_new_i32_2d(ctx, numbers, 2, 2), *B = futhark_new_i32_2d(ctx, numbers, 1, 4), *C;
  WANT(futhark_entry_product(ctx, &C, A, B) == FUTHARK_PROGRAM_ERROR && C == NULL && error_has("dim 0"));
  WANT(futhark_entry_product(ctx, &C, A, A) == 0);
  WANT(futhark_values_i32_2d(ctx, C, seen) == 0 && seen[0] == -5 && seen[1] == -10 && seen[2] == 15 && seen[3] == 10);
  // Memory of the backend that another array has: borrowed, not copied.
  struct futhark_i32_2d* same = futhark_new_raw_i32_2d(ctx, futhark_values_raw_i32_2d(ctx, C), 1, 4);
  memset(seen, 0, sizeof seen);
  WANT(futhark_values_i32_2d(ctx, same, seen) == 0 && seen[2] == 15);
  WANT(futhark_free_i32_2d(ctx, same) == 0);
  WANT(futhark_values_i32_2d(ctx, C, seen) == 0 && seen[3] == 10);
  WANT(futhark_free_i32_2d(ctx, A) == 0 && futhark_free_i32_2d(ctx, B) == 0 && futhark_free_i32_2d(ctx, C) == 0);
}

// Sizes that no array has.
static void sizes(void) {
  const int32_t numbers[] = {1, -2, 3, 4};
  const int64_t large = (int64_t)1 << 62;
  struct futhark_i32_2d* rows = NULL;
  WANT(futhark_new_i32_2d(ctx, numbers, large, 4) == NULL);
  WANT(error_has("an array of shape [4611686018427387904][4] has too many elements."));
  WANT(futhark_new_i32_2d(ctx, numbers, -2, 0) == NULL && error_has("an array of size -2."));
  WANT(futhark_new_raw_i32_2d(ctx, 0, 2, large) == NULL && error_has("has too many elements."));
  rows = futhark_new_i32_2d(ctx, numbers, large, 0);
  WANT(rows != NULL && futhark_shape_i32_2d(ctx, rows)[0] == large);
  WANT(futhark_free_i32_2d(ctx, rows) == 0);
  WANT(futhark_entry_rows(ctx, &rows, large, 4) == FUTHARK_OUT_OF_MEMORY);
  WANT(error_has(
      "an array of shape [4611686018427387904][4] has too many elements.\n\nBacktrace:\n-> #0  values.fut:22:"));
  WANT(futhark_entry_rows(ctx, &rows, -1, 4) == FUTHARK_PROGRAM_ERROR && error_has("replicate of size -1."));
  WANT(futhark_entry_rows(ctx, &rows, 2, 3) == 0 && futhark_shape_i32_2d(ctx, rows)[1] == 3);
  WANT(futhark_free_i32_2d(ctx, rows) == 0);
}

// A number that some plan has, and one that none has.
static void parameters(void) {
  const int32_t numbers[] = {1, -2, 3, 4};
  const char* tile = NULL;
  for (int k = 0; k < futhark_get_tuning_param_count(); ++k)
    if (strcmp(futhark_get_tuning_param_class(k), "tile_size") == 0 &&
        strncmp(futhark_get_tuning_param_name(k), "product.T_", 10) == 0)
      tile = futhark_get_tuning_param_name(k);
  WANT(tile != NULL);
  struct futhark_context_config* cfg = futhark_context_config_new();
  WANT(futhark_context_config_set_tuning_param(cfg, "product.T_none", 1) != 0);
  WANT(futhark_context_config_set_tuning_param(cfg, tile, 12345) == 0);
  struct futhark_context* all = ctx;
  ctx = futhark_context_new(cfg);
  struct futhark_i32_2d *A = futhark_new_i32_2d(ctx, numbers, 2, 2), *C;
  WANT(futhark_entry_product(ctx, &C, A, A) != 0 && error_has("=12345; there are: product.T_"));
  WANT(futhark_free_i32_2d(ctx, A) == 0);
  futhark_context_free(ctx);
  futhark_context_config_free(cfg);
  ctx = all;
}

int main(void) {
  struct futhark_context_config* cfg = futhark_context_config_new();
  ctx = futhark_context_new(cfg);
  char* error = futhark_context_get_error(ctx);
  if (error) {
    printf("no context: %s\n", error);
    return 1;
  }
  records();
  tuples();
  failures();
  sizes();
  parameters();
  uint16_t half = 0;
  WANT(futhark_entry_half(ctx, &half, 0x3c00, true) == 0 && half == 0x4000);
  char* report = futhark_context_report(ctx);
  WANT(report != NULL && strstr(report, "\"current\": 0,") != NULL);  // nothing was lost
  free(report);
  WANT(futhark_context_clear_caches(ctx) == 0);
  futhark_context_free(ctx);
  futhark_context_config_free(cfg);
  return wrong != 0;
}
