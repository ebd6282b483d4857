// What a library of sparse.fut promises, on any backend. Prints nothing if all of it holds.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "operands.h"
#include "want.h"

enum { kRows = 130, kColumns = 90, kEach = 12, kNonzeros = kRows * kEach, kWidth = 40 };

static int64_t row_start[kRows + 1];
static int32_t column[kNonzeros];
static float values[kNonzeros], dense[kRows + kColumns][kWidth], line[kRows];

// Neighbouring rows share columns. Small whole numbers, so that all orders agree.
static void fill(void) {
  for (int i = 0; i < kRows; ++i) {
    row_start[i + 1] = row_start[i] + kEach;
    line[i] = (float)(i % 7 - 3);
    for (int k = 0; k < kEach; ++k) {
      column[row_start[i] + k] = i / 16 % 7 + 7 * k;
      values[row_start[i] + k] = (float)((i + 3 * k) % 5 - 2);
    }
  }
  for (int i = 0; i < kRows + kColumns; ++i)
    for (int j = 0; j < kWidth; ++j) dense[i][j] = (float)((i * 7 + j) % 4 - 1);
}

static int is_product(float c[][kWidth]) {
  int right = 1;
  for (int i = 0; i < kRows; ++i)
    for (int j = 0; j < kWidth; ++j) {
      float sum = 0;
      for (int64_t k = row_start[i]; k < row_start[i + 1]; ++k) sum += values[k] * dense[column[k]][j];
      right = right && sum == c[i][j];
    }
  return right;
}

static void products(struct futhark_sparse_f32* a, int clear) {
  static float c[kRows][kWidth];
  struct futhark_f32_2d *b = futhark_new_f32_2d(ctx, dense[0], kColumns, kWidth), *result;
  // Often enough that the runtime makes something of the matrix.
  for (int call = 0; call < 20; ++call) {
    WANT(futhark_entry_smooth(ctx, &result, a, b) == 0);
    WANT(futhark_values_f32_2d(ctx, result, c[0]) == 0);
    WANT(futhark_free_f32_2d(ctx, result) == 0);
    WANT(is_product(c));
    // Nothing of a matrix that is gone stays behind.
    if (clear && call == 17) WANT(futhark_context_clear_caches(ctx) == 0);
  }
  WANT(futhark_free_f32_2d(ctx, b) == 0);
}

// bf16: the upper half of a float, of small whole numbers.
static uint16_t bf16_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return (uint16_t)(bits >> 16);
}

// So many columns that the runtime's kernels do it without a plan, too.
static void wide_products(struct futhark_sparse_f32* a) {
  enum { kColumnsOfB = 64 };
  static float b[kColumns][kColumnsOfB], c[kRows][kColumnsOfB];
  for (int i = 0; i < kColumns; ++i)
    for (int j = 0; j < kColumnsOfB; ++j) b[i][j] = (float)((i * 3 + j) % 5 - 2);
  struct futhark_f32_2d *there = futhark_new_f32_2d(ctx, b[0], kColumns, kColumnsOfB), *result;
  for (int call = 0; call < 2; ++call) {
    int right = 1;
    WANT(futhark_entry_smooth(ctx, &result, a, there) == 0);
    WANT(futhark_values_f32_2d(ctx, result, c[0]) == 0);
    WANT(futhark_free_f32_2d(ctx, result) == 0);
    for (int i = 0; i < kRows; ++i)
      for (int j = 0; j < kColumnsOfB; ++j) {
        float sum = 0;
        for (int64_t k = row_start[i]; k < row_start[i + 1]; ++k) sum += values[k] * b[column[k]][j];
        right = right && sum == c[i][j];
      }
    WANT(right);
  }
  WANT(futhark_free_f32_2d(ctx, there) == 0);
}

