// Contractions on CPUs: the five loops of BLIS around a micro-kernel, for any rank. Rows of M and N and steps of the
// depth are found through tables of positions, so that operands are packed straight from the layouts that they have
// (TBLIS). Where there are few columns or rows, or all is small, only N is packed and M is read where it lies.
// Generated code gives what packs a panel, what computes and what stores a micro-tile.
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

// The loops around micro-kernels gain nothing from what a compiler does at -O3, which takes it seconds.
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#pragma GCC push_options
#pragma GCC optimize("O2")
#define APL_PACKED_OPTIONS
#endif

#define APL_PACKED_LEAST(a, b) ((a) < (b) ? (a) : (b))
#define APL_INLINE static inline __attribute__((always_inline))

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

// Dot instructions: lanes of 32 bits are pairs of 16-bit integers, whose products are added to sums of 32 bits.
typedef int32_t apl_dot_pair __attribute__((may_alias));
typedef int32_t apl_dot_wide __attribute__((vector_size(APL_VECTOR_BYTES), may_alias));
typedef int32_t apl_dot_narrow __attribute__((vector_size(16), may_alias));
#define APL_DOT_BY_SHIFTS(sum, m, n) ((sum) + ((m) << 16 >> 16) * ((n) << 16 >> 16) + ((m) >> 16) * ((n) >> 16))
#if defined(__AVX512VNNI__) && defined(__AVX512VL__) && defined(__clang__)
#define APL_DOT_64(sum, m, n) __builtin_ia32_vpdpwssd512(sum, m, n)
#define APL_DOT_32(sum, m, n) __builtin_ia32_vpdpwssd256(sum, m, n)
#define APL_DOT_16(sum, m, n) __builtin_ia32_vpdpwssd128(sum, m, n)
#elif defined(__AVX512VNNI__) && defined(__AVX512VL__)
#define APL_DOT_64(sum, m, n) __builtin_ia32_vpdpwssd_v16si(sum, m, n)
#define APL_DOT_32(sum, m, n) __builtin_ia32_vpdpwssd_v8si(sum, m, n)
#define APL_DOT_16(sum, m, n) __builtin_ia32_vpdpwssd_v4si(sum, m, n)
#else
#define APL_DOT_64 APL_DOT_BY_SHIFTS
#ifdef __AVX2__
typedef int16_t apl_dot_halves_32 __attribute__((vector_size(32)));
#define APL_DOT_32(sum, m, n) \
  ((sum) + (apl_dot_wide)__builtin_ia32_pmaddwd256((apl_dot_halves_32)(m), (apl_dot_halves_32)(n)))
#else
#define APL_DOT_32 APL_DOT_BY_SHIFTS
#endif
#ifdef __SSE2__
typedef int16_t apl_dot_halves_16 __attribute__((vector_size(16)));
#define APL_DOT_16(sum, m, n) \
  ((sum) + (apl_dot_narrow)__builtin_ia32_pmaddwd128((apl_dot_halves_16)(m), (apl_dot_halves_16)(n)))
#else
#define APL_DOT_16 APL_DOT_BY_SHIFTS
#endif
#endif
APL_INLINE apl_dot_narrow apl_dot_narrow_pairs(apl_dot_narrow sum, apl_dot_narrow m, apl_dot_narrow n) {
  return APL_DOT_16(sum, m, n);
}
APL_INLINE apl_dot_wide apl_dot_wide_pairs(apl_dot_wide sum, apl_dot_wide m, apl_dot_wide n) {
#if APL_VECTOR_BYTES == 64
  return APL_DOT_64(sum, m, n);
#elif APL_VECTOR_BYTES == 32
  return APL_DOT_32(sum, m, n);
#else
  return APL_DOT_16(sum, m, n);
#endif
}

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
  int64_t most;  // of the micro-kernel
  int64_t depth;
  const void* packed;  // where it was packed
  bool contiguous;     // all operands: neighbouring rows lie one behind the other, and all are inside
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
// rows and few: two vectors of columns, one, and kPackedNarrow columns.
enum { kPackedWidths = 3, kPackedNarrow = 4, kPackedDirect = 2, kPackedKernels = kPackedDirect + 2 * kPackedWidths };

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
  bool pairs;                                  // panels have two steps of the depth of a row side by side
  bool blocked;                // the last two dims of the depth, by kPackedPart; found by apl_packed_run
  int64_t m_stride, n_stride;  // of runs of steps in either side's operands, likewise
  void (*pack_m)(const void* arguments, const int64_t* batch, const struct apl_packed_panel* panel, void* packed);
  void (*pack_n)(const void* arguments, const int64_t* batch, const struct apl_packed_panel* panel, void* packed);
  struct apl_packed_kernel kernels[kPackedKernels];
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

