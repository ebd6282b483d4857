// Packed contractions of large matrices: the five loops of BLIS around the micro-kernel, with both sides packed.
#ifndef APL_PACKED_BLOCKS_H
#define APL_PACKED_BLOCKS_H

#include "runtime/backends/packed_machine.h"
#include "runtime/backends/packed_panels.h"
#include "threads.h"

// Steps of the depth that are worth a thread of their own.
#ifndef APL_PACKED_DEPTH_OF_THREAD
#define APL_PACKED_DEPTH_OF_THREAD 1024
#endif

// Steps of a panel that has so many.
static inline int64_t apl_packed_even(const struct apl_packed* p, int64_t depth) {
  return p->pairs ? apl_packed_up(depth, 2) * 2 : depth;
}

// How the loops are cut.
struct apl_packed_blocks {
  int64_t m, n, k, batch;             // sizes
  int64_t depth, m_panels, n_panels;  // of a block: steps, and panels
  int64_t threads, teams;             // teams > 1: each takes batches or a part of the depth, with one thread
  int64_t k_parts;                    // parts of the depth, whose results are combined
  int64_t m_parts, n_parts;           // of what the threads of a team share
};

// Where an outer dim of N is the contiguous one, whoever packs comes back to a line and its page after all columns of
// the innermost dim: so many steps that these are still in the second cache and in the translation buffer.
static inline int64_t apl_packed_steps_at_once(const struct apl_packed* p) {
  enum { kPages = 1024, kPage = 4096, kLeast = 16 };
  const int64_t lines = apl_packed_second_cache() / 4 / kPackedLine;
  const int32_t n_last = p->n.rank - 1, k_last = p->k.rank - 1;
  if (n_last < 0 || k_last < 0 || p->n_row[0].stride[n_last] <= kPackedLine / p->n_bytes) return INT64_MAX;
  if (p->blocked || p->n_step[0].stride[k_last] == 1) return INT64_MAX;
  const int64_t columns = apl_packed_most(1, p->n.size[n_last]);
  const int64_t apart = apl_packed_most(1, p->n_step[0].stride[k_last]) * p->n_bytes;
  const int64_t per_page = apl_packed_most(1, kPage / apart);
  return apl_packed_most(kLeast, apl_packed_least(lines / columns, kPages / columns * per_page));
}

// Into how many parts the depth is split among threads: where there are too few results to share out and many steps.
static inline int64_t apl_packed_k_parts(const struct apl_packed* p) {
  enum { kResults = 1 << 16 };
  const int64_t m = apl_packed_size(&p->m), n = apl_packed_size(&p->n), k = apl_packed_size(&p->k);
  const int64_t threads = apl_threads(), tiles = apl_packed_up(m, p->kernels[0].rows);
  if (threads < 2 || m == 0 || n == 0 || apl_packed_size(&p->batch) >= threads) return 1;
  if (m > kResults || n > kResults || m * n > kResults) return 1;
  // Tall and wide ones have tiles enough, and are read where they lie.
  const bool small = n <= 2 * p->kernels[0].columns || m <= p->kernels[0].rows;
  if (small && tiles * apl_packed_up(n, p->kernels[0].columns) >= threads) return 1;
  const double work = (double)m * (double)n * (double)k / (double)APL_PACKED_WORK_OF_THREAD;
  const int64_t worth = work < (double)threads ? (int64_t)work : threads;
  return apl_packed_most(1, apl_packed_least(worth, k / APL_PACKED_DEPTH_OF_THREAD));
}