static void products_of_bf16(void) {
  static uint16_t narrow_values[kNonzeros], narrow_dense[kColumns][kWidth];
  static float c[kRows][kWidth];
  for (int k = 0; k < kNonzeros; ++k) narrow_values[k] = bf16_of(values[k]);
  for (int i = 0; i < kColumns; ++i)
    for (int j = 0; j < kWidth; ++j) narrow_dense[i][j] = bf16_of(dense[i][j]);
  struct futhark_sparse_bf16* a = futhark_new_sparse_bf16(ctx, kRows, kColumns, row_start, column, narrow_values);
  struct futhark_bf16_2d* b = futhark_new_bf16_2d(ctx, narrow_dense[0], kColumns, kWidth);
  struct futhark_f32_2d* result;
  WANT(a != NULL && b != NULL);
  for (int call = 0; call < 14; ++call) {
    WANT(futhark_entry_smooth_bf16(ctx, &result, a, b) == 0);
    WANT(futhark_values_f32_2d(ctx, result, c[0]) == 0);
    WANT(futhark_free_f32_2d(ctx, result) == 0);
    WANT(is_product(c));
  }
  WANT(futhark_free_bf16_2d(ctx, b) == 0);
  WANT(futhark_free_sparse_bf16(ctx, a) == 0);
}

static void columns(struct futhark_sparse_f32* a) {
  float y[kColumns], wanted[kColumns] = {0};
  struct futhark_f32_1d *x = futhark_new_f32_1d(ctx, line, kRows), *result;
  for (int i = 0; i < kRows; ++i)
    for (int64_t k = row_start[i]; k < row_start[i + 1]; ++k) wanted[column[k]] += values[k] * line[i];
  WANT(futhark_entry_spread(ctx, &result, a, x) == 0);
  WANT(futhark_values_f32_1d(ctx, result, y) == 0 && memcmp(y, wanted, sizeof y) == 0);
  WANT(futhark_free_f32_1d(ctx, result) == 0);
  WANT(futhark_free_f32_1d(ctx, x) == 0);
}

// What comes out are the non-zeros, in the order in which they were given.
static void samples(struct futhark_sparse_f32* a) {
  static float got[kNonzeros];
  struct futhark_f32_2d* x = futhark_new_f32_2d(ctx, dense[kColumns], kRows, kWidth);
  struct futhark_f32_2d* y = futhark_new_f32_2d(ctx, dense[0], kColumns, kWidth);
  struct futhark_f32_1d* result;
  int right = 1;
  WANT(futhark_entry_sample(ctx, &result, x, a, y) == 0);
  WANT(futhark_shape_f32_1d(ctx, result)[0] == kNonzeros);
  WANT(futhark_values_f32_1d(ctx, result, got) == 0);
  for (int i = 0; i < kRows; ++i)
    for (int64_t k = row_start[i]; k < row_start[i + 1]; ++k) {
      float sum = 0;
      for (int d = 0; d < kWidth; ++d) sum += dense[kColumns + i][d] * dense[column[k]][d];
      right = right && got[k] == values[k] * sum;
    }
  WANT(right);
  WANT(futhark_free_f32_1d(ctx, result) == 0);
  WANT(futhark_free_f32_2d(ctx, x) == 0);
  WANT(futhark_free_f32_2d(ctx, y) == 0);
}

// A plan's text for a matrix of these sizes; the key is asked for by an error.
static size_t plan_text(char* text, size_t capacity, int rows, int columns_, int nonzeros, unsigned long long key,
                        const char* op, const char* form) {
  return (size_t)snprintf(text, capacity,
                          "apl-sparse-plan 2\nmatrix %d %d %d %llx\noperator %s\ndense 40 part 40\n%send\n", rows,
                          columns_, nonzeros, key, op, form);
}
static unsigned long long key_of(int status) {
  char* error = futhark_context_get_error(ctx);
  const char* words = "the operand's ";
  const char* at = error ? strstr(error, words) : NULL;
  const unsigned long long key = at && status != 0 ? strtoull(at + strlen(words), NULL, 16) : 0;
  free(error);
  return key;
}

// How often the log has these words since it was looked at last.
static int logged(FILE* log, const char* words) {
  char line[256];
  int count = 0;
  rewind(log);
  while (fgets(line, sizeof line, log)) count += strstr(line, words) != NULL;
  WANT(ftruncate(fileno(log), 0) == 0);
  rewind(log);
  return count;
}

