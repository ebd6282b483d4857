// What a library of sums.fut promises, on any backend. Prints nothing if all of it holds.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shapes.h"
#include "want.h"

enum { kBox, kCircle, kNothing, kText };  // of a shape
enum { kLeft, kRight };
enum { kAll, kNone, kOne };

typedef struct futhark_opaque_found found;
typedef struct futhark_opaque_0a8964605d4b3ae3a463fa257e24ada7 place;
typedef struct futhark_opaque_183baad3ccccae422b1190b52ed6b9ac next;
typedef struct futhark_opaque_tup2_side_i64 sided;
typedef struct futhark_opaque_side plain_side;

static void shapes(void) {
  struct futhark_opaque_shape *box, *grown, *text, *twice, *nothing;
  float a = 0, b = 0;
  WANT(futhark_new_opaque_shape_box(ctx, &box, 2.0f, 3.0f) == 0 && futhark_variant_opaque_shape(ctx, box) == kBox);
  WANT(futhark_entry_grow(ctx, &grown, box, 2.0f) == 0 && futhark_variant_opaque_shape(ctx, grown) == kBox);
  WANT(futhark_destruct_opaque_shape_box(ctx, &a, &b, grown) == 0 && a == 4.0f && b == 6.0f);
  WANT(futhark_destruct_opaque_shape_circle(ctx, &a, grown) == FUTHARK_PROGRAM_ERROR &&
       error_has("the value is a #box, not a #circle"));
  void* bytes = NULL;
  size_t size = 0;
  WANT(futhark_store_opaque_shape(ctx, grown, &bytes, &size) == 0);
  WANT(futhark_free_opaque_shape(ctx, grown) == 0);
  grown = futhark_restore_opaque_shape(ctx, bytes);
  WANT(futhark_destruct_opaque_shape_box(ctx, &a, &b, grown) == 0 && b == 6.0f);
  free(bytes);

  const uint8_t letters[] = "ab";
  uint8_t seen[4];
  struct futhark_u8_1d *letter_array = futhark_new_u8_1d(ctx, letters, 2), *doubled;
  WANT(futhark_new_opaque_shape_text(ctx, &text, letter_array) == 0);
  WANT(futhark_free_u8_1d(ctx, letter_array) == 0);
  WANT(futhark_entry_grow(ctx, &twice, text, 0) == 0 && futhark_variant_opaque_shape(ctx, twice) == kText);
  WANT(futhark_destruct_opaque_shape_text(ctx, &doubled, twice) == 0 && futhark_shape_u8_1d(ctx, doubled)[0] == 4);
  WANT(futhark_free_opaque_shape(ctx, twice) == 0);
  WANT(futhark_values_u8_1d(ctx, doubled, seen) == 0 && memcmp(seen, "abab", 4) == 0);
  WANT(futhark_free_u8_1d(ctx, doubled) == 0);

  WANT(futhark_new_opaque_shape_nothing(ctx, &nothing) == 0 &&
       futhark_destruct_opaque_shape_nothing(ctx, nothing) == 0);
  WANT(futhark_free_opaque_shape(ctx, nothing) == 0 && futhark_free_opaque_shape(ctx, text) == 0);
  WANT(futhark_free_opaque_shape(ctx, box) == 0 && futhark_free_opaque_shape(ctx, grown) == 0);
}

// A payload that is a record, with a sum type in it.
static void nested(void) {
  const int64_t numbers[] = {5, 7, 5, 5};
  int64_t at = 0, count = 0;
  int32_t second = 0;
  struct futhark_i64_1d *xs = futhark_new_i64_1d(ctx, numbers, 4), *all;
  found *one, *none, *made;
  place* where;
  next* after;
  WANT(futhark_entry_search(ctx, &one, xs, 5) == 0 && futhark_variant_opaque_found(ctx, one) == kOne);
  WANT(futhark_destruct_opaque_found_one(ctx, &where, one) == 0);
  WANT(futhark_project_opaque_0a8964605d4b3ae3a463fa257e24ada7_at(ctx, &at, where) == 0 && at == 0);
  WANT(futhark_project_opaque_0a8964605d4b3ae3a463fa257e24ada7_next(ctx, &after, where) == 0);
  WANT(futhark_variant_opaque_183baad3ccccae422b1190b52ed6b9ac(ctx, after) == kRight);
  WANT(futhark_destruct_opaque_183baad3ccccae422b1190b52ed6b9ac_right(ctx, &second, after) == 0 && second == 2);

  plain_side* left;
  sided* pair;
  WANT(futhark_new_opaque_side_left(ctx, &left) == 0);
  WANT(futhark_new_opaque_tup2_side_i64(ctx, &pair, left, 100) == 0);
  WANT(futhark_entry_count(ctx, &count, one, pair) == 0 && count == 2);
  WANT(futhark_entry_search(ctx, &none, xs, 6) == 0 && futhark_variant_opaque_found(ctx, none) == kNone);
  WANT(futhark_entry_count(ctx, &count, none, pair) == 0 && count == -1);
  WANT(futhark_new_opaque_found_all(ctx, &made, xs) == 0);
  WANT(futhark_entry_count(ctx, &count, made, pair) == 0 && count == 122);
  WANT(futhark_destruct_opaque_found_all(ctx, &all, made) == 0 && futhark_shape_i64_1d(ctx, all)[0] == 4);

  WANT(futhark_free_i64_1d(ctx, xs) == 0 && futhark_free_i64_1d(ctx, all) == 0);
  WANT(futhark_free_opaque_found(ctx, one) == 0 && futhark_free_opaque_found(ctx, none) == 0);
  WANT(futhark_free_opaque_found(ctx, made) == 0);
  WANT(futhark_free_opaque_0a8964605d4b3ae3a463fa257e24ada7(ctx, where) == 0);
  WANT(futhark_free_opaque_183baad3ccccae422b1190b52ed6b9ac(ctx, after) == 0);
  WANT(futhark_free_opaque_side(ctx, left) == 0);
  WANT(futhark_free_opaque_tup2_side_i64(ctx, pair) == 0);
}

static void sides(void) {
  const int32_t numbers[] = {-1, 4, 9};
  int64_t count = 0;
  struct futhark_opaque_side *left, *right;
  struct futhark_i32_1d* xs = futhark_new_i32_1d(ctx, numbers, 3);
  struct futhark_opaque_arr1d_side* all;
  WANT(futhark_new_opaque_side_left(ctx, &left) == 0 && futhark_entry_other(ctx, &right, left) == 0);
  WANT(futhark_variant_opaque_side(ctx, left) == kLeft && futhark_variant_opaque_side(ctx, right) == kRight);
  WANT(futhark_entry_sides(ctx, &all, xs) == 0 && futhark_entry_rights(ctx, &count, all) == 0 && count == 2);
  WANT(futhark_free_i32_1d(ctx, xs) == 0 && futhark_free_opaque_arr1d_side(ctx, all) == 0);
  WANT(futhark_free_opaque_side(ctx, left) == 0 && futhark_free_opaque_side(ctx, right) == 0);
}

int main(void) {
  struct futhark_context_config* cfg = futhark_context_config_new();
  ctx = futhark_context_new(cfg);
  shapes();
  nested();
  sides();
  char* report = futhark_context_report(ctx);
  WANT(report != NULL && strstr(report, "\"current\": 0,") != NULL);  // nothing was lost
  free(report);
  futhark_context_free(ctx);
  futhark_context_config_free(cfg);
  return wrong != 0;
}
