// A sparse matrix times a dense one: plain C loops over the non-zeros beside the library that aplc makes of spmm.fut.
//   aplc c --library -o spmm spmm.fut
//   cc -O3 -march=native -fopenmp -I. spmm.c PATH/spmm.c -lm
//   ./a.out cora.mtx [COLUMNS]
#include "spmm.h"

#include <string.h>

#include "measure.h"

struct rows {
  int64_t rows, columns, nonzeros, *start;
  int32_t* column;
};

// A pattern in the Matrix Market format whose entries are ordered by rows.
static struct rows read_pattern(const char* name) {
  FILE* file = fopen(name, "r");
  char line[256];
  struct rows m = {0, 0, 0, NULL, NULL};
  if (!file) exit((perror(name), 1));
  while (fgets(line, sizeof line, file) && line[0] == '%')
    ;
  if (sscanf(line, "%lld %lld %lld", (long long*)&m.rows, (long long*)&m.columns, (long long*)&m.nonzeros) != 3)
    exit((fprintf(stderr, "%s: no sizes\n", name), 1));
  m.start = allocate((m.rows + 1) * 8);
  m.column = allocate(m.nonzeros * 4);
  memset(m.start, 0, (size_t)(m.rows + 1) * 8);
  for (int64_t k = 0, before = 1; k < m.nonzeros; ++k) {
    long long row, column;
    if (fscanf(file, "%lld %lld", &row, &column) != 2 || row < before || row > m.rows)
      exit((fprintf(stderr, "%s: entry %lld is no position, or not in order\n", name, (long long)k), 1));
    m.column[k] = (int32_t)(column - 1);
    ++m.start[row];
    before = row;
  }
  for (int64_t i = 0; i < m.rows; ++i) m.start[i + 1] += m.start[i];
  fclose(file);
  return m;
}

// What one writes by hand: a loop over the non-zeros of each row.
static void by_nonzeros(const struct rows* m, const float* restrict values, int64_t b, const float* restrict B,
                        float* restrict C) {
  for (int64_t i = 0; i < m->rows; ++i) {
    float* restrict row = C + i * b;
    for (int64_t j = 0; j < b; ++j) row[j] = 0;
    for (int64_t k = m->start[i]; k < m->start[i + 1]; ++k)
      for (int64_t j = 0; j < b; ++j) row[j] += values[k] * B[m->column[k] * b + j];
  }
}

int main(int argc, char** argv) {
  if (argc < 2) return fprintf(stderr, "usage: %s M.mtx [COLUMNS]\n", argv[0]), 1;
  const struct rows m = read_pattern(argv[1]);
  const int64_t b = argc > 2 ? atoi(argv[2]) : 1024;
  float *values = numbers(m.nonzeros, 1), *B = numbers(m.columns * b, 2);
  float *wanted = allocate(m.rows * b * 4), *C = allocate(m.rows * b * 4);

  struct futhark_context_config* cfg = futhark_context_config_new();
  struct futhark_context* ctx = futhark_context_new(cfg);
  struct futhark_sparse_f32* A = futhark_new_sparse_f32(ctx, m.rows, m.columns, m.start, m.column, values);
  struct futhark_f32_2d *X = futhark_new_f32_2d(ctx, B, m.columns, b), *Z = NULL;
  check(ctx, !A || !X);
  double nonzeros, ours;
  BEST(nonzeros, 5, by_nonzeros(&m, values, b, B, wanted));
  BEST(ours, 5, {
    if (Z) futhark_free_f32_2d(ctx, Z);
    check(ctx, futhark_entry_spmm(ctx, &Z, A, X));
    check(ctx, futhark_context_sync(ctx));
  });
  check(ctx, futhark_values_f32_2d(ctx, Z, C));
  want_equal(C, wanted, m.rows * b);
  row("plain C, a loop over the non-zeros", nonzeros, nonzeros);
  row_of_library(ours, nonzeros);
  return 0;
}