static void plans(struct futhark_sparse_f32* a) {
  static const char tiles[] =
      "form tiles\norder natural\nell 1 2 4 elements 64 segments 32\ngroups 3\n1 32@0>=12 ell\n2 segments\n";
  // The first 32 rows have 24 columns of 16 non-zeros, and 32 rows of 12 follow. In f32 windows of kernels for GPUs
  // have 16 rows at most.
#if defined(FUTHARK_BACKEND_c)
  const char* const product = "by the plan: 1 blocks, 96 ELL rows, 25 nnz segments";
  const char* const sddmm = "sparse SDDMM by the plan: 1 blocks";
#else
  const char* const product = "by the plan: 2 windows of 16 rows, 98 rows gathered";
  const char* const sddmm = "sparse SDDMM by the plan: a list of the non-zeros";
#endif
  char text[400];
  FILE* log = tmpfile();
  futhark_context_set_logging_file(ctx, log);
  size_t size = plan_text(text, sizeof text, kRows, kColumns + 1, kNonzeros, 0, "spmm", tiles);
  WANT(futhark_set_plan_sparse_f32(ctx, a, text, size) != 0 &&
       error_has("is for a matrix of 130 by 91, the operand has 130 by 90"));
  size = plan_text(text, sizeof text, kRows, kColumns, kNonzeros - 1, 0, "spmm", tiles);
  WANT(futhark_set_plan_sparse_f32(ctx, a, text, size) != 0 && error_has("1559 non-zeros, the operand has 1560"));
  size = plan_text(text, sizeof text, kRows, kColumns, kNonzeros, 0, "spmm", tiles);
  const unsigned long long key = key_of(futhark_set_plan_sparse_f32(ctx, a, text, size));
  WANT(key != 0);
  size = plan_text(text, sizeof text, kRows, kColumns, kNonzeros, key, "spmm", "form dense\n");
  WANT(futhark_set_plan_sparse_f32(ctx, a, text, size) != 0 && error_has("without #[sparse] for this operand"));
  WANT(futhark_set_plan_sparse_f32(ctx, a, "plan", 4) != 0 && error_has("line 1: expected"));
  // None of those is there. What the runtime has made of the matrix by now gives way to a plan.
  products(a, 0);
  WANT(logged(log, "by the plan") == 0);
  size = plan_text(text, sizeof text, kRows, kColumns, kNonzeros, key, "spmm", tiles);
  WANT(futhark_set_plan_sparse_f32(ctx, a, text, size) == 0);
  products(a, 0);
  samples(a);
  WANT(logged(log, product) == 20);
  size = plan_text(text, sizeof text, kRows, kColumns, kNonzeros, key, "sddmm", tiles);
  WANT(futhark_set_plan_sparse_f32(ctx, a, text, size) == 0);
  samples(a);
  WANT(logged(log, sddmm) == 1);
  products(a, 0);
  WANT(futhark_set_plan_sparse_f32(ctx, a, NULL, 0) == 0);
  logged(log, "");
  samples(a);
  products(a, 0);
  WANT(logged(log, "by the plan") == 0);
  futhark_context_set_logging_file(ctx, stderr);
  fclose(log);
}

// What its library has of a matrix are the columns' starts.
static void plans_by_columns(void) {
  const int64_t starts[] = {0, 2, 2, 3};
  const int32_t places[] = {0, 1, 1};
  const double numbers[] = {2, 3, 5}, x[] = {1, 10, 100};
  double got[2];
  char text[400];
  struct futhark_sparse_f64* a = futhark_new_sparse_f64(ctx, 3, 2, starts, places, numbers);
  const char form[] = "form tiles\norder natural\nell 1 elements 8 segments 8\ngroups 1\n1 ell\n";
  size_t size = plan_text(text, sizeof text, 3, 2, 3, 0, "spmm", form);
  const unsigned long long key = key_of(futhark_set_plan_sparse_f64(ctx, a, text, size));
  size = plan_text(text, sizeof text, 3, 2, 3, key, "spmm", form);
  WANT(key != 0 && futhark_set_plan_sparse_f64(ctx, a, text, size) == 0);
  struct futhark_f64_1d *given = futhark_new_f64_1d(ctx, x, 3), *result;
  WANT(futhark_entry_down(ctx, &result, a, given) == 0);
  WANT(futhark_values_f64_1d(ctx, result, got) == 0 && got[0] == 2 && got[1] == 503);
  WANT(futhark_free_f64_1d(ctx, result) == 0);
  WANT(futhark_free_f64_1d(ctx, given) == 0);
  WANT(futhark_free_sparse_f64(ctx, a) == 0);
}

