// A packed contraction as data: groups of dims, panels, micro-kernels and tiles; positions, and the order of dims.
#ifndef APL_PACKED_PANELS_H
#define APL_PACKED_PANELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
  kPackedRank = 16,     // dims of a group, at most
  kPackedOperands = 8,  // tables of positions of a side, at most
  kPackedRows = 128,    // of a micro-tile along M or N, at most
  kPackedLine = 64,
  kPackedPart = 16,  // indices of a dim that neighbours in memory are read by
};

// Dims that are flattened, outermost first.
struct apl_packed_group {
  int32_t rank;
  int64_t size[kPackedRank];
};
// Positions of a group's indices in an array: one stride a dim.
struct apl_packed_strides {
  int64_t stride[kPackedRank];
};

// Rows of a panel. `row` and `step` have a table for each operand of the side: an element lies at the sum of the two,
// from where the operand begins. So have numbers that conditions ask for, and positions in arrays of indices.
struct apl_packed_panel {
  int64_t rows;  // inside; what is packed for others does not matter
  int64_t most;  // of the micro-kernel
  int64_t depth;
  const void* packed;  // where it was packed
  // What is needed soon after: a line of it is fetched into the second cache at each step, so many bytes further on.
  const char* ahead;
  int64_t ahead_step;
  bool contiguous;  // all operands: neighbouring rows lie one behind the other, and all are inside
  const int64_t* row[kPackedOperands];
  const int64_t* step[kPackedOperands];
  // Steps `first[r]`, `first[r] + stride`, ..., `length[r]` of them, lie one behind the other in all operands: a panel
  // whose rows are not contiguous is transposed run by run. No runs: these would be too short.
  int64_t runs, stride;
  const int64_t *first, *length;
};

// Elements of the result that a micro-tile has. Runs of columns are contiguous.
struct apl_packed_tile {
  int64_t rows, columns;        // inside
  int64_t height, width;        // of the accumulators
  const int64_t* row;           // positions
  const int64_t* row_index;     // of the flattened M
  const int64_t* column;        // positions
  const int64_t* column_index;  // of the flattened N
  const int64_t* run;           // so many columns from this one on lie one behind the other
};

// A micro-kernel: rows and columns of its tile. Accumulators are an array for each result of the reduction; they begin
// as neutral elements if it is the first part of the depth. `tile` is where they will be stored after the last one, if
// whole lines are: these are fetched.
struct apl_packed_kernel {
  int32_t rows, columns;
  void (*compute)(const void* arguments, const int64_t* batch, int64_t depth, const struct apl_packed_panel* m,
                  const void* n, void* accumulators, bool first, const struct apl_packed_tile* tile);
};
// The first two read M packed: two vectors and one vector of columns. The others read M where it lies, by pairs of many
// rows and few: two vectors of columns, one, and kPackedNarrow columns. The last one reads N where it lies, too: few
// rows, four vectors of columns, which are contiguous; its `n` is the panel. Where there is none it has no rows.
enum {
  kPackedWidths = 3,
  kPackedNarrow = 4,
  kPackedDirect = 2,
  kPackedInPlace = kPackedDirect + 2 * kPackedWidths,
  kPackedKernels
};

struct apl_packed {
  struct apl_packed_group batch, m, n, k;
  // The side of M and that of N: bytes of a row of a panel for one step, operands, and where these lie.
  int32_t m_bytes, n_bytes, m_operands, n_operands;
  struct apl_packed_strides m_row[kPackedOperands], m_step[kPackedOperands];
  struct apl_packed_strides n_row[kPackedOperands], n_step[kPackedOperands];
  struct apl_packed_strides m_result, n_result;
  struct apl_packed_strides m_index, n_index;  // of the flattened dims; found by apl_packed_run
  int32_t accumulator_bytes;                   // of one element
  bool reorders;                               // steps of the depth may be taken in any order
  bool packs_m, packs_n;                       // operands are not read where they lie, as conditions are asked
  bool pairs;                                  // panels have two steps of the depth of a row side by side
  bool blocked;                // the last two dims of the depth, by kPackedPart; found by apl_packed_run
  int64_t m_stride, n_stride;  // of runs of steps in either side's operands, likewise
  void (*pack_m)(const void* arguments, const int64_t* batch, const struct apl_packed_panel* panel, void* packed);
  void (*pack_n)(const void* arguments, const int64_t* batch, const struct apl_packed_panel* panel, void* packed);
  struct apl_packed_kernel kernels[kPackedKernels];
  // Accumulators of a tile with those of later steps of the depth.
  void (*combine)(const void* arguments, const int64_t* batch, const struct apl_packed_tile* tile, void* accumulators,
                  const void* later);
  void (*store)(const void* arguments, const int64_t* batch, const struct apl_packed_tile* tile,
                const void* accumulators);
};