// Steps of a panel that has so many.
static inline int64_t apl_packed_even(const struct apl_packed* p, int64_t depth) {
  return p->pairs ? apl_packed_up(depth, 2) * 2 : depth;
}

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
  int64_t depth = apl_packed_most(64, kFirstCache / (p->kernels[0].columns * p->n_bytes));
  depth = apl_packed_least(depth, apl_packed_steps_at_once(p));
  depth = apl_packed_up(b.k, apl_packed_most(1, apl_packed_up(b.k, depth)));
  if (p->blocked) depth = apl_packed_up(depth, kPackedPart * kPackedPart) * kPackedPart * kPackedPart;
  b.depth = apl_packed_even(p, apl_packed_most(1, depth));
  const int64_t all_m = apl_packed_most(1, apl_packed_up(b.m, p->kernels[0].rows));
  const int64_t all_n = apl_packed_most(1, apl_packed_up(b.n, p->kernels[0].columns));
  b.n_panels = apl_packed_least(all_n, apl_packed_up(kColumns, p->kernels[0].columns));
  b.n_panels = apl_packed_up(all_n, apl_packed_up(all_n, b.n_panels));
  b.m_panels = apl_packed_most(1, kSecondCache / 2 / (b.depth * p->kernels[0].rows * p->m_bytes));
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
  const int64_t all_m = apl_packed_up(b->m, p->kernels[0].rows);
  s.n_panels = apl_packed_lines(b->n_panels * apl_packed_lines(b->depth * p->kernels[0].columns * p->n_bytes));
  s.columns = apl_packed_lines(3 * b->n_panels * p->kernels[0].columns * (int64_t)sizeof(int64_t));
  s.partial =
      b->depth >= b->k
          ? 0
          : all_m * b->n_panels * apl_packed_lines(p->kernels[0].rows * p->kernels[0].columns * p->accumulator_bytes);
  s.m_panels = apl_packed_lines(b->m_panels * apl_packed_lines(b->depth * p->kernels[0].rows * p->m_bytes));
  s.m_rows = apl_packed_lines(2 * b->m_panels * p->kernels[0].rows * (int64_t)sizeof(int64_t));
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
  panel->rows = rows, panel->most = most;
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

// For a panel of packed columns, the last of which may be narrow.
static inline const struct apl_packed_kernel* apl_packed_kernel_of(const struct apl_packed* p, int64_t columns) {
  return &p->kernels[columns <= p->kernels[1].columns ? 1 : 0];
}