static void patterns(void) {
  const int64_t starts[] = {0, 2, 2, 3};
  const int32_t places[] = {0, 1, 1};
  const uint8_t numbers[] = {3, 250};
  uint8_t got[3];
  struct futhark_sparse_u8* a = futhark_new_sparse_u8(ctx, 3, 2, starts, places, NULL);
  struct futhark_u8_2d *b = futhark_new_u8_2d(ctx, numbers, 2, 1), *result;
  WANT(a != NULL && futhark_nonzeros_sparse_u8(ctx, a) == 3);
  WANT(futhark_entry_paths(ctx, &result, a, b) == 0);
  WANT(futhark_values_u8_2d(ctx, result, got) == 0 && got[0] == 253 && got[1] == 0 && got[2] == 250);
  WANT(futhark_free_u8_2d(ctx, result) == 0);
  WANT(futhark_free_u8_2d(ctx, b) == 0);
  WANT(futhark_free_sparse_u8(ctx, a) == 0);
}

static void errors(void) {
  const int64_t starts[] = {0, 2, 1}, late[] = {1, 2, 2}, good[] = {0, 2, 2};
  const int32_t falling[] = {1, 0}, outside[] = {0, 2}, rising[] = {0, 1};
  WANT(futhark_new_sparse_f32(ctx, 2, 2, starts, rising, NULL) == NULL && error_has("row 1 of a sparse matrix ends"));
  WANT(futhark_new_sparse_f32(ctx, 2, 2, late, rising, NULL) == NULL && error_has("starts at 1"));
  WANT(futhark_new_sparse_f32(ctx, 2, 2, good, falling, NULL) == NULL && error_has("row 0 of a sparse matrix do not"));
  WANT(futhark_new_sparse_f32(ctx, 2, 2, good, outside, NULL) == NULL && error_has("column 2 of 2"));
  WANT(futhark_new_sparse_f32(ctx, -1, 2, good, rising, NULL) == NULL && error_has("-1 rows"));
  // Sizes that do not fit are an error of the entry.
  struct futhark_sparse_f32* a = futhark_new_sparse_f32(ctx, 2, 2, good, rising, NULL);
  struct futhark_f32_2d *b = futhark_new_f32_2d(ctx, dense[0], 3, 2), *result;
  WANT(futhark_entry_smooth(ctx, &result, a, b) != 0 && error_has("`B`"));
  WANT(futhark_free_f32_2d(ctx, b) == 0);
  WANT(futhark_free_sparse_f32(ctx, a) == 0);
}

int main(void) {
  struct futhark_context_config* cfg = futhark_context_config_new();
  futhark_context_config_set_logging(cfg, 1);
  ctx = futhark_context_new(cfg);
  fill();
  struct futhark_sparse_f32* a = futhark_new_sparse_f32(ctx, kRows, kColumns, row_start, column, values);
  WANT(a != NULL);
  WANT(futhark_shape_sparse_f32(ctx, a)[0] == kRows && futhark_shape_sparse_f32(ctx, a)[1] == kColumns);
  WANT(futhark_nonzeros_sparse_f32(ctx, a) == kNonzeros);
  products(a, 1);
  wide_products(a);
  products_of_bf16();
  columns(a);
  samples(a);
  plans(a);
  plans_by_columns();
  patterns();
  errors();
  WANT(futhark_free_sparse_f32(ctx, a) == 0);
  futhark_context_free(ctx);
  futhark_context_config_free(cfg);
  return wrong > 0;
}