static inline int64_t apl_packed_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
static inline int64_t apl_packed_least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t apl_packed_most(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t apl_packed_lines(int64_t bytes) { return apl_packed_up(bytes, kPackedLine) * kPackedLine; }
static inline int64_t apl_packed_size(const struct apl_packed_group* group) {
  int64_t size = 1;
  for (int32_t d = 0; d < group->rank; ++d) size *= group->size[d];
  return size;
}

// Indices of the batch with this number.
static inline void apl_packed_batch_of(const struct apl_packed* p, int64_t number, int64_t batch[kPackedRank]) {
  for (int32_t d = p->batch.rank - 1; d >= 0; --d) {
    batch[d] = number % p->batch.size[d];
    number /= p->batch.size[d];
  }
}

// Positions of `count` indices from `first` on.
static inline void apl_packed_positions(const struct apl_packed_group* group, const struct apl_packed_strides* strides,
                                        int64_t first, int64_t count, int64_t* positions) {
  int64_t index[kPackedRank] = {0}, position = 0;
  const int32_t last = group->rank - 1;
  if (count <= 0) return;
  if (last < 0) {
    for (int64_t k = 0; k < count; ++k) positions[k] = 0;
    return;
  }
  int64_t left = first;
  for (int32_t d = last; d >= 0; --d) {
    index[d] = d == 0 ? left : left % group->size[d];
    left /= group->size[d];
    position += index[d] * strides->stride[d];
  }
  for (int64_t k = 0; k < count;) {
    const int64_t stride = strides->stride[last];
    const int64_t run = apl_packed_least(count - k, group->size[last] - index[last]);
    for (int64_t r = 0; r < run; ++r) positions[k + r] = position + r * stride;
    k += run;
    if (k == count) return;
    position -= index[last] * stride;
    index[last] = 0;
    for (int32_t d = last - 1; d >= 0; --d) {
      position += strides->stride[d];
      if (++index[d] < group->size[d]) break;
      position -= group->size[d] * strides->stride[d];
      index[d] = 0;
    }
  }
}

// The same for the depth, whose last two dims may be taken in blocks: those of the first, then of the second.
static inline void apl_packed_steps(const struct apl_packed* p, const struct apl_packed_strides* strides, int64_t first,
                                    int64_t count, int64_t* positions) {
  if (!p->blocked) {
    apl_packed_positions(&p->k, strides, first, count, positions);
    return;
  }
  const int32_t x = p->k.rank - 2, y = p->k.rank - 1;
  const int64_t x_size = p->k.size[x], y_size = p->k.size[y];
  for (int64_t k = 0; k < count;) {
    int64_t left = first + k, base = 0;
    const int64_t plane = left % (x_size * y_size);
    left /= x_size * y_size;
    for (int32_t d = x - 1; d >= 0; --d) {
      base += (d == 0 ? left : left % p->k.size[d]) * strides->stride[d];
      left /= p->k.size[d];
    }
    const int64_t x_from = plane / (kPackedPart * y_size) * kPackedPart;
    const int64_t height = apl_packed_least(kPackedPart, x_size - x_from);
    const int64_t y_from = (plane - x_from * y_size) / (height * kPackedPart) * kPackedPart;
    const int64_t width = apl_packed_least(kPackedPart, y_size - y_from);
    int64_t inside = plane - x_from * y_size - y_from * height;
    for (; inside < height * width && k < count; ++inside, ++k)
      positions[k] =
          base + (x_from + inside / width) * strides->stride[x] + (y_from + inside % width) * strides->stride[y];
  }
}

// So many neighbours from each index on lie one behind the other in both.
static inline void apl_packed_runs(const int64_t* positions, const int64_t* indices, int64_t count, int64_t* runs) {
  for (int64_t k = count; k-- > 0;) {
    const bool more = k + 1 < count && positions[k + 1] == positions[k] + 1 && indices[k + 1] == indices[k] + 1;
    runs[k] = more ? runs[k + 1] + 1 : 1;
  }
}

static inline bool apl_packed_is_run(const int64_t* positions, int64_t count) {
  for (int64_t k = 1; k < count; ++k)
    if (positions[k] != positions[0] + k) return false;
  return true;
}

// ---- the order of dims ----
// Any order of M and N will do, and of the depth if the operator is commutative. Neighbours in memory are to be
// neighbours in time.

// Dim d moves to `to`, and those between them make room; in all tables.
static inline void apl_packed_move(struct apl_packed_group* group, struct apl_packed_strides* const* tables,
                                   int32_t count, int32_t d, int32_t to) {
  for (; d < to; ++d) {
    const int64_t size = group->size[d];
    group->size[d] = group->size[d + 1], group->size[d + 1] = size;
    for (int32_t t = 0; t < count; ++t) {
      const int64_t stride = tables[t]->stride[d];
      tables[t]->stride[d] = tables[t]->stride[d + 1], tables[t]->stride[d + 1] = stride;
    }
  }
}

// The dim of the smallest stride, of those with several elements; -1: it varies along none.
static inline int32_t apl_packed_fastest(const struct apl_packed_group* group, const struct apl_packed_strides* of) {
  int32_t best = -1;
  for (int32_t d = 0; d < group->rank; ++d) {
    if (group->size[d] <= 1 || of->stride[d] == 0) continue;
    const int64_t stride = of->stride[d] < 0 ? -of->stride[d] : of->stride[d];
    const int64_t least = best < 0 ? 0 : of->stride[best] < 0 ? -of->stride[best] : of->stride[best];
    if (best < 0 || stride < least) best = d;
  }
  return best;
}

static inline void apl_packed_index(const struct apl_packed_group* group, struct apl_packed_strides* index) {
  int64_t product = 1;
  for (int32_t d = group->rank - 1; d >= 0; --d) index->stride[d] = product, product *= group->size[d];
}

static inline void apl_packed_order(struct apl_packed* p) {
  apl_packed_index(&p->m, &p->m_index);
  apl_packed_index(&p->n, &p->n_index);
  p->m_stride = p->n_stride = 1, p->blocked = false;
  struct apl_packed_strides* tables[2 * kPackedOperands];
  int32_t count = 0;
  for (int32_t o = 0; o < p->m_operands; ++o) tables[count++] = &p->m_row[o];
  tables[count++] = &p->m_result, tables[count++] = &p->m_index;
  // M: as its operand lies.
  int32_t d = apl_packed_fastest(&p->m, &p->m_row[0]);
  if (d >= 0) apl_packed_move(&p->m, tables, count, d, p->m.rank - 1);
  // N: as its operand lies, whose lines are still there; then as the result lies, where it has more elements.
  count = 0;
  for (int32_t o = 0; o < p->n_operands; ++o) tables[count++] = &p->n_row[o];
  tables[count++] = &p->n_result, tables[count++] = &p->n_index;
  d = apl_packed_fastest(&p->n, &p->n_row[0]);
  if (d >= 0) apl_packed_move(&p->n, tables, count, d, p->n.rank - 1);
  d = apl_packed_fastest(&p->n, &p->n_result);
  if (d >= 0 && apl_packed_size(&p->m) >= apl_packed_size(&p->k))
    apl_packed_move(&p->n, tables, count, d, p->n.rank - 1);
  if (!p->reorders) return;
  count = 0;
  for (int32_t o = 0; o < p->m_operands; ++o) tables[count++] = &p->m_step[o];
  for (int32_t o = 0; o < p->n_operands; ++o) tables[count++] = &p->n_step[o];
  const int32_t m_dim = apl_packed_fastest(&p->k, &p->m_step[0]);
  if (m_dim >= 0) apl_packed_move(&p->k, tables, count, m_dim, p->k.rank - 1);
  const int32_t n_dim = apl_packed_fastest(&p->k, &p->n_step[0]), last = p->k.rank - 1;
  if (n_dim < 0 || n_dim == last || p->n_step[0].stride[n_dim] != 1) return;
  if (p->m_step[0].stride[last] != 1) {
    apl_packed_move(&p->k, tables, count, n_dim, last);
    return;
  }
  // Each side has a contiguous dim of its own: blocks of both, so that lines are read whole.
  apl_packed_move(&p->k, tables, count, n_dim, last - 1);
  p->blocked = true;
  p->n_stride = kPackedPart;
}

#endif
