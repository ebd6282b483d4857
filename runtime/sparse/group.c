// The non-zeros of 64 rows by column: a counting sort, whose passes are chosen by how many there are. Rows go in in
// order and the sort is stable, so that within a column they stay so.
#include <stdlib.h>
#include <string.h>

#include "runtime/sparse/sparse.h"

enum { kMaxDigit = 11 };

static int group_reserve(struct apl_sparse_group* group, int64_t entries) {
  if (entries <= group->capacity) return APL_SPARSE_FINE;
  apl_sparse_group_free(group);
  const size_t capacity = (size_t)entries + (size_t)entries / 2 + 16;
  group->column = malloc(capacity * sizeof *group->column);
  group->source = malloc(capacity * sizeof *group->source);
  group->first = malloc((capacity + 1) * sizeof *group->first);
  group->rows = malloc(capacity * sizeof *group->rows);
  int fine = group->column && group->source && group->first && group->rows;
  for (int k = 0; k < 2; ++k) {
    group->key[k] = malloc(capacity * sizeof *group->key[k]);
    group->order[k] = malloc(capacity * sizeof *group->order[k]);
    fine = fine && group->key[k] && group->order[k];
  }
  if (!fine) {
    apl_sparse_group_free(group);
    return APL_SPARSE_OUT_OF_MEMORY;
  }
  group->capacity = (int64_t)capacity;
  return APL_SPARSE_FINE;
}

// The keys are column * 64 + row of the group; sorts them, with their sources, by the column.
static int sort_by_column(struct apl_sparse_group* group, int64_t columns) {
  int bits = 0, from = 0;
  while (columns > 1 && bits < 31 && (columns - 1) >> bits) ++bits;
  const int digit = group->entries < 1024 ? 8 : kMaxDigit;
  const uint64_t mask = ((uint64_t)1 << digit) - 1;
  for (int shift = 6; shift < 6 + bits; shift += digit) {
    int64_t count[1 << kMaxDigit];
    memset(count, 0, (mask + 1) * sizeof count[0]);
    const uint64_t* key = group->key[from];
    for (int64_t k = 0; k < group->entries; ++k) ++count[key[k] >> shift & mask];
    int64_t sum = 0;
    for (uint64_t d = 0; d <= mask; ++d) {
      const int64_t here = count[d];
      count[d] = sum;
      sum += here;
    }
    for (int64_t k = 0; k < group->entries; ++k) {
      const int64_t to = count[key[k] >> shift & mask]++;
      group->key[1 - from][to] = key[k];
      group->order[1 - from][to] = group->order[from][k];
    }
    from = 1 - from;
  }
  return from;
}

int apl_sparse_group_read(struct apl_sparse_group* group, const struct apl_sparse_csr* matrix, const int32_t* row_order,
                          int64_t index) {
  const int64_t begin = index * APL_SPARSE_GROUP;
  const int64_t end = begin + APL_SPARSE_GROUP < matrix->rows ? begin + APL_SPARSE_GROUP : matrix->rows;
  int64_t entries = 0;
  for (int64_t position = begin; position < end; ++position) {
    const int64_t row = row_order ? row_order[position] : position;
    entries += matrix->row_start[row + 1] - matrix->row_start[row];
  }
  if (group_reserve(group, entries)) return APL_SPARSE_OUT_OF_MEMORY;
  group->entries = group->columns = 0;
  for (int64_t position = begin; position < end; ++position) {
    const int64_t row = row_order ? row_order[position] : position;
    for (int64_t k = matrix->row_start[row]; k < matrix->row_start[row + 1]; ++k) {
      group->key[0][group->entries] = (uint64_t)matrix->column[k] << 6 | (uint64_t)(position - begin);
      group->order[0][group->entries++] = (int32_t)k;
    }
  }
  if (entries == 0) return APL_SPARSE_FINE;
  const int sorted = sort_by_column(group, matrix->columns);
  for (int64_t k = 0; k < entries; ++k) {
    const uint64_t key = group->key[sorted][k];
    if (k == 0 || (int32_t)(key >> 6) != group->column[group->columns - 1]) {
      group->column[group->columns] = (int32_t)(key >> 6);
      group->first[group->columns] = k;
      group->rows[group->columns++] = 0;
    }
    group->rows[group->columns - 1] |= (uint64_t)1 << (key & 63);
    group->source[k] = group->order[sorted][k];
  }
  return APL_SPARSE_FINE;
}

void apl_sparse_group_free(struct apl_sparse_group* group) {
  free(group->column);
  free(group->source);
  free(group->first);
  free(group->rows);
  for (int k = 0; k < 2; ++k) {
    free(group->key[k]);
    free(group->order[k]);
  }
  memset(group, 0, sizeof *group);
}
