// Elements of arrays of records and sums, arrays of their fields, and what is refused. Compiled behind items.h.
#include "items.h"

#include <stdint.h>

#include "want.h"

static const float kXs[] = {1, 2, 3, 4, 5, 6}, kYs[] = {10, 20, 30, 40, 50, 60};

static struct futhark_opaque_arr1d_point* zipped(int64_t n) {
  struct futhark_f32_1d *xs = futhark_new_f32_1d(ctx, kXs, n), *ys = futhark_new_f32_1d(ctx, kYs, n);
  struct futhark_opaque_arr1d_point* ps = NULL;
  WANT(futhark_zip_opaque_arr1d_point(ctx, &ps, xs, ys) == 0);
  WANT(futhark_free_f32_1d(ctx, xs) == 0 && futhark_free_f32_1d(ctx, ys) == 0);
  return ps;
}

static int is_point(struct futhark_opaque_point* point, float x, float y) {
  float got_x = 0, got_y = 0;
  const int ok = futhark_project_opaque_point_x(ctx, &got_x, point) == 0 &&
                 futhark_project_opaque_point_y(ctx, &got_y, point) == 0 && futhark_free_opaque_point(ctx, point) == 0;
  return ok && got_x == x && got_y == y;
}

static void records(void) {
  struct futhark_opaque_arr1d_point* ps = zipped(3);
  WANT(futhark_shape_opaque_arr1d_point(ctx, ps)[0] == 3);
  struct futhark_opaque_point *second = NULL, *other = NULL;
  WANT(futhark_index_opaque_arr1d_point(ctx, &second, ps, 1) == 0 && is_point(second, 2, 20));
  WANT(futhark_index_opaque_arr1d_point(ctx, NULL, ps, 3) != 0 && error_has("index 3"));
  WANT(futhark_index_opaque_arr1d_point(ctx, NULL, ps, -1) != 0 && error_has("index -1"));

  // What is set is seen by entries, and by the arrays of fields, which share the memory.
  struct futhark_f32_1d* xs = NULL;
  float far = 0, now[3] = {0};
  WANT(futhark_project_opaque_arr1d_point_x(ctx, &xs, ps) == 0);
  WANT(futhark_new_opaque_point(ctx, &other, -7, 100) == 0);
  WANT(futhark_set_opaque_arr1d_point(ctx, ps, other, 1) == 0);
  WANT(futhark_set_opaque_arr1d_point(ctx, ps, other, 3) != 0 && error_has("index 3"));
  WANT(futhark_entry_far(ctx, &far, ps) == 0 && futhark_context_sync(ctx) == 0 && far == 10049);
  WANT(futhark_values_f32_1d(ctx, xs, now) == 0 && futhark_context_sync(ctx) == 0 && now[0] == 1 && now[1] == -7);
  WANT(futhark_free_f32_1d(ctx, xs) == 0 && futhark_free_opaque_arr1d_point(ctx, ps) == 0);

  // Of elements; an array of its own.
  struct futhark_opaque_point* both[] = {other, other};
  struct futhark_opaque_point* first = NULL;
  WANT(futhark_new_opaque_arr1d_point(ctx, &ps, both, 2) == 0 && futhark_shape_opaque_arr1d_point(ctx, ps)[0] == 2);
  WANT(futhark_free_opaque_point(ctx, other) == 0);
  WANT(futhark_index_opaque_arr1d_point(ctx, &first, ps, 0) == 0 && is_point(first, -7, 100));
  WANT(futhark_free_opaque_arr1d_point(ctx, ps) == 0);
  WANT(futhark_new_opaque_arr1d_point(ctx, &ps, NULL, 0) == 0 && futhark_shape_opaque_arr1d_point(ctx, ps)[0] == 0);
  WANT(futhark_free_opaque_arr1d_point(ctx, ps) == 0);
  WANT(futhark_new_opaque_arr1d_point(ctx, &ps, NULL, -1) != 0 && ps == NULL && error_has("-1"));

  struct futhark_f32_1d *two = futhark_new_f32_1d(ctx, kXs, 2), *three = futhark_new_f32_1d(ctx, kYs, 3);
  WANT(futhark_zip_opaque_arr1d_point(ctx, &ps, two, three) != 0 && ps == NULL && error_has("fields x and y"));
  WANT(futhark_free_f32_1d(ctx, two) == 0 && futhark_free_f32_1d(ctx, three) == 0);
}

