// What a library of known.fut promises whose matrix is the one of a file, on any backend: that matrix is multiplied by
// its code, any other by kernels. Prints nothing if all of it holds.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "multiplied.h"
#include "want.h"

enum { kMost = 100, kWidth = 40 };

static int rows, columns, nonzeros;
static int64_t row_start[kMost + 1];
static int32_t column[kMost];
static float values[kMost], dense[kMost][kWidth];

// Its rows stand in order.
static void read_matrix(const char* name) {
  char line[200];
  FILE* file = fopen(name, "r");
  if (!file) exit(64);
  while (fgets(line, sizeof line, file) && line[0] == '%') continue;
  WANT(sscanf(line, "%d %d %d", &rows, &columns, &nonzeros) == 3);
  for (int k = 0; k < nonzeros; ++k) {
    int i = 0, j = 0;
    WANT(fgets(line, sizeof line, file) && sscanf(line, "%d %d %f", &i, &j, &values[k]) == 3);
    column[k] = j - 1;
    ++row_start[i];
  }
  for (int i = 0; i < rows; ++i) row_start[i + 1] += row_start[i];
  fclose(file);
  for (int j = 0; j < columns; ++j)
    for (int t = 0; t < kWidth; ++t) dense[j][t] = (float)((j * 7 + t) % 5 - 2);
}

static int logged(FILE* log, const char* words) {
  char line[400];
  int count = 0;
  rewind(log);
  while (fgets(line, sizeof line, log)) count += strstr(line, words) != NULL;
  return count;
}

static void multiply(struct futhark_sparse_f32* a, const float* numbers, int width) {
  static float b[kMost * kWidth], c[kMost * kWidth];
  for (int j = 0; j < columns; ++j)
    for (int t = 0; t < width; ++t) b[j * width + t] = dense[j][t];
  struct futhark_f32_2d *operand = futhark_new_f32_2d(ctx, b, columns, width), *result = NULL;
  for (int call = 0; call < 3; ++call) {
    WANT(futhark_entry_product(ctx, &result, a, operand) == 0);
    WANT(futhark_values_f32_2d(ctx, result, c) == 0 && futhark_context_sync(ctx) == 0);
    WANT(futhark_free_f32_2d(ctx, result) == 0);
    for (int i = 0; i < rows; ++i)
      for (int t = 0; t < width; ++t) {
        float sum = 0;
        for (int64_t k = row_start[i]; k < row_start[i + 1]; ++k) sum += numbers[k] * dense[column[k]][t];
        WANT(fabsf(sum - c[i * width + t]) <= 1e-5F * (1 + fabsf(sum)));
      }
  }
  WANT(futhark_free_f32_2d(ctx, operand) == 0);
}

int main(int argc, char** argv) {
  if (argc != 2) return 64;
  read_matrix(argv[1]);
  struct futhark_context_config* cfg = futhark_context_config_new();
  futhark_context_config_set_logging(cfg, 1);
  ctx = futhark_context_new(cfg);
  WANT(futhark_context_get_error(ctx) == NULL);
  FILE* log = tmpfile();
  futhark_context_set_logging_file(ctx, log);
  struct futhark_sparse_f32* a = futhark_new_sparse_f32(ctx, rows, columns, row_start, column, values);
  multiply(a, values, kWidth);
  multiply(a, values, 17);
  // It was looked at once.
  WANT(logged(log, "is the matrix that there is code for") == 1);
  // Others of the same sizes: another number, and another column.
  float numbers[kMost];
  memcpy(numbers, values, sizeof numbers);
  numbers[nonzeros - 1] += 1;
  struct futhark_sparse_f32* other = futhark_new_sparse_f32(ctx, rows, columns, row_start, column, numbers);
  multiply(other, numbers, kWidth);
  WANT(logged(log, "is another than the matrix that there is code for") == 1);
  multiply(a, values, kWidth);
  WANT(logged(log, "that there is code for") == 2);
  WANT(futhark_free_sparse_f32(ctx, other) == 0);
  WANT(futhark_context_clear_caches(ctx) == 0);
  multiply(a, values, kWidth);
  WANT(futhark_free_sparse_f32(ctx, a) == 0);
  // The same matrix again is another argument.
  a = futhark_new_sparse_f32(ctx, rows, columns, row_start, column, values);
  column[0] ^= 1;
  other = futhark_new_sparse_f32(ctx, rows, columns, row_start, column, values);
  multiply(other, values, kWidth);
  column[0] ^= 1;
  multiply(a, values, kWidth);
  WANT(logged(log, "is the matrix that there is code for") == 2);
  WANT(logged(log, "is another than") == 2);
  WANT(futhark_free_sparse_f32(ctx, other) == 0);
  // Sizes that do not fit are errors as without code.
  struct futhark_f32_2d *narrow = futhark_new_f32_2d(ctx, dense[0], columns - 1, kWidth), *result = NULL;
  WANT(futhark_entry_product(ctx, &result, a, narrow) != 0 && error_has("19"));
  WANT(futhark_free_f32_2d(ctx, narrow) == 0);
  WANT(futhark_free_sparse_f32(ctx, a) == 0);
  futhark_context_free(ctx);
  futhark_context_config_free(cfg);
  fclose(log);
  return wrong != 0;
}