// Block sizes from the second cache (Low et al., Analytical modeling is enough): a block of M takes a quarter of it and
// a panel of N a sixteenth. The micro-kernel reads both from there as fast as from the first cache, and the deeper a
// block is, the fewer times accumulators are kept and read again.
static inline struct apl_packed_blocks apl_packed_cut_blocks(const struct apl_packed* p) {
  enum { kLeastPanel = 32 * 1024, kColumns = 4096 };
  const int64_t cache = apl_packed_second_cache();
  struct apl_packed_blocks b = {0};
  b.batch = apl_packed_size(&p->batch), b.m = apl_packed_size(&p->m), b.n = apl_packed_size(&p->n);
  b.k = apl_packed_size(&p->k);
  int64_t depth = apl_packed_most(64, apl_packed_most(kLeastPanel, cache / 16) / (p->kernels[0].columns * p->n_bytes));
  depth = apl_packed_least(depth, apl_packed_steps_at_once(p));
  b.k_parts = apl_packed_k_parts(p);
  depth = apl_packed_least(depth, apl_packed_up(b.k, b.k_parts));
  depth = apl_packed_up(b.k, apl_packed_most(1, apl_packed_up(b.k, apl_packed_most(1, depth))));
  if (p->blocked) depth = apl_packed_up(depth, kPackedPart * kPackedPart) * kPackedPart * kPackedPart;
  b.depth = apl_packed_even(p, apl_packed_most(1, depth));
  const int64_t all_m = apl_packed_most(1, apl_packed_up(b.m, p->kernels[0].rows));
  const int64_t all_n = apl_packed_most(1, apl_packed_up(b.n, p->kernels[0].columns));
  b.n_panels = apl_packed_least(all_n, apl_packed_up(kColumns, p->kernels[0].columns));
  b.n_panels = apl_packed_up(all_n, apl_packed_up(all_n, b.n_panels));
  if (b.n_panels < all_n) b.k_parts = 1;
  b.m_panels = apl_packed_most(1, cache / 4 / (b.depth * p->kernels[0].rows * p->m_bytes));
  b.m_panels = apl_packed_least(all_m, b.m_panels);
  const double points = (double)b.m * (double)b.n * (double)apl_packed_most(1, b.k);
  const double work = points * (double)b.batch / (double)APL_PACKED_WORK_OF_THREAD;
  const int64_t most = apl_threads();
  b.threads = work < 2 ? 1 : work < (double)most ? (int64_t)work : most;
  if (b.k_parts > 1) b.threads = b.k_parts;
  b.teams = b.k_parts > 1 || b.batch >= 2 * b.threads ? b.threads : 1;
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

// What a thread keeps from one unit of work to the next: panels with the tables of these steps of the depth.
struct apl_packed_tables {
  int64_t q;  // -1: of none
  struct apl_packed_panel m, n;
};

// What a team shares, and what each of its threads has.
struct apl_packed_space {
  int64_t n_panels, columns, partial;       // bytes of the team: packed, positions in the result, accumulators
  int64_t m_panels, m_rows, steps, tables;  // bytes of a thread
  int64_t team, thread, all;
};

static inline struct apl_packed_space apl_packed_space_of(const struct apl_packed* p,
                                                          const struct apl_packed_blocks* b) {
  struct apl_packed_space s = {0};
  const int64_t all_m = apl_packed_up(b->m, p->kernels[0].rows);
  s.n_panels = apl_packed_lines(b->n_panels * apl_packed_lines(b->depth * p->kernels[0].columns * p->n_bytes));
  s.columns = apl_packed_lines(3 * b->n_panels * p->kernels[0].columns * (int64_t)sizeof(int64_t));
  s.partial =
      b->depth >= b->k && b->k_parts == 1
          ? 0
          : all_m * b->n_panels * apl_packed_lines(p->kernels[0].rows * p->kernels[0].columns * p->accumulator_bytes);
  s.m_panels = apl_packed_lines(b->m_panels * apl_packed_lines(b->depth * p->kernels[0].rows * p->m_bytes));
  s.m_rows = apl_packed_lines(2 * b->m_panels * p->kernels[0].rows * (int64_t)sizeof(int64_t));
  s.steps = apl_packed_lines((p->m_operands + p->n_operands + 4) * b->depth * (int64_t)sizeof(int64_t));
  s.tables = apl_packed_lines((int64_t)sizeof(struct apl_packed_tables));
  s.team = s.n_panels + s.columns + s.partial;
  s.thread = s.m_panels + s.m_rows + s.steps + s.tables;
  s.all = b->teams * s.team + b->threads * s.thread;
  return s;
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

// The tile if its lines are worth being fetched before it is stored: runs of columns are not short.
static inline const struct apl_packed_tile* apl_packed_fetched(const struct apl_packed_tile* tile, bool last) {
  enum { kShort = 8 };
  return last && (tile->run[0] == tile->width || tile->run[0] >= kShort) ? tile : NULL;
}

// The part of a batch whose packed panels of N are there at a time: panels from `j` on, steps from `q` on. Where the
// depth is split the accumulators stay in the team's memory.
struct apl_packed_block {
  int64_t number, j, n_panels;
  int64_t q, depth;
  bool first, last;
};

// Steps of the depth from `begin` to `end`.
static inline struct apl_packed_block apl_packed_block_at(const struct apl_packed_blocks* b, int64_t number, int64_t j,
                                                          int64_t q, int64_t begin, int64_t end, int64_t all_n) {
  const struct apl_packed_block block = {number,
                                         j,
                                         apl_packed_least(b->n_panels, all_n - j),
                                         q,
                                         apl_packed_least(b->depth, end - q),
                                         q == begin,
                                         b->k_parts == 1 && q + b->depth >= end};
  return block;
}

static inline void apl_packed_find_steps(const struct apl_packed* p, const struct apl_packed_blocks* b,
                                         const struct apl_packed_block* at, struct apl_packed_tables* tables,
                                         int64_t* steps) {
  if (tables->q == at->q && tables->m.depth == at->depth) return;
  tables->q = at->q;
  struct apl_packed_panel *const m = &tables->m, *const n = &tables->n;
  for (int32_t o = 0; o < p->m_operands; ++o) {
    m->step[o] = steps + o * b->depth;
    apl_packed_steps(p, &p->m_step[o], at->q, at->depth, steps + o * b->depth);
  }
  int64_t* const n_steps = steps + p->m_operands * b->depth;
  for (int32_t o = 0; o < p->n_operands; ++o) {
    n->step[o] = n_steps + o * b->depth;
    apl_packed_steps(p, &p->n_step[o], at->q, at->depth, n_steps + o * b->depth);
  }
  int64_t* const m_runs = n_steps + p->n_operands * b->depth;
  int64_t* const n_runs = m_runs + 2 * b->depth;
  m->depth = n->depth = at->depth;
  n->first = n_runs, n->length = n_runs + b->depth, n->stride = p->n_stride;
  n->runs = apl_packed_step_runs(n_steps, b->depth, p->n_operands, at->depth, p->n_stride, n_runs, n_runs + b->depth);
  m->first = m_runs, m->length = m_runs + b->depth, m->stride = p->m_stride;
  m->runs = apl_packed_step_runs(steps, b->depth, p->m_operands, at->depth, p->m_stride, m_runs, m_runs + b->depth);
}

static inline struct apl_packed_tables* apl_packed_tables_of(const struct apl_packed_space* s, char* mine) {
  return (struct apl_packed_tables*)(void*)(mine + s->m_panels + s->m_rows + s->steps);
}

// Packs panels `from` to `to` of N of a block.
static void apl_packed_columns(const struct apl_packed* p, const struct apl_packed_blocks* b,
                               const struct apl_packed_space* s, const void* arguments,
                               const struct apl_packed_block* at, int64_t from, int64_t to, char* team, char* mine) {
  struct apl_packed_tables* const tables = apl_packed_tables_of(s, mine);
  apl_packed_find_steps(p, b, at, tables, (int64_t*)(void*)(mine + s->m_panels + s->m_rows));
  int64_t batch[kPackedRank] = {0}, positions[kPackedOperands][kPackedRows];
  apl_packed_batch_of(p, at->number, batch);
  for (int64_t c = from; c < to; ++c) {
    const int64_t begin = (at->j + c) * p->kernels[0].columns;
    const int64_t width = apl_packed_least(p->kernels[0].columns, b->n - begin);
    apl_packed_rows(&p->n, p->n_row, p->n_operands, begin, width, apl_packed_kernel_of(p, width)->columns, positions,
                    &tables->n);
    p->pack_n(arguments, batch, &tables->n, team + c * apl_packed_lines(b->depth * p->kernels[0].columns * p->n_bytes));
    if (!at->last) continue;
    int64_t* const column = (int64_t*)(void*)(team + s->n_panels) + 3 * c * p->kernels[0].columns;
    apl_packed_positions(&p->n, &p->n_result, begin, width, column);
    apl_packed_positions(&p->n, &p->n_index, begin, width, column + p->kernels[0].columns);
    apl_packed_runs(column, column + p->kernels[0].columns, width, column + 2 * p->kernels[0].columns);
  }
}

// Computes part `part` of a block, whose panels of N are packed; those of M are packed here.
static void apl_packed_part(const struct apl_packed* p, const struct apl_packed_blocks* b,
                            const struct apl_packed_space* s, const void* arguments, const struct apl_packed_block* at,
                            int64_t part, char* team, char* mine) {
  enum { kFewSteps = 256 };
  char* const n_packed = team;
  int64_t* const columns = (int64_t*)(void*)(team + s->n_panels);
  char* const partial = team + s->n_panels + s->columns;
  char* const m_packed = mine;
  int64_t* const rows = (int64_t*)(void*)(mine + s->m_panels);
  int64_t* const row_indices = rows + b->m_panels * p->kernels[0].rows;
  struct apl_packed_tables* const tables = apl_packed_tables_of(s, mine);
  struct apl_packed_panel* const panel = &tables->m;
  const int64_t all_m = apl_packed_up(b->m, p->kernels[0].rows);
  const int64_t m_part = part / b->n_parts, n_part = part % b->n_parts;
  const int64_t m_from = all_m * m_part / b->m_parts, m_to = all_m * (m_part + 1) / b->m_parts;
  const int64_t n_from = at->n_panels * n_part / b->n_parts, n_to = at->n_panels * (n_part + 1) / b->n_parts;
  if (n_from == n_to) return;
  apl_packed_find_steps(p, b, at, tables, (int64_t*)(void*)(mine + s->m_panels + s->m_rows));
  int64_t batch[kPackedRank] = {0}, positions[kPackedOperands][kPackedRows];
  apl_packed_batch_of(p, at->number, batch);
  char local[kPackedRows * kPackedRows] __attribute__((aligned(64)));
  for (int64_t i = m_from; i < m_to; ++i) {
    const int64_t from = i * p->kernels[0].rows, height = apl_packed_least(p->kernels[0].rows, b->m - from);
    apl_packed_rows(&p->m, p->m_row, p->m_operands, from, height, p->kernels[0].rows, positions, panel);
    p->pack_m(arguments, batch, panel,
              m_packed + (i - m_from) * apl_packed_lines(b->depth * p->kernels[0].rows * p->m_bytes));
    if (!at->last) continue;
    apl_packed_positions(&p->m, &p->m_result, from, height, rows + (i - m_from) * p->kernels[0].rows);
    apl_packed_positions(&p->m, &p->m_index, from, height, row_indices + (i - m_from) * p->kernels[0].rows);
  }
  const int64_t tile_bytes = apl_packed_lines(p->kernels[0].rows * p->kernels[0].columns * p->accumulator_bytes);
  for (int64_t c = n_from; c < n_to; ++c)
    for (int64_t i = m_from; i < m_to; ++i) {
      char* const tile = at->first && at->last ? local : partial + (i * b->n_panels + c) * tile_bytes;
      const int64_t width = apl_packed_least(p->kernels[0].columns, b->n - (at->j + c) * p->kernels[0].columns);
      const struct apl_packed_kernel* const kernel = apl_packed_kernel_of(p, width);
      panel->packed = m_packed + (i - m_from) * apl_packed_lines(b->depth * p->kernels[0].rows * p->m_bytes);
      // N's next panel comes from farther away than the rest, a share of it with each tile.
      const int64_t n_bytes = apl_packed_lines(b->depth * p->kernels[0].columns * p->n_bytes);
      const int64_t times = apl_packed_most(1, p->pairs ? apl_packed_up(at->depth, 2) : at->depth);
      panel->ahead_step = apl_packed_up(n_bytes, (m_to - m_from) * times);
      panel->ahead = n_packed + (c + 1 < n_to ? c + 1 : n_from) * n_bytes + (i - m_from) * times * panel->ahead_step;
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
      // A few steps are over before lines are there: those of the next tile are asked for.
      struct apl_packed_tile next = where;
      if (at->depth < kFewSteps && i + 1 < m_to) {
        next.rows = apl_packed_least(p->kernels[0].rows, b->m - (i + 1) * p->kernels[0].rows);
        next.row += p->kernels[0].rows;
      }
      kernel->compute(arguments, batch, at->depth, panel,
                      n_packed + c * apl_packed_lines(b->depth * p->kernels[0].columns * p->n_bytes), tile, at->first,
                      apl_packed_fetched(&next, at->last));
      if (!at->last) continue;
      p->store(arguments, batch, &where, tile);
    }
}

// Steps of the depth from `begin` to `end` in one batch, by one thread.
static void apl_packed_batch(const struct apl_packed* p, const struct apl_packed_blocks* b,
                             const struct apl_packed_space* s, const void* arguments, int64_t number, int64_t begin,
                             int64_t end, char* team, char* mine) {
  const int64_t all_n = apl_packed_up(b->n, p->kernels[0].columns);
  for (int64_t j = 0; j < all_n; j += b->n_panels)
    for (int64_t q = begin; q == begin || q < end; q += b->depth) {
      const struct apl_packed_block at = apl_packed_block_at(b, number, j, q, begin, end, all_n);
      apl_packed_columns(p, b, s, arguments, &at, 0, at.n_panels, team, mine);
      for (int64_t part = 0; part < b->m_parts * b->n_parts; ++part)
        apl_packed_part(p, b, s, arguments, &at, part, team, mine);
    }
}

// Results `from` to `to` of one batch, by tiles, from the accumulators of parts of the depth, in the order of the
// depth.
static void apl_packed_combine(const struct apl_packed* p, const struct apl_packed_blocks* b,
                               const struct apl_packed_space* s, const void* arguments, int64_t number, char* space,
                               int64_t from, int64_t to) {
  const int64_t rows = p->kernels[0].rows, columns = p->kernels[0].columns;
  const int64_t tile_bytes = apl_packed_lines(rows * columns * p->accumulator_bytes);
  int64_t batch[kPackedRank] = {0}, at[5][kPackedRows];
  apl_packed_batch_of(p, number, batch);
  for (int64_t t = from; t < to; ++t) {
    const int64_t row = t / b->n_panels * rows, column = t % b->n_panels * columns;
    const int64_t height = apl_packed_least(rows, b->m - row), width = apl_packed_least(columns, b->n - column);
    apl_packed_positions(&p->m, &p->m_result, row, height, at[0]);
    apl_packed_positions(&p->m, &p->m_index, row, height, at[1]);
    apl_packed_positions(&p->n, &p->n_result, column, width, at[2]);
    apl_packed_positions(&p->n, &p->n_index, column, width, at[3]);
    apl_packed_runs(at[2], at[3], width, at[4]);
    const struct apl_packed_kernel* const kernel = apl_packed_kernel_of(p, width);
    const struct apl_packed_tile where = {height, width, kernel->rows, kernel->columns, at[0], at[1],
                                          at[2],  at[3], at[4]};
    char* const tile = space + s->n_panels + s->columns + t * tile_bytes;
    for (int64_t part = 1; part < b->k_parts; ++part) p->combine(arguments, batch, &where, tile, tile + part * s->team);
    p->store(arguments, batch, &where, tile);
  }
}

#endif