// Elements that have arrays, and an array of records among the fields.
static void nested(void) {
  static const int64_t kRows[] = {1, 2, 3, 4, 5, 6}, kRow[] = {-1, -2};
  struct futhark_opaque_arr1d_point *ps = zipped(3), *own = NULL;
  struct futhark_i64_2d *rows = futhark_new_i64_2d(ctx, kRows, 3, 2), *after = NULL;
  struct futhark_i64_1d *row = futhark_new_i64_1d(ctx, kRow, 2), *got = NULL, *short_row = NULL;
  struct futhark_opaque_arr1d_tup2_point_arr1d_i64* all = NULL;
  struct futhark_opaque_tup2_point_arr1d_i64 *last = NULL, *new_one = NULL, *short_one = NULL;
  struct futhark_opaque_point* point = NULL;
  int64_t values[6] = {0};
  WANT(futhark_entry_labelled(ctx, &all, ps, rows) == 0);
  WANT(futhark_index_opaque_arr1d_tup2_point_arr1d_i64(ctx, &last, all, 2) == 0);
  WANT(futhark_project_opaque_tup2_point_arr1d_i64_0(ctx, &point, last) == 0);
  WANT(futhark_project_opaque_tup2_point_arr1d_i64_1(ctx, &got, last) == 0);
  WANT(futhark_values_i64_1d(ctx, got, values) == 0 && values[0] == 5 && values[1] == 6);
  WANT(futhark_new_opaque_tup2_point_arr1d_i64(ctx, &new_one, point, row) == 0);
  WANT(futhark_set_opaque_arr1d_tup2_point_arr1d_i64(ctx, all, new_one, 0) == 0);
  WANT(futhark_project_opaque_arr1d_tup2_point_arr1d_i64_1(ctx, &after, all) == 0);
  WANT(futhark_values_i64_2d(ctx, after, values) == 0);
  WANT(values[0] == -1 && values[1] == -2 && values[2] == 3 && values[5] == 6);
  WANT(futhark_project_opaque_arr1d_tup2_point_arr1d_i64_0(ctx, &own, all) == 0);
  struct futhark_opaque_point* first = NULL;
  WANT(futhark_index_opaque_arr1d_point(ctx, &first, own, 0) == 0 && is_point(first, 3, 30));

  short_row = futhark_new_i64_1d(ctx, kRow, 1);
  WANT(futhark_new_opaque_tup2_point_arr1d_i64(ctx, &short_one, point, short_row) == 0);
  WANT(futhark_set_opaque_arr1d_tup2_point_arr1d_i64(ctx, all, short_one, 1) != 0 && error_has("sizes"));
  struct futhark_opaque_tup2_point_arr1d_i64* different[] = {new_one, short_one};
  struct futhark_opaque_arr1d_tup2_point_arr1d_i64* none = NULL;
  WANT(futhark_new_opaque_arr1d_tup2_point_arr1d_i64(ctx, &none, different, 2) != 0 && none == NULL &&
       error_has("elements 0 and 1"));
  WANT(futhark_free_opaque_point(ctx, point) == 0 && futhark_free_i64_1d(ctx, got) == 0);
  WANT(futhark_free_i64_1d(ctx, row) == 0 && futhark_free_i64_1d(ctx, short_row) == 0);
  WANT(futhark_free_i64_2d(ctx, rows) == 0 && futhark_free_i64_2d(ctx, after) == 0);
  WANT(futhark_free_opaque_arr1d_point(ctx, ps) == 0 && futhark_free_opaque_arr1d_point(ctx, own) == 0);
  WANT(futhark_free_opaque_tup2_point_arr1d_i64(ctx, last) == 0 &&
       futhark_free_opaque_tup2_point_arr1d_i64(ctx, new_one) == 0 &&
       futhark_free_opaque_tup2_point_arr1d_i64(ctx, short_one) == 0);
  WANT(futhark_free_opaque_arr1d_tup2_point_arr1d_i64(ctx, all) == 0);
}