// The tile if its lines are worth being fetched before it is stored.
static inline const struct apl_packed_tile* apl_packed_fetched(const struct apl_packed_tile* tile, bool last) {
  return last && tile->run[0] == tile->width ? tile : NULL;
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
  int64_t* const row_indices = rows + b->m_panels * p->kernels[0].rows;
  int64_t* const steps = (int64_t*)(mine + s->m_panels + s->m_rows);
  const int64_t all_m = apl_packed_up(b->m, p->kernels[0].rows), all_n = apl_packed_up(b->n, p->kernels[0].columns);
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
        const int64_t from = (j + c) * p->kernels[0].columns,
                      width = apl_packed_least(p->kernels[0].columns, b->n - from);
        apl_packed_rows(&p->n, p->n_row, p->n_operands, from, width, apl_packed_kernel_of(p, width)->columns, positions,
                        &panel);
        p->pack_n(arguments, batch, &panel,
                  n_packed + c * apl_packed_lines(b->depth * p->kernels[0].columns * p->n_bytes));
        if (!last) continue;
        int64_t* const column = columns + 3 * c * p->kernels[0].columns;
        apl_packed_positions(&p->n, &p->n_result, from, width, column);
        apl_packed_positions(&p->n, &p->n_index, from, width, column + p->kernels[0].columns);
        apl_packed_runs(column, column + p->kernels[0].columns, width, column + 2 * p->kernels[0].columns);
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
          const int64_t from = i * p->kernels[0].rows, height = apl_packed_least(p->kernels[0].rows, b->m - from);
          apl_packed_rows(&p->m, p->m_row, p->m_operands, from, height, p->kernels[0].rows, positions, &panel);
          p->pack_m(arguments, batch, &panel,
                    m_packed + (i - m_from) * apl_packed_lines(b->depth * p->kernels[0].rows * p->m_bytes));
          if (!last) continue;
          apl_packed_positions(&p->m, &p->m_result, from, height, rows + (i - m_from) * p->kernels[0].rows);
          apl_packed_positions(&p->m, &p->m_index, from, height, row_indices + (i - m_from) * p->kernels[0].rows);
        }
        for (int64_t c = n_from; c < n_to; ++c)
          for (int64_t i = m_from; i < m_to; ++i) {
            const int64_t tile_bytes =
                apl_packed_lines(p->kernels[0].rows * p->kernels[0].columns * p->accumulator_bytes);
            char* const tile = first && last ? local : partial + (i * b->n_panels + c) * tile_bytes;
            const int64_t width = apl_packed_least(p->kernels[0].columns, b->n - (j + c) * p->kernels[0].columns);
            const struct apl_packed_kernel* const kernel = apl_packed_kernel_of(p, width);
            panel.packed = m_packed + (i - m_from) * apl_packed_lines(b->depth * p->kernels[0].rows * p->m_bytes);
            const int64_t* const column = columns + 3 * c * p->kernels[0].columns;
            const struct apl_packed_tile where = {
                apl_packed_least(p->kernels[0].rows, b->m - i * p->kernels[0].rows),
                width,
                kernel->rows,
                kernel->columns,
                rows + (i - m_from) * p->kernels[0].rows,
                row_indices + (i - m_from) * p->kernels[0].rows,
                column,
                column + p->kernels[0].columns,
                column + 2 * p->kernels[0].columns,
            };
            kernel->compute(arguments, batch, depth, &panel,
                            n_packed + c * apl_packed_lines(b->depth * p->kernels[0].columns * p->n_bytes), tile, first,
                            apl_packed_fetched(&where, last));
            if (!last) continue;
            p->store(arguments, batch, &where, tile);
          }
      }
      apl_packed_wait(threads);
    }
  }
}

// ---- without packing M ----

// How items are cut: a part of M and one of N in one batch. Threads share nothing.
struct apl_packed_items {
  int64_t batch, m, n, k;
  int64_t m_parts, n_parts, rows, columns, depth;  // of an item, at most
  int64_t threads;
  int64_t n_panels, steps, m_table, n_table, partial, thread;  // bytes of a thread
};

static inline int64_t apl_packed_pad(const struct apl_packed* p) {
  int64_t rows = 0;
  for (int32_t k = kPackedDirect; k < kPackedKernels; ++k) rows = apl_packed_most(rows, p->kernels[k].rows);
  return rows;
}

// Whether M's elements are used so rarely, or all is so near, that to pack M takes longer than it saves. Where rows are
// powers of two apart, those of a tile share a few lines of the first cache.
static inline bool apl_packed_is_direct(const struct apl_packed* p) {
  enum { kFewPanels = 2, kMorePanels = 8, kNear = 512 * 1024, kApart = 2048 };
  const int64_t m = apl_packed_size(&p->m), n = apl_packed_size(&p->n), k = apl_packed_size(&p->k);
  const int64_t rows = p->kernels[0].rows, columns = p->kernels[0].columns;
  if (n <= kFewPanels * columns || m <= rows) return true;
  if (n > kMorePanels * columns || n * k * p->n_bytes > kNear) return false;
  const int64_t last = p->m.rank - 1;
  return p->m_row[0].stride[last] * p->m_bytes % kApart != 0;
}

