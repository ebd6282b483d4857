// Contractions on CPUs: the five loops of BLIS around a micro-kernel, for any rank. Rows of M and N and steps of the
// depth are found through tables of positions, so that operands are packed straight from the layouts that they have
// (TBLIS). Generated code gives what packs a panel, what computes and what stores a micro-tile.
#ifndef APL_PACKED_H
#define APL_PACKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif

// Vectors of the machine that the compiler knows: bytes of one, and how many registers there are.
#if defined(__AVX512F__) && (!defined(__clang__) || defined(APL_WIDE_VECTORS))
#define APL_VECTOR_BYTES 64
#define APL_VECTOR_REGISTERS 32
#elif defined(__AVX512VL__)
#define APL_VECTOR_BYTES 32
#define APL_VECTOR_REGISTERS 32
#elif defined(__AVX__)
#define APL_VECTOR_BYTES 32
#define APL_VECTOR_REGISTERS 16
#elif defined(__aarch64__)
#define APL_VECTOR_BYTES 16
#define APL_VECTOR_REGISTERS 32
#else
#define APL_VECTOR_BYTES 16
#define APL_VECTOR_REGISTERS 16
#endif

// A micro-kernel may fuse a product with the sum that it goes to, and uses the widest vectors.
#if defined(__clang__)
#define APL_MICRO_KERNEL
#define APL_FUSED _Pragma("clang fp contract(fast)")
#elif defined(__AVX512F__)
#define APL_MICRO_KERNEL __attribute__((optimize("fp-contract=fast"), target("prefer-vector-width=512")))
#define APL_FUSED
#else
#define APL_MICRO_KERNEL __attribute__((optimize("fp-contract=fast")))
#define APL_FUSED
#endif

// Straight code of very many products: the passes that look for more than sums to fuse take most of the time to compile
// and find nothing.
#if defined(__clang__)
#define APL_SECTION
#elif defined(__AVX512F__)
#define APL_SECTION \
  __attribute__((optimize("O1", "expensive-optimizations", "fp-contract=fast"), target("prefer-vector-width=512")))
#else
#define APL_SECTION __attribute__((optimize("O1", "expensive-optimizations", "fp-contract=fast")))
#endif

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
// from where the operand begins.
struct apl_packed_panel {
  int64_t rows;  // inside; what is packed for others does not matter
  int64_t depth;
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
  const int64_t* row;           // positions
  const int64_t* row_index;     // of the flattened M
  const int64_t* column;        // positions
  const int64_t* column_index;  // of the flattened N
  const int64_t* run;           // so many columns from this one on lie one behind the other
};

