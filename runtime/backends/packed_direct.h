// Packed contractions that are small, tall or wide: only N is packed, and M is read where it lies.
#ifndef APL_PACKED_DIRECT_H
#define APL_PACKED_DIRECT_H

#include "runtime/backends/packed_blocks.h"

// How items are cut: a part of M and one of N in one batch. Threads share nothing.
struct apl_packed_items {
  int64_t batch, m, n, k;
  int64_t m_parts, n_parts, rows, columns, depth;  // of an item, at most
  int64_t threads;
  int64_t n_panels, steps, m_table, n_table, partial, kept, thread;  // bytes of a thread
};

// What a thread keeps from one unit of work to the next: what its tables and panels are of; -1: of nothing.
struct apl_packed_kept {
  int64_t m_part, n_part, number, q;
  int64_t batch[kPackedRank];
  struct apl_packed_panel m, n;
};

static inline int64_t apl_packed_pad(const struct apl_packed* p) {
  int64_t rows = 0;
  for (int32_t k = kPackedDirect; k < kPackedKernels; ++k) rows = apl_packed_most(rows, p->kernels[k].rows);
  return rows;
}

// Whether M's elements are used so rarely, or all is so near, that to pack M takes longer than it saves. Where rows are
// multiples of 1024 bytes apart, those of a tile share few sets of lines of the first cache.
static inline bool apl_packed_is_direct(const struct apl_packed* p) {
  enum { kFewPanels = 2, kMorePanels = 8, kApart = 1024 };
  const int64_t m = apl_packed_size(&p->m), n = apl_packed_size(&p->n), k = apl_packed_size(&p->k);
  const int64_t rows = p->kernels[0].rows, columns = p->kernels[0].columns;
  if (p->packs_m || apl_packed_k_parts(p) > 1) return false;
  if (n <= kFewPanels * columns || m <= rows) return true;
  if (n > kMorePanels * columns || n * k * p->n_bytes > apl_packed_second_cache() / 4) return false;
  const int64_t last = p->m.rank - 1;
  return p->m_row[0].stride[last] * p->m_bytes % kApart != 0;
}

static inline struct apl_packed_items apl_packed_cut_items(const struct apl_packed* p) {
  enum { kRows = 512, kLeastDepth = 256 };
  struct apl_packed_items b = {0};
  b.batch = apl_packed_size(&p->batch), b.m = apl_packed_size(&p->m), b.n = apl_packed_size(&p->n);
  b.k = apl_packed_size(&p->k);
  const int64_t columns = p->kernels[0].columns, pad = apl_packed_pad(p);
  const double work = (double)b.m * (double)b.n * (double)apl_packed_most(1, b.k) * (double)b.batch;
  const int64_t most = apl_threads(), shares = (int64_t)(work / (double)APL_PACKED_WORK_OF_THREAD);
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
  b.depth = apl_packed_most(kLeastDepth, apl_packed_second_cache() / 4 / apl_packed_most(1, wide * p->n_bytes));
  b.depth = apl_packed_up(b.k, apl_packed_most(1, apl_packed_up(b.k, b.depth)));
  if (p->blocked) b.depth = apl_packed_up(b.depth, kPackedPart * kPackedPart) * kPackedPart * kPackedPart;
  b.depth = apl_packed_even(p, apl_packed_most(1, b.depth));
  const int64_t panels = wide / columns + kPackedWidths, tiles = panels * (b.rows + pad);
  b.n_panels = apl_packed_lines(wide * b.depth * p->n_bytes) + panels * kPackedLine;
  b.steps = apl_packed_lines((p->m_operands + p->n_operands + 2) * b.depth * (int64_t)sizeof(int64_t));
  b.m_table = apl_packed_lines((p->m_operands + 2) * (b.rows + 2 * pad) * (int64_t)sizeof(int64_t));
  b.n_table = apl_packed_lines((p->n_operands + 3) * (wide + columns) * (int64_t)sizeof(int64_t));
  b.partial = b.depth >= b.k ? 0 : apl_packed_lines((b.rows + pad) * wide * p->accumulator_bytes + tiles * kPackedLine);
  b.kept = apl_packed_lines((int64_t)sizeof(struct apl_packed_kept));
  b.thread = b.n_panels + b.steps + b.m_table + b.n_table + b.partial + b.kept;
  return b;
}