static inline struct apl_packed_items apl_packed_cut_items(const struct apl_packed* p) {
  enum { kRows = 512, kNear = 512 * 1024, kLeastDepth = 256, kWorkOfThread = 1 << 18 };
  struct apl_packed_items b = {0};
  b.batch = apl_packed_size(&p->batch), b.m = apl_packed_size(&p->m), b.n = apl_packed_size(&p->n);
  b.k = apl_packed_size(&p->k);
  const int64_t columns = p->kernels[0].columns, pad = apl_packed_pad(p);
  const double work = (double)b.m * (double)b.n * (double)apl_packed_most(1, b.k) * (double)b.batch;
  const int64_t most = apl_packed_threads(), shares = (int64_t)(work / (double)kWorkOfThread);
  b.threads = apl_packed_most(1, apl_packed_least(most, shares));
  // Columns: as many panels as M's rows are near for.
  b.columns = apl_packed_least(b.n, 8 * columns);
  b.n_parts = apl_packed_up(b.n, apl_packed_most(1, b.columns));
  b.rows = apl_packed_least(b.m, kRows);
  b.m_parts = apl_packed_up(b.m, apl_packed_most(1, b.rows));
  // Each thread has an item.
  if (b.batch * b.n_parts * b.m_parts < b.threads) {
    const int64_t wanted = apl_packed_up(b.threads, apl_packed_most(1, b.batch));
    b.n_parts = apl_packed_most(
        1, apl_packed_least(apl_packed_up(b.n, columns), apl_packed_up(wanted, apl_packed_most(1, b.m_parts))));
    b.m_parts = apl_packed_most(1, apl_packed_least(apl_packed_up(b.m, pad), apl_packed_up(wanted, b.n_parts)));
    b.columns = apl_packed_up(apl_packed_up(b.n, b.n_parts), columns) * columns;
    b.rows = apl_packed_up(b.m, b.m_parts);
    b.n_parts = apl_packed_up(b.n, apl_packed_most(1, b.columns));
    b.m_parts = apl_packed_up(b.m, apl_packed_most(1, b.rows));
  }
  const int64_t wide = apl_packed_up(b.columns, columns) * columns;
  b.depth = apl_packed_most(kLeastDepth, kNear / apl_packed_most(1, wide * p->n_bytes));
  b.depth = apl_packed_up(b.k, apl_packed_most(1, apl_packed_up(b.k, b.depth)));
  if (p->blocked) b.depth = apl_packed_up(b.depth, kPackedPart * kPackedPart) * kPackedPart * kPackedPart;
  b.depth = apl_packed_even(p, apl_packed_most(1, b.depth));
  const int64_t panels = wide / columns + kPackedWidths, tiles = panels * (b.rows + pad);
  b.n_panels = apl_packed_lines(wide * b.depth * p->n_bytes) + panels * kPackedLine;
  b.steps = apl_packed_lines((p->m_operands + p->n_operands + 2) * b.depth * (int64_t)sizeof(int64_t));
  b.m_table = apl_packed_lines((p->m_operands + 2) * (b.rows + pad) * (int64_t)sizeof(int64_t));
  b.n_table = apl_packed_lines((p->n_operands + 3) * (wide + columns) * (int64_t)sizeof(int64_t));
  b.partial = b.depth >= b.k ? 0 : apl_packed_lines((b.rows + pad) * wide * p->accumulator_bytes + tiles * kPackedLine);
  b.thread = b.n_panels + b.steps + b.m_table + b.n_table + b.partial;
  return b;
}

// The panel of N's columns from one on: its kernels, of many rows and of few.
static inline const struct apl_packed_kernel* apl_packed_direct_kernels(const struct apl_packed* p, int64_t left) {
  int32_t width = 0;
  while (width + 1 < kPackedWidths && left <= p->kernels[kPackedDirect + 2 * width + 2].columns) ++width;
  return &p->kernels[kPackedDirect + 2 * width];
}

