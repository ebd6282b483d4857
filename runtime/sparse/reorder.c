// An order of the rows that brings those together that share columns, for kernels of windows: by the smallest hash of a
// row's columns, which alike rows have in common; if that is not enough, by communities, whose labels rows and columns
// take from each other. It is made where the model says that it pays, for matrices on which it takes no longer than
// packing some times.
#include <stdlib.h>
#include <string.h>

#include "runtime/sparse/device_kernel.h"
#include "runtime/sparse/operand_arrays.h"

enum { kReorderRounds = 4, kReorderNeighbours = 16 };
static const int64_t kReorderLeast = 1 << 15, kReorderMost = 1 << 22;  // non-zeros
// Order pays if the product then takes this share of its time, or less: the model errs by 10 %.
static const double kReorderShare = 0.85;
// Rows whose neighbours have so many non-zeros a column of 8 rows have little to gain by communities.
static const double kReorderShared = 2;

static uint32_t reorder_hash(uint32_t x) {
  x = (x ^ (x >> 16)) * 0x7FEB352Du;
  x = (x ^ (x >> 15)) * 0x846CA68Bu;
  return x ^ (x >> 16);
}

static int reorder_compare(const void* a, const void* b) {
  const uint32_t x = *(const uint32_t*)a, y = *(const uint32_t*)b;
  return x < y ? -1 : x > y;
}

// The commonest label of at most so many elements of a line; of equals the smallest.
static uint32_t reorder_commonest(const uint32_t* label, const int32_t* element, int64_t count, uint32_t before) {
  uint32_t seen[kReorderNeighbours];
  if (count == 0) return before;
  const int64_t stride = (count + kReorderNeighbours - 1) / kReorderNeighbours;
  int length = 0;
  for (int64_t k = 0; k < count; k += stride) seen[length++] = label[element[k]];
  qsort(seen, (size_t)length, sizeof *seen, reorder_compare);
  int most = 0;
  uint32_t best = before;
  for (int k = 0; k < length;) {
    int stop = k;
    while (stop < length && seen[stop] == seen[k]) ++stop;
    if (stop - k > most) {
      most = stop - k;
      best = seen[k];
    }
    k = stop;
  }
  return best;
}

// Rows by their labels, in passes over 16 bits; equal ones stay as they are.
static int reorder_sort(const uint32_t* label, int64_t rows, int32_t* order) {
  enum { kReorderBits = 16, kReorderKinds = 1 << kReorderBits };
  int32_t* from = apl_sparse_array(rows, sizeof *from);
  int64_t* first = apl_sparse_array(kReorderKinds, sizeof *first);
  if (from && first) {
    for (int64_t k = 0; k < rows; ++k) from[k] = (int32_t)k;
    for (int shift = 0; shift < 32; shift += kReorderBits) {
      memset(first, 0, (kReorderKinds + 1) * sizeof *first);
      for (int64_t k = 0; k < rows; ++k) ++first[(label[k] >> shift & (kReorderKinds - 1)) + 1];
      for (int k = 0; k < kReorderKinds; ++k) first[k + 1] += first[k];
      for (int64_t k = 0; k < rows; ++k) order[first[label[from[k]] >> shift & (kReorderKinds - 1)]++] = from[k];
      memcpy(from, order, (size_t)rows * sizeof *from);
    }
  }
  const int status = from && first ? APL_SPARSE_FINE : APL_SPARSE_OUT_OF_MEMORY;
  free(from);
  free(first);
  return status;
}

static void reorder_by_columns(const struct apl_sparse_csr* m, uint32_t* label) {
  for (int64_t row = 0; row < m->rows; ++row) {
    uint32_t least = UINT32_MAX;
    for (int64_t k = m->row_start[row]; k < m->row_start[row + 1]; ++k) {
      const uint32_t hash = reorder_hash((uint32_t)m->column[k]);
      if (hash < least) least = hash;
    }
    label[row] = least;
  }
}

// Rows start with labels; columns take theirs from them.
static int reorder_by_labels(const struct apl_sparse_csr* m, uint32_t* label) {
  int64_t* start = apl_sparse_array(m->columns + 1, sizeof *start);
  int32_t* row_of = apl_sparse_array(m->nonzeros, sizeof *row_of);
  uint32_t* of_column = apl_sparse_array(m->columns, sizeof *of_column);
  if (start && row_of && of_column) {
    for (int64_t k = 0; k < m->nonzeros; ++k) ++start[m->column[k] + 1];
    for (int64_t j = 0; j < m->columns; ++j) start[j + 1] += start[j];
    for (int64_t row = 0; row < m->rows; ++row)
      for (int64_t k = m->row_start[row]; k < m->row_start[row + 1]; ++k) row_of[start[m->column[k]]++] = (int32_t)row;
    // Each start has moved to the next one.
    for (int round = 0; round < kReorderRounds; ++round) {
      for (int64_t j = 0; j < m->columns; ++j) {
        const int64_t begin = j == 0 ? 0 : start[j - 1];
        of_column[j] = reorder_commonest(label, row_of + begin, start[j] - begin, UINT32_MAX);
      }
      for (int64_t row = 0; row < m->rows; ++row)
        label[row] = reorder_commonest(of_column, m->column + m->row_start[row],
                                       m->row_start[row + 1] - m->row_start[row], label[row]);
    }
  }
  const int status = start && row_of && of_column ? APL_SPARSE_FINE : APL_SPARSE_OUT_OF_MEMORY;
  free(start);
  free(row_of);
  free(of_column);
  return status;
}

int apl_sparse_reorder(const struct apl_sparse_csr* matrix, const struct apl_device* device, int32_t type,
                       int64_t width, struct apl_sparse_reordering* found) {
  *found = (struct apl_sparse_reordering){NULL, 0, 0};
  if (matrix->nonzeros < kReorderLeast || matrix->nonzeros > kReorderMost || matrix->rows > INT32_MAX)
    return APL_SPARSE_FINE;
  struct apl_sparse_statistics statistics;
  int status = apl_sparse_measure(matrix, NULL, &statistics);
  if (!status) status = apl_sparse_time_of_order(matrix, NULL, device, type, width, &found->before);
  uint32_t* label = apl_sparse_array(matrix->rows, sizeof *label);
  int32_t* order = apl_sparse_array(matrix->rows, sizeof *order);
  if (!label || !order) status = APL_SPARSE_OUT_OF_MEMORY;
  const int ways = status || statistics.shared >= kReorderShared ? 1 : 2;
  for (int by_labels = 0; by_labels < ways && !status; ++by_labels) {
    if (by_labels) {
      status = reorder_by_labels(matrix, label);
    } else {
      reorder_by_columns(matrix, label);
    }
    double after = 0;
    if (!status) status = reorder_sort(label, matrix->rows, order);
    if (!status) status = apl_sparse_time_of_order(matrix, order, device, type, width, &after);
    if (status || after > kReorderShare * (found->order ? found->after : found->before)) continue;
    int32_t* before = found->order;
    found->order = order;
    found->after = after;
    order = before ? before : apl_sparse_array(matrix->rows, sizeof *order);
    if (!order) status = APL_SPARSE_OUT_OF_MEMORY;
  }
  free(label);
  free(order);
  if (status) {
    free(found->order);
    found->order = NULL;
  }
  return status;
}