// Whether the next columns of N are read where they lie, by one kernel for all rows: so few that nothing is used again.
static inline bool apl_packed_is_in_place(const struct apl_packed* p, int64_t m, int64_t left, const int64_t* n_table,
                                          int64_t n_apart) {
  const struct apl_packed_kernel* const kernel = &p->kernels[kPackedInPlace];
  bool is = !p->packs_n && m <= kernel->rows && kernel->columns <= left && p->n_operands > 0;
  for (int32_t o = 0; is && o < p->n_operands; ++o) is = apl_packed_is_run(n_table + o * n_apart, kernel->columns);
  return is;
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

static inline struct apl_packed_kept* apl_packed_kept_of(const struct apl_packed_items* b, char* space) {
  return (struct apl_packed_kept*)(void*)(space + b->thread - b->kept);
}

// Items `from` to `to`, those of one part of N one after the other, in the memory of a thread.
static void apl_packed_some_items(const struct apl_packed* p, const struct apl_packed_items* b, const void* arguments,
                                  char* space, int64_t from, int64_t to) {
  char* const n_packed = space;
  int64_t* const steps = (int64_t*)(space + b->n_panels);
  int64_t* const runs = steps + (p->m_operands + p->n_operands) * b->depth;
  int64_t* const m_table = (int64_t*)(space + b->n_panels + b->steps);
  int64_t* const n_table = (int64_t*)(space + b->n_panels + b->steps + b->m_table);
  char* const partial = space + b->n_panels + b->steps + b->m_table + b->n_table;
  const int64_t m_apart = b->rows + 2 * apl_packed_pad(p);  // a tile looks at the rows of the next one
  const int64_t n_apart = apl_packed_up(b->columns, p->kernels[0].columns) * p->kernels[0].columns;
  int64_t* const m_result = m_table + p->m_operands * m_apart;
  int64_t* const m_index = m_result + m_apart;
  int64_t* const n_result = n_table + p->n_operands * n_apart;
  int64_t* const n_index = n_result + n_apart;
  int64_t* const n_runs = n_index + n_apart;
  int64_t positions[kPackedOperands][kPackedRows];
  struct apl_packed_kept* const has = apl_packed_kept_of(b, space);
  struct apl_packed_panel *const m_panel = &has->m, *const n_panel = &has->n;
  int64_t* const batch = has->batch;
  char local[kPackedRows * kPackedRows] __attribute__((aligned(64)));
  for (int64_t item = from; item < to; ++item) {
    const int64_t m_part = item % b->m_parts, n_part = item / b->m_parts % b->n_parts;
    const int64_t number = item / b->m_parts / b->n_parts;
    const int64_t row = m_part * b->rows, rows = apl_packed_least(b->rows, b->m - row);
    const int64_t column = n_part * b->columns, columns = apl_packed_least(b->columns, b->n - column);
    if (has->m_part != m_part) {
      for (int32_t o = 0; o < p->m_operands; ++o) {
        int64_t* const at = m_table + o * m_apart;
        apl_packed_positions(&p->m, &p->m_row[o], row, rows, at);
        for (int64_t r = rows; r < m_apart; ++r) at[r] = at[0];
      }
      apl_packed_positions(&p->m, &p->m_result, row, rows, m_result);
      apl_packed_positions(&p->m, &p->m_index, row, rows, m_index);
      has->m_part = m_part;
    }
    bool same_n = has->number == number && has->n_part == n_part;
    if (has->number != number) {
      apl_packed_batch_of(p, number, batch);
      has->number = number;
    }
    if (has->n_part != n_part) {
      apl_packed_positions(&p->n, &p->n_result, column, columns, n_result);
      apl_packed_positions(&p->n, &p->n_index, column, columns, n_index);
      for (int32_t o = 0; o < p->n_operands; ++o)
        apl_packed_positions(&p->n, &p->n_row[o], column, columns, n_table + o * n_apart);
      for (int64_t c = 0; c < columns;) {
        const struct apl_packed_kernel* const kernel =
            apl_packed_is_in_place(p, b->m, columns - c, n_table + c, n_apart)
                ? &p->kernels[kPackedInPlace]
                : apl_packed_direct_kernels(p, columns - c);
        const int64_t width = apl_packed_least(columns - c, kernel->columns);
        apl_packed_runs(n_result + c, n_index + c, width, n_runs + c);
        c += width;
      }
      has->n_part = n_part;
    }
    for (int64_t q = 0; q == 0 || q < b->k; q += b->depth) {
      const int64_t depth = apl_packed_least(b->depth, b->k - q);
      const bool first = q == 0, last = q + b->depth >= b->k;
      if (has->q != q) {
        for (int32_t o = 0; o < p->m_operands; ++o) apl_packed_steps(p, &p->m_step[o], q, depth, steps + o * b->depth);
        for (int32_t o = 0; o < p->n_operands; ++o)
          apl_packed_steps(p, &p->n_step[o], q, depth, steps + (p->m_operands + o) * b->depth);
        n_panel->depth = m_panel->depth = depth, n_panel->stride = p->n_stride;
        n_panel->first = runs, n_panel->length = runs + b->depth;
        n_panel->runs = apl_packed_step_runs(steps + p->m_operands * b->depth, b->depth, p->n_operands, depth,
                                             p->n_stride, runs, runs + b->depth);
        for (int32_t o = 0; o < p->n_operands; ++o) n_panel->step[o] = steps + (p->m_operands + o) * b->depth;
        for (int32_t o = 0; o < p->m_operands; ++o) m_panel->step[o] = steps + o * b->depth;
        has->q = q;
        same_n = false;
      }
      char* packed = n_packed;
      char* kept = partial;
      for (int64_t c = 0; c < columns;) {
        const bool in_place = apl_packed_is_in_place(p, b->m, columns - c, n_table + c, n_apart);
        const struct apl_packed_kernel* const pair =
            in_place ? &p->kernels[kPackedInPlace] : apl_packed_direct_kernels(p, columns - c);
        const int64_t width = apl_packed_least(columns - c, pair->columns);
        if (in_place) {
          for (int32_t o = 0; o < p->n_operands; ++o) n_panel->row[o] = n_table + o * n_apart + c;
        } else if (!same_n) {
          n_panel->rows = width, n_panel->most = pair->columns, n_panel->contiguous = width == pair->columns;
          for (int32_t o = 0; o < p->n_operands; ++o) {
            const int64_t* const at = n_table + o * n_apart + c;
            n_panel->row[o] = at;
            n_panel->contiguous = n_panel->contiguous && apl_packed_is_run(at, width);
            if (width == pair->columns) continue;
            for (int64_t r = 0; r < pair->columns; ++r) positions[o][r] = at[r < width ? r : 0];
            n_panel->row[o] = positions[o];
          }
          p->pack_n(arguments, batch, n_panel, packed);
        }
        for (int64_t r = 0; r < rows;) {
          const struct apl_packed_kernel* const kernel = in_place || 2 * (rows - r) > pair->rows ? pair : pair + 1;
          const int64_t height = apl_packed_least(kernel->rows, rows - r);
          char* const tile = first && last ? local : kept;
          for (int32_t o = 0; o < p->m_operands; ++o) m_panel->row[o] = m_table + o * m_apart + r;
          const struct apl_packed_tile where = {height,      width,        kernel->rows, kernel->columns, m_result + r,
                                                m_index + r, n_result + c, n_index + c,  n_runs + c};
          kernel->compute(arguments, batch, depth, m_panel, in_place ? (const void*)n_panel : packed, tile, first,
                          apl_packed_fetched(&where, last));
          if (last) p->store(arguments, batch, &where, tile);
          kept += apl_packed_tile_bytes(p, kernel);
          r += height;
        }
        if (!in_place) packed += apl_packed_lines(apl_packed_even(p, depth) * pair->columns * p->n_bytes);
        c += width;
      }
    }
  }
}

struct apl_packed_items_job {
  const struct apl_packed* p;
  struct apl_packed_items items;
  const void* arguments;
  char* space;
  int64_t units;
};

static void apl_packed_items_unit(void* argument, int64_t phase, int64_t unit, int64_t me) {
  (void)phase;
  const struct apl_packed_items_job* const job = (const struct apl_packed_items_job*)argument;
  const struct apl_packed_items* const b = &job->items;
  const int64_t items = b->batch * b->m_parts * b->n_parts;
  apl_packed_some_items(job->p, b, job->arguments, job->space + me * b->thread, items * unit / job->units,
                        items * (unit + 1) / job->units);
}

static inline int64_t apl_packed_run_direct(const struct apl_packed* p, const void* arguments, void* space) {
  enum { kUnits = 4 };  // of a thread, at most: some threads have more to do, or no core
  struct apl_packed_items_job job = {p, apl_packed_cut_items(p), arguments, (char*)space, 0};
  const struct apl_packed_items* const b = &job.items;
  if (!space) return b->threads * b->thread;
  for (int64_t me = 0; me < b->threads; ++me) {
    struct apl_packed_kept* const kept = apl_packed_kept_of(b, job.space + me * b->thread);
    memset(kept, 0, sizeof *kept);
    kept->m_part = kept->n_part = kept->number = kept->q = -1;
  }
  const int64_t items = b->batch * b->m_parts * b->n_parts;
  job.units = b->threads > 1 ? apl_packed_least(items, kUnits * b->threads) : apl_packed_least(items, 1);
  const struct apl_work work = {apl_packed_items_unit, &job, 1, {job.units, 0}};
  apl_in_parallel(b->threads, &work);
  return 0;
}

#endif