static inline int64_t apl_packed_tile_bytes(const struct apl_packed* p, const struct apl_packed_kernel* kernel) {
  return apl_packed_lines((int64_t)kernel->rows * kernel->columns * p->accumulator_bytes);
}

// Items `from` to `to`, those of one part of N one after the other.
static void apl_packed_some_items(const struct apl_packed* p, const struct apl_packed_items* b, const void* arguments,
                                  char* space, int64_t from, int64_t to) {
  char* const n_packed = space;
  int64_t* const steps = (int64_t*)(space + b->n_panels);
  int64_t* const runs = steps + (p->m_operands + p->n_operands) * b->depth;
  int64_t* const m_table = (int64_t*)(space + b->n_panels + b->steps);
  int64_t* const n_table = (int64_t*)(space + b->n_panels + b->steps + b->m_table);
  char* const partial = space + b->n_panels + b->steps + b->m_table + b->n_table;
  const int64_t m_apart = b->rows + apl_packed_pad(p);
  const int64_t n_apart = apl_packed_up(b->columns, p->kernels[0].columns) * p->kernels[0].columns;
  int64_t* const m_result = m_table + p->m_operands * m_apart;
  int64_t* const m_index = m_result + m_apart;
  int64_t* const n_result = n_table + p->n_operands * n_apart;
  int64_t* const n_index = n_result + n_apart;
  int64_t* const n_runs = n_index + n_apart;
  int64_t batch[kPackedRank] = {0}, positions[kPackedOperands][kPackedRows];
  struct apl_packed_panel m_panel = {0}, n_panel = {0};
  char local[kPackedRows * kPackedRows] __attribute__((aligned(64)));
  int64_t has_m = -1, has_n = -1, has_batch = -1, has_depth = -1;  // what tables and panels are of
  for (int64_t item = from; item < to; ++item) {
    const int64_t m_part = item % b->m_parts, n_part = item / b->m_parts % b->n_parts;
    const int64_t number = item / b->m_parts / b->n_parts;
    const int64_t row = m_part * b->rows, rows = apl_packed_least(b->rows, b->m - row);
    const int64_t column = n_part * b->columns, columns = apl_packed_least(b->columns, b->n - column);
    if (has_m != m_part) {
      for (int32_t o = 0; o < p->m_operands; ++o) {
        int64_t* const at = m_table + o * m_apart;
        apl_packed_positions(&p->m, &p->m_row[o], row, rows, at);
        for (int64_t r = rows; r < m_apart; ++r) at[r] = at[0];
      }
      apl_packed_positions(&p->m, &p->m_result, row, rows, m_result);
      apl_packed_positions(&p->m, &p->m_index, row, rows, m_index);
      has_m = m_part;
    }
    bool same_n = has_batch == number && has_n == n_part;
    if (has_batch != number) {
      int64_t left = number;
      for (int32_t d = p->batch.rank - 1; d >= 0; --d) {
        batch[d] = left % p->batch.size[d];
        left /= p->batch.size[d];
      }
      has_batch = number;
    }
    if (has_n != n_part) {
      apl_packed_positions(&p->n, &p->n_result, column, columns, n_result);
      apl_packed_positions(&p->n, &p->n_index, column, columns, n_index);
      for (int64_t c = 0; c < columns;) {
        const int64_t width = apl_packed_least(columns - c, apl_packed_direct_kernels(p, columns - c)->columns);
        apl_packed_runs(n_result + c, n_index + c, width, n_runs + c);
        c += width;
      }
      for (int32_t o = 0; o < p->n_operands; ++o)
        apl_packed_positions(&p->n, &p->n_row[o], column, columns, n_table + o * n_apart);
      has_n = n_part;
    }
    for (int64_t q = 0; q == 0 || q < b->k; q += b->depth) {
      const int64_t depth = apl_packed_least(b->depth, b->k - q);
      const bool first = q == 0, last = q + b->depth >= b->k;
      if (has_depth != q) {
        for (int32_t o = 0; o < p->m_operands; ++o) apl_packed_steps(p, &p->m_step[o], q, depth, steps + o * b->depth);
        for (int32_t o = 0; o < p->n_operands; ++o)
          apl_packed_steps(p, &p->n_step[o], q, depth, steps + (p->m_operands + o) * b->depth);
        n_panel.depth = m_panel.depth = depth, n_panel.stride = p->n_stride;
        n_panel.first = runs, n_panel.length = runs + b->depth;
        n_panel.runs = apl_packed_step_runs(steps + p->m_operands * b->depth, b->depth, p->n_operands, depth,
                                            p->n_stride, runs, runs + b->depth);
        for (int32_t o = 0; o < p->n_operands; ++o) n_panel.step[o] = steps + (p->m_operands + o) * b->depth;
        for (int32_t o = 0; o < p->m_operands; ++o) m_panel.step[o] = steps + o * b->depth;
        has_depth = q;
        same_n = false;
      }
      char* packed = n_packed;
      char* kept = partial;
      for (int64_t c = 0; c < columns;) {
        const struct apl_packed_kernel* const pair = apl_packed_direct_kernels(p, columns - c);
        const int64_t width = apl_packed_least(columns - c, pair->columns);
        if (!same_n) {
          n_panel.rows = width, n_panel.most = pair->columns, n_panel.contiguous = width == pair->columns;
          for (int32_t o = 0; o < p->n_operands; ++o) {
            const int64_t* const at = n_table + o * n_apart + c;
            n_panel.row[o] = at;
            n_panel.contiguous = n_panel.contiguous && apl_packed_is_run(at, width);
            if (width == pair->columns) continue;
            for (int64_t r = 0; r < pair->columns; ++r) positions[o][r] = at[r < width ? r : 0];
            n_panel.row[o] = positions[o];
          }
          p->pack_n(arguments, batch, &n_panel, packed);
        }
        for (int64_t r = 0; r < rows;) {
          const struct apl_packed_kernel* const kernel = 2 * (rows - r) > pair->rows ? pair : pair + 1;
          const int64_t height = apl_packed_least(kernel->rows, rows - r);
          char* const tile = first && last ? local : kept;
          for (int32_t o = 0; o < p->m_operands; ++o) m_panel.row[o] = m_table + o * m_apart + r;
          const struct apl_packed_tile where = {height,      width,        kernel->rows, kernel->columns, m_result + r,
                                                m_index + r, n_result + c, n_index + c,  n_runs + c};
          kernel->compute(arguments, batch, depth, &m_panel, packed, tile, first, apl_packed_fetched(&where, last));
          if (last) p->store(arguments, batch, &where, tile);
          kept += apl_packed_tile_bytes(p, kernel);
          r += height;
        }
        packed += apl_packed_lines(apl_packed_even(p, depth) * pair->columns * p->n_bytes);
        c += width;
      }
    }
  }
}

static inline int64_t apl_packed_run_direct(const struct apl_packed* p, const void* arguments, void* space) {
  const struct apl_packed_items b = apl_packed_cut_items(p);
  if (!space) return b.threads * b.thread;
  const int64_t items = b.batch * b.m_parts * b.n_parts;
#ifdef _OPENMP
#pragma omp parallel num_threads(b.threads) if (b.threads > 1)
#endif
  {
    int64_t me = 0, there = 1;
#ifdef _OPENMP
    me = omp_get_thread_num(), there = omp_get_num_threads();
#endif
    apl_packed_some_items(p, &b, arguments, (char*)space + me * b.thread, items * me / there, items * (me + 1) / there);
  }
  return 0;
}

// The bytes of `space`, if there is none yet, else all of the contraction.
static int64_t apl_packed_run(struct apl_packed* p, const void* arguments, void* space) {
  apl_packed_order(p);
  if (apl_packed_is_direct(p)) return apl_packed_run_direct(p, arguments, space);
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

#ifdef APL_PACKED_OPTIONS
#pragma GCC pop_options
#undef APL_PACKED_OPTIONS
#endif

#endif