struct apl_packed {
  struct apl_packed_group batch, m, n, k;
  // The side of M and that of N: bytes of a row of a panel for one step, operands, and where these lie.
  int32_t m_bytes, n_bytes, m_operands, n_operands;
  struct apl_packed_strides m_row[kPackedOperands], m_step[kPackedOperands];
  struct apl_packed_strides n_row[kPackedOperands], n_step[kPackedOperands];
  struct apl_packed_strides m_result, n_result;
  struct apl_packed_strides m_index, n_index;  // of the flattened dims; found by apl_packed_run
  int32_t rows, columns;                       // of a micro-tile
  int32_t accumulator_bytes;                   // of one element
  bool reorders;                               // steps of the depth may be taken in any order
  bool blocked;                // the last two dims of the depth, by kPackedPart; found by apl_packed_run
  int64_t m_stride, n_stride;  // of runs of steps in either side's operands, likewise
  void (*pack_m)(const void* arguments, const int64_t* batch, const struct apl_packed_panel* panel, void* packed);
  void (*pack_n)(const void* arguments, const int64_t* batch, const struct apl_packed_panel* panel, void* packed);
  // Accumulators are an array for each result of the reduction; they begin as neutral elements if it is the first part
  // of the depth.
  void (*compute)(const void* arguments, const int64_t* batch, int64_t depth, const void* m, const void* n,
                  void* accumulators, bool first);
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

// Whether one batch has so much to do that packing its panels is worth it.
static inline bool apl_packed_pays(int64_t m, int64_t n, int64_t k) {
  enum { kLeastWork = 16 * 16 * 16 };
  return m >= 2 && n >= 4 && (double)m * (double)n * (double)k >= (double)kLeastWork;
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
  // N: as the result lies, whose rows are written; then as the operand lies, whose lines are still there.
  count = 0;
  for (int32_t o = 0; o < p->n_operands; ++o) tables[count++] = &p->n_row[o];
  tables[count++] = &p->n_result, tables[count++] = &p->n_index;
  d = apl_packed_fastest(&p->n, &p->n_row[0]);
  if (d >= 0) apl_packed_move(&p->n, tables, count, d, p->n.rank - 1);
  d = apl_packed_fastest(&p->n, &p->n_result);
  if (d >= 0) apl_packed_move(&p->n, tables, count, d, p->n.rank - 1);
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

// ---- blocks ----

// How the loops are cut.
struct apl_packed_blocks {
  int64_t m, n, k, batch;             // sizes
  int64_t depth, m_panels, n_panels;  // of a block: steps, and panels
  int64_t threads, teams;             // teams > 1: each takes batches of its own, with one thread
  int64_t m_parts, n_parts;           // of what the threads of a team share
};

// Where an outer dim of N is the contiguous one, whoever packs comes back to a line and its page after all columns of
// the innermost dim: so many steps that these are still in the second cache and in the translation buffer.
static inline int64_t apl_packed_steps_at_once(const struct apl_packed* p) {
  enum { kLines = 8 * 1024, kPages = 1024, kPage = 4096, kLeast = 16 };
  const int32_t n_last = p->n.rank - 1, k_last = p->k.rank - 1;
  if (n_last < 0 || k_last < 0 || p->n_row[0].stride[n_last] <= kPackedLine / p->n_bytes) return INT64_MAX;
  if (p->blocked || p->n_step[0].stride[k_last] == 1) return INT64_MAX;
  const int64_t columns = apl_packed_most(1, p->n.size[n_last]);
  const int64_t apart = apl_packed_most(1, p->n_step[0].stride[k_last]) * p->n_bytes;
  const int64_t per_page = apl_packed_most(1, kPage / apart);
  return apl_packed_most(kLeast, apl_packed_least(kLines / columns, kPages / columns * per_page));
}

static inline int64_t apl_packed_threads(void) {
#ifdef _OPENMP
  return omp_in_parallel() ? 1 : omp_get_max_threads();
#else
  return 1;
#endif
}

// Block sizes from the caches (Low et al., Analytical modeling is enough): a panel of N stays in half of the first, a
// block of M in half of the second.
static inline struct apl_packed_blocks apl_packed_cut_blocks(const struct apl_packed* p) {
  enum { kFirstCache = 32 * 1024, kSecondCache = 1024 * 1024, kWorkOfThread = 1 << 18, kColumns = 4096 };
  struct apl_packed_blocks b = {0};
  b.batch = apl_packed_size(&p->batch), b.m = apl_packed_size(&p->m), b.n = apl_packed_size(&p->n);
  b.k = apl_packed_size(&p->k);
  int64_t depth = apl_packed_most(64, kFirstCache / (p->columns * p->n_bytes));
  depth = apl_packed_least(depth, apl_packed_steps_at_once(p));
  depth = apl_packed_up(b.k, apl_packed_most(1, apl_packed_up(b.k, depth)));
  if (p->blocked) depth = apl_packed_up(depth, kPackedPart * kPackedPart) * kPackedPart * kPackedPart;
  b.depth = apl_packed_most(1, depth);
  const int64_t all_m = apl_packed_most(1, apl_packed_up(b.m, p->rows));
  const int64_t all_n = apl_packed_most(1, apl_packed_up(b.n, p->columns));
  b.n_panels = apl_packed_least(all_n, apl_packed_up(kColumns, p->columns));
  b.n_panels = apl_packed_up(all_n, apl_packed_up(all_n, b.n_panels));
  b.m_panels = apl_packed_most(1, kSecondCache / 2 / (b.depth * p->rows * p->m_bytes));
  b.m_panels = apl_packed_least(all_m, b.m_panels);
  const double points = (double)b.m * (double)b.n * (double)apl_packed_most(1, b.k);
  const double work = points * (double)b.batch / (double)kWorkOfThread;
  const int64_t most = apl_packed_threads();
  b.threads = work < 2 ? 1 : work < (double)most ? (int64_t)work : most;
  b.teams = b.batch >= 2 * b.threads ? b.threads : 1;
  const int64_t shared = b.teams > 1 ? 1 : b.threads;
  // Of all ways to share out panels the one whose longest thread is shortest; packing a panel of M is work, too.
  double best = -1;
  const int64_t least = apl_packed_up(all_m, b.m_panels);
  for (int64_t n_parts = 1; n_parts <= apl_packed_least(shared, b.n_panels); ++n_parts)
    for (int64_t m_parts = least; m_parts <= apl_packed_least(all_m, least + 2 * shared); ++m_parts) {
      const double rounds = (double)apl_packed_up(m_parts * n_parts, shared);
      const double rows = (double)apl_packed_up(all_m, m_parts), columns = (double)apl_packed_up(b.n_panels, n_parts);
      const double time = rounds * rows * (columns + 1.5);
      if (best >= 0 && time >= best) continue;
      best = time;
      b.m_parts = m_parts, b.n_parts = n_parts;
    }
  b.m_panels = apl_packed_up(all_m, b.m_parts);
  return b;
}

// What a team shares, and what each of its threads has.
struct apl_packed_space {
  int64_t n_panels, columns, partial;           // bytes of the team: packed, positions in the result, accumulators
  int64_t m_panels, m_rows, steps, panel_rows;  // bytes of a thread
  int64_t team, thread, all;
};

static inline struct apl_packed_space apl_packed_space_of(const struct apl_packed* p,
                                                          const struct apl_packed_blocks* b) {
  struct apl_packed_space s = {0};
  const int64_t all_m = apl_packed_up(b->m, p->rows);
  s.n_panels = apl_packed_lines(b->n_panels * apl_packed_lines(b->depth * p->columns * p->n_bytes));
  s.columns = apl_packed_lines(3 * b->n_panels * p->columns * (int64_t)sizeof(int64_t));
  s.partial =
      b->depth >= b->k ? 0 : all_m * b->n_panels * apl_packed_lines(p->rows * p->columns * p->accumulator_bytes);
  s.m_panels = apl_packed_lines(b->m_panels * apl_packed_lines(b->depth * p->rows * p->m_bytes));
  s.m_rows = apl_packed_lines(2 * b->m_panels * p->rows * (int64_t)sizeof(int64_t));
  s.steps = apl_packed_lines((p->m_operands + p->n_operands + 4) * b->depth * (int64_t)sizeof(int64_t));
  s.team = s.n_panels + s.columns + s.partial;
  s.thread = s.m_panels + s.m_rows + s.steps;
  s.all = b->teams * s.team + b->threads * s.thread;
  return s;
}

static inline void apl_packed_wait(int64_t threads) {
  (void)threads;
#ifdef _OPENMP
  if (threads > 1) {
#pragma omp barrier
  }
#endif
}

// Rows of a panel in all operands of its side.
static inline void apl_packed_rows(const struct apl_packed_group* group, const struct apl_packed_strides* strides,
                                   int32_t operands, int64_t first, int64_t rows, int64_t most,
                                   int64_t positions[][kPackedRows], struct apl_packed_panel* panel) {
  panel->rows = rows;
  panel->contiguous = rows == most;
  for (int32_t o = 0; o < operands; ++o) {
    apl_packed_positions(group, &strides[o], first, rows, positions[o]);
    for (int64_t r = rows; r < most; ++r) positions[o][r] = positions[o][0];
    panel->row[o] = positions[o];
    panel->contiguous = panel->contiguous && apl_packed_is_run(positions[o], rows);
  }
}

// Runs of steps that lie one behind the other in all operands of a side, one each `stride` steps; 0 if they are short.
// `length` has room for as many numbers as there are steps, and so has `first`.
static inline int64_t apl_packed_step_runs(const int64_t* positions, int64_t apart, int32_t operands, int64_t depth,
                                           int64_t stride, int64_t* first, int64_t* length) {
  enum {
    kShort = 4,
    kLong = kPackedPart
  };  // longer ones are cut, so that a panel's lines that they go to stay in the first cache
  int64_t runs = 0;
  for (int64_t q = 0; q < depth; ++q) {
    bool begins = q < stride;
    for (int32_t o = 0; o < operands && !begins; ++o)
      begins = positions[o * apart + q] != positions[o * apart + q - stride] + 1;
    if (!begins) continue;
    int64_t count = 1;
    for (bool more = true; more; count += more) {
      more = q + count * stride < depth;
      for (int32_t o = 0; o < operands && more; ++o)
        more = positions[o * apart + q + count * stride] == positions[o * apart + q] + count;
    }
    for (int64_t x = 0; x < count; x += kLong, ++runs)
      first[runs] = q + x * stride, length[runs] = apl_packed_least(kLong, count - x);
  }
  return runs * kShort <= depth ? runs : 0;
}

// One batch, by thread `me` of `threads`, which all come here.
static void apl_packed_batch(const struct apl_packed* p, const struct apl_packed_blocks* b,
                             const struct apl_packed_space* s, const void* arguments, int64_t number, char* team,
                             char* mine, int64_t me, int64_t threads) {
  char* const n_packed = team;
  int64_t* const columns = (int64_t*)(team + s->n_panels);
  char* const partial = team + s->n_panels + s->columns;
  char* const m_packed = mine;
  int64_t* const rows = (int64_t*)(mine + s->m_panels);
  int64_t* const row_indices = rows + b->m_panels * p->rows;
  int64_t* const steps = (int64_t*)(mine + s->m_panels + s->m_rows);
  const int64_t all_m = apl_packed_up(b->m, p->rows), all_n = apl_packed_up(b->n, p->columns);
  int64_t batch[kPackedRank] = {0};
  for (int32_t d = p->batch.rank - 1; d >= 0; --d) {
    batch[d] = number % p->batch.size[d];
    number /= p->batch.size[d];
  }
  int64_t positions[kPackedOperands][kPackedRows];
  struct apl_packed_panel panel = {0};
  char local[kPackedRows * kPackedRows] __attribute__((aligned(64)));
  for (int64_t j = 0; j < all_n; j += b->n_panels) {
    const int64_t n_panels = apl_packed_least(b->n_panels, all_n - j);
    for (int64_t q = 0; q == 0 || q < b->k; q += b->depth) {
      const int64_t depth = apl_packed_least(b->depth, b->k - q);
      const bool first = q == 0, last = q + b->depth >= b->k;
      for (int32_t o = 0; o < p->m_operands; ++o) apl_packed_steps(p, &p->m_step[o], q, depth, steps + o * b->depth);
      for (int32_t o = 0; o < p->n_operands; ++o)
        apl_packed_steps(p, &p->n_step[o], q, depth, steps + (p->m_operands + o) * b->depth);
      int64_t* const m_runs = steps + (p->m_operands + p->n_operands) * b->depth;
      int64_t* const n_runs = m_runs + 2 * b->depth;
      panel.depth = depth;
      panel.first = n_runs, panel.length = n_runs + b->depth, panel.stride = p->n_stride;
      panel.runs = apl_packed_step_runs(steps + p->m_operands * b->depth, b->depth, p->n_operands, depth, p->n_stride,
                                        n_runs, n_runs + b->depth);
      for (int32_t o = 0; o < p->n_operands; ++o) panel.step[o] = steps + (p->m_operands + o) * b->depth;
      for (int64_t c = me; c < n_panels; c += threads) {
        const int64_t from = (j + c) * p->columns, width = apl_packed_least(p->columns, b->n - from);
        apl_packed_rows(&p->n, p->n_row, p->n_operands, from, width, p->columns, positions, &panel);
        p->pack_n(arguments, batch, &panel, n_packed + c * apl_packed_lines(b->depth * p->columns * p->n_bytes));
        if (!last) continue;
        int64_t* const column = columns + 3 * c * p->columns;
        apl_packed_positions(&p->n, &p->n_result, from, width, column);
        apl_packed_positions(&p->n, &p->n_index, from, width, column + p->columns);
        apl_packed_runs(column, column + p->columns, width, column + 2 * p->columns);
      }
      apl_packed_wait(threads);
      panel.first = m_runs, panel.length = m_runs + b->depth, panel.stride = p->m_stride;
      panel.runs = apl_packed_step_runs(steps, b->depth, p->m_operands, depth, p->m_stride, m_runs, m_runs + b->depth);
      for (int32_t o = 0; o < p->m_operands; ++o) panel.step[o] = steps + o * b->depth;
      for (int64_t part = me; part < b->m_parts * b->n_parts; part += threads) {
        const int64_t m_part = part / b->n_parts, n_part = part % b->n_parts;
        const int64_t m_from = all_m * m_part / b->m_parts, m_to = all_m * (m_part + 1) / b->m_parts;
        const int64_t n_from = n_panels * n_part / b->n_parts, n_to = n_panels * (n_part + 1) / b->n_parts;
        if (n_from == n_to) continue;
        for (int64_t i = m_from; i < m_to; ++i) {
          const int64_t from = i * p->rows, height = apl_packed_least(p->rows, b->m - from);
          apl_packed_rows(&p->m, p->m_row, p->m_operands, from, height, p->rows, positions, &panel);
          p->pack_m(arguments, batch, &panel,
                    m_packed + (i - m_from) * apl_packed_lines(b->depth * p->rows * p->m_bytes));
          if (!last) continue;
          apl_packed_positions(&p->m, &p->m_result, from, height, rows + (i - m_from) * p->rows);
          apl_packed_positions(&p->m, &p->m_index, from, height, row_indices + (i - m_from) * p->rows);
        }
        for (int64_t c = n_from; c < n_to; ++c)
          for (int64_t i = m_from; i < m_to; ++i) {
            const int64_t tile_bytes = apl_packed_lines(p->rows * p->columns * p->accumulator_bytes);
            char* const tile = first && last ? local : partial + (i * b->n_panels + c) * tile_bytes;
            p->compute(arguments, batch, depth,
                       m_packed + (i - m_from) * apl_packed_lines(b->depth * p->rows * p->m_bytes),
                       n_packed + c * apl_packed_lines(b->depth * p->columns * p->n_bytes), tile, first);
            if (!last) continue;
            const int64_t* const column = columns + 3 * c * p->columns;
            const struct apl_packed_tile where = {
                apl_packed_least(p->rows, b->m - i * p->rows),
                apl_packed_least(p->columns, b->n - (j + c) * p->columns),
                rows + (i - m_from) * p->rows,
                row_indices + (i - m_from) * p->rows,
                column,
                column + p->columns,
                column + 2 * p->columns,
            };
            p->store(arguments, batch, &where, tile);
          }
      }
      apl_packed_wait(threads);
    }
  }
}

// The bytes of `space`, if there is none yet, else all of the contraction.
static int64_t apl_packed_run(struct apl_packed* p, const void* arguments, void* space) {
  apl_packed_order(p);
  const struct apl_packed_blocks b = apl_packed_cut_blocks(p);
  const struct apl_packed_space s = apl_packed_space_of(p, &b);
  if (!space) return s.all;
  if (b.m == 0 || b.n == 0 || b.batch == 0) return 0;
  char* const threads_space = (char*)space + b.teams * s.team;
#ifdef _OPENMP
#pragma omp parallel num_threads(b.threads) if (b.threads > 1)
#endif
  {
    int64_t me = 0, there = 1;
#ifdef _OPENMP
    me = omp_get_thread_num(), there = omp_get_num_threads();
#endif
    char* const mine = threads_space + me * s.thread;
    if (b.teams > 1) {
      for (int64_t batch = me; batch < b.batch; batch += there)
        apl_packed_batch(p, &b, &s, arguments, batch, (char*)space + me * s.team, mine, 0, 1);
    } else {
      for (int64_t batch = 0; batch < b.batch; ++batch)
        apl_packed_batch(p, &b, &s, arguments, batch, (char*)space, mine, me, there);
    }
  }
  return 0;
}

#endif
