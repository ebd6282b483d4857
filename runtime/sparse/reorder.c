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
// An order on the way to one that is worth it brings together so many times as many.
static const double kReorderHope = 1.05;

static uint32_t reorder_hash(uint32_t x) {
  x = (x ^ (x >> 16)) * 0x7FEB352Du;
  x = (x ^ (x >> 15)) * 0x846CA68Bu;
  return x ^ (x >> 16);
}

// The commonest label of at most so many elements of a line; of equals the smallest.
static uint32_t reorder_commonest(const uint32_t* label, const int32_t* element, int64_t count, uint32_t before) {
  uint32_t seen[kReorderNeighbours];
  if (count == 0) return before;
  const int64_t stride = (count + kReorderNeighbours - 1) / kReorderNeighbours;
  int length = 0;
  for (int64_t k = 0; k < count; k += stride) {
    const uint32_t here = label[element[k]];
    int at = length++;
    for (; at > 0 && seen[at - 1] > here; --at) seen[at] = seen[at - 1];
    seen[at] = here;
  }
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

// The rows of each column: those of column j end at end[j].
struct reorder_columns {
  int64_t* end;
  int32_t* row;
  uint32_t* label;
};

static int reorder_turn(const struct apl_sparse_csr* m, struct reorder_columns* c) {
  c->end = apl_sparse_array(m->columns + 1, sizeof *c->end);
  c->row = apl_sparse_array(m->nonzeros, sizeof *c->row);
  c->label = apl_sparse_array(m->columns, sizeof *c->label);
  if (!c->end || !c->row || !c->label) return APL_SPARSE_OUT_OF_MEMORY;
  for (int64_t k = 0; k < m->nonzeros; ++k) ++c->end[m->column[k] + 1];
  for (int64_t j = 0; j < m->columns; ++j) c->end[j + 1] += c->end[j];
  for (int64_t row = 0; row < m->rows; ++row)
    for (int64_t k = m->row_start[row]; k < m->row_start[row + 1]; ++k) c->row[c->end[m->column[k]]++] = (int32_t)row;
  return APL_SPARSE_FINE;
}

// Columns take the commonest label of their rows, then rows of their columns.
static void reorder_round(const struct apl_sparse_csr* m, const struct reorder_columns* c, uint32_t* label) {
  for (int64_t j = 0; j < m->columns; ++j) {
    const int64_t begin = j == 0 ? 0 : c->end[j - 1];
    c->label[j] = reorder_commonest(label, c->row + begin, c->end[j] - begin, UINT32_MAX);
  }
  for (int64_t row = 0; row < m->rows; ++row)
    label[row] = reorder_commonest(c->label, m->column + m->row_start[row], m->row_start[row + 1] - m->row_start[row],
                                   label[row]);
}

struct reorder_try {
  const struct apl_sparse_csr* matrix;
  const struct apl_device* device;
  int32_t type;
  int64_t width;
  struct apl_sparse_reordering* found;
};

// The order by these labels is taken if it is so much better. `shared` is how much neighbours then share.
static int reorder_look(const struct reorder_try* t, const uint32_t* label, double* shared) {
  struct apl_sparse_statistics statistics;
  double after = 0;
  int32_t* order = apl_sparse_array(t->matrix->rows, sizeof *order);
  int status = order ? reorder_sort(label, t->matrix->rows, order) : APL_SPARSE_OUT_OF_MEMORY;
  if (!status) status = apl_sparse_time_of_order(t->matrix, order, t->device, t->type, t->width, &statistics, &after);
  if (!status) *shared = statistics.shared;
  if (!status && after <= kReorderShare * t->found->before && (!t->found->order || after < t->found->after)) {
    free(t->found->order);
    t->found->order = order;
    t->found->after = after;
    order = NULL;
  }
  free(order);
  return status;
}

int apl_sparse_reorder(const struct apl_sparse_csr* matrix, const struct apl_device* device, int32_t type,
                       int64_t width, struct apl_sparse_reordering* found) {
  *found = (struct apl_sparse_reordering){NULL, 0, 0};
  if (matrix->nonzeros < kReorderLeast || matrix->nonzeros > kReorderMost || matrix->rows > INT32_MAX)
    return APL_SPARSE_FINE;
  const struct reorder_try t = {matrix, device, type, width, found};
  struct apl_sparse_statistics natural;
  struct reorder_columns columns = {NULL, NULL, NULL};
  double shared = 0;
  uint32_t* label = apl_sparse_array(matrix->rows, sizeof *label);
  int status = label ? apl_sparse_time_of_order(matrix, NULL, device, type, width, &natural, &found->before)
                     : APL_SPARSE_OUT_OF_MEMORY;
  if (!status) reorder_by_columns(matrix, label);
  if (!status) status = reorder_look(&t, label, &shared);
  if (!status && natural.shared < kReorderShared) {
    status = reorder_turn(matrix, &columns);
    for (int round = 0; round < kReorderRounds && !status; ++round) {
      reorder_round(matrix, &columns, label);
      // Where the first two bring nothing together, the others do not either.
      if (round != 1 && round != kReorderRounds - 1) continue;
      status = reorder_look(&t, label, &shared);
      if (shared < kReorderHope * natural.shared) break;
    }
  }
  free(columns.end);
  free(columns.row);
  free(columns.label);
  free(label);
  if (status) {
    free(found->order);
    found->order = NULL;
  }
  return status;
}