static void sums(void) {
  struct futhark_opaque_side *left = NULL, *right = NULL, *got = NULL;
  struct futhark_opaque_arr2d_side* all = NULL;
  int32_t total = 0, payload = 0;
  WANT(futhark_new_opaque_side_left(ctx, &left, 21) == 0 && futhark_new_opaque_side_right(ctx, &right) == 0);
  struct futhark_opaque_side* elements[] = {left, right, right, left, right, left};
  WANT(futhark_new_opaque_arr2d_side(ctx, &all, elements, 2, 3) == 0);
  WANT(futhark_shape_opaque_arr2d_side(ctx, all)[0] == 2 && futhark_shape_opaque_arr2d_side(ctx, all)[1] == 3);
  WANT(futhark_entry_total(ctx, &total, all) == 0 && futhark_context_sync(ctx) == 0 && total == 63);
  WANT(futhark_set_opaque_arr2d_side(ctx, all, right, 1, 2) == 0);
  WANT(futhark_entry_total(ctx, &total, all) == 0 && futhark_context_sync(ctx) == 0 && total == 42);
  WANT(futhark_index_opaque_arr2d_side(ctx, &got, all, 1, 0) == 0);
  WANT(futhark_destruct_opaque_side_left(ctx, &payload, got) == 0 && payload == 21);
  WANT(futhark_index_opaque_arr2d_side(ctx, NULL, all, 0, 3) != 0 && error_has("dim 1 has size 3"));
  WANT(futhark_free_opaque_side(ctx, left) == 0 && futhark_free_opaque_side(ctx, right) == 0 &&
       futhark_free_opaque_side(ctx, got) == 0 && futhark_free_opaque_arr2d_side(ctx, all) == 0);
}

static void units(void) {
  struct futhark_opaque_arr1d_unit* all = NULL;
  struct futhark_opaque_unit *one = NULL, *made = NULL;
  WANT(futhark_entry_nothing(ctx, &all, 4) == 0 && futhark_shape_opaque_arr1d_unit(ctx, all)[0] == 4);
  WANT(futhark_index_opaque_arr1d_unit(ctx, &one, all, 3) == 0 && futhark_new_opaque_unit(ctx, &made) == 0);
  WANT(futhark_set_opaque_arr1d_unit(ctx, all, made, 0) == 0);
  WANT(futhark_free_opaque_unit(ctx, one) == 0 && futhark_free_opaque_unit(ctx, made) == 0 &&
       futhark_free_opaque_arr1d_unit(ctx, all) == 0);
}

// What a name stands for is the array of records that it is.
static void named_arrays(void) {
  const float x[] = {1, 2, 3}, y[] = {10, 20, 30};
  struct futhark_f32_1d *xs = futhark_new_f32_1d(ctx, x, 3), *ys = futhark_new_f32_1d(ctx, y, 3), *moved = NULL;
  struct futhark_opaque_points *ps = NULL, *qs = NULL;
  WANT(futhark_zip_opaque_points(ctx, &ps, xs, ys) == 0 && futhark_shape_opaque_points(ctx, ps)[0] == 3);
  WANT(futhark_entry_moved(ctx, &qs, ys, ps) == 0 && futhark_project_opaque_points_x(ctx, &moved, qs) == 0);
  float got[3] = {0};
  WANT(futhark_values_f32_1d(ctx, moved, got) == 0 && futhark_context_sync(ctx) == 0 && got[2] == 33);
  WANT(futhark_free_f32_1d(ctx, xs) == 0 && futhark_free_f32_1d(ctx, ys) == 0 && futhark_free_f32_1d(ctx, moved) == 0);
  WANT(futhark_free_opaque_points(ctx, ps) == 0 && futhark_free_opaque_points(ctx, qs) == 0);
}

int main(int argc, char** argv) {
  struct futhark_context_config* cfg = futhark_context_config_new();
  futhark_context_config_set_profiling(cfg, 1);
  ctx = futhark_context_new(cfg);
  records();
  nested();
  sums();
  units();
  named_arrays();
  char* report = futhark_context_report(ctx);
  WANT(report != NULL && strstr(report, "\"current\": 0,") != NULL);  // nothing was lost
  WANT(report != NULL && strstr(report, "{\"name\": \"far\", \"kind\": \"call\", \"start\": ") != NULL);
  // For the test of its schema.
  FILE* file = argc > 1 ? fopen(argv[1], "w") : NULL;
  if (file && report) fputs(report, file);
  if (file) fclose(file);
  free(report);
  futhark_context_free(ctx);
  futhark_context_config_free(cfg);
  return wrong != 0;
}
