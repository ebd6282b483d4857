// Contractions on CPUs: the five loops of BLIS around a micro-kernel, for any rank. Rows of M and N and steps of the
// depth are found through tables of positions, so that operands are packed straight from the layouts that they have
// (TBLIS). Where there are few columns or rows, or all is small, only N is packed and M is read where it lies.
// Generated code gives what packs a panel, what computes and what stores a micro-tile.
#ifndef APL_PACKED_H
#define APL_PACKED_H

// The loops around micro-kernels gain nothing from what a compiler does at -O3, which takes it seconds.
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#pragma GCC push_options
#pragma GCC optimize("O2")
#define APL_PACKED_OPTIONS
#endif

#include "runtime/backends/packed_direct.h"

struct apl_packed_job {
  const struct apl_packed* p;
  const struct apl_packed_blocks* b;
  const struct apl_packed_space* s;
  const void* arguments;
  char* space;
  int64_t width[2];  // units of a phase
};

// A thread's own memory.
static inline char* apl_packed_mine(const struct apl_packed_job* job, int64_t me) {
  return job->space + job->b->teams * job->s->team + me * job->s->thread;
}

// Blocks that the depth is cut into.
static inline int64_t apl_packed_depths(const struct apl_packed_blocks* b) {
  return apl_packed_most(1, apl_packed_up(b->k, b->depth));
}

// Some batches, by one thread.
static void apl_packed_batches(void* argument, int64_t phase, int64_t unit, int64_t me) {
  const struct apl_packed_job* const job = (const struct apl_packed_job*)argument;
  const int64_t batch = job->b->batch, units = job->width[0];
  (void)phase;
  for (int64_t number = batch * unit / units; number < batch * (unit + 1) / units; ++number)
    apl_packed_batch(job->p, job->b, job->s, job->arguments, number, 0, job->b->k, job->space + me * job->s->team,
                     apl_packed_mine(job, me));
}

// Phases of a batch: the parts of the depth, then the results.
static void apl_packed_depth_parts(void* argument, int64_t phase, int64_t unit, int64_t me) {
  const struct apl_packed_job* const job = (const struct apl_packed_job*)argument;
  const struct apl_packed_blocks* const b = job->b;
  if (phase % 2 == 0) {
    const int64_t blocks = apl_packed_up(b->k, b->depth);
    apl_packed_batch(job->p, b, job->s, job->arguments, phase / 2,
                     apl_packed_least(b->k, blocks * unit / b->k_parts * b->depth),
                     apl_packed_least(b->k, blocks * (unit + 1) / b->k_parts * b->depth),
                     job->space + unit * job->s->team, apl_packed_mine(job, me));
    return;
  }
  const int64_t tiles = apl_packed_up(b->m, job->p->kernels[0].rows) * b->n_panels, units = job->width[1];
  apl_packed_combine(job->p, b, job->s, job->arguments, phase / 2, job->space, tiles * unit / units,
                     tiles * (unit + 1) / units);
}

// Phases of a block: panels of N are packed, then the parts that use them are computed.
static void apl_packed_shared_blocks(void* argument, int64_t phase, int64_t unit, int64_t me) {
  const struct apl_packed_job* const job = (const struct apl_packed_job*)argument;
  const struct apl_packed_blocks* const b = job->b;
  const int64_t all_n = apl_packed_up(b->n, job->p->kernels[0].columns), n_blocks = apl_packed_up(all_n, b->n_panels);
  const int64_t block = phase / 2, q_blocks = apl_packed_depths(b);
  const struct apl_packed_block at =
      apl_packed_block_at(b, block / q_blocks / n_blocks, block / q_blocks % n_blocks * b->n_panels,
                          block % q_blocks * b->depth, 0, b->k, all_n);
  if (phase % 2 == 0)
    apl_packed_columns(job->p, b, job->s, job->arguments, &at, at.n_panels * unit / job->width[0],
                       at.n_panels * (unit + 1) / job->width[0], job->space, apl_packed_mine(job, me));
  else
    apl_packed_part(job->p, b, job->s, job->arguments, &at, unit, job->space, apl_packed_mine(job, me));
}

static void apl_packed_run_blocks(struct apl_packed_job* job) {
  enum { kUnits = 4 };  // of a thread, at most: some threads have more to do, or no core
  const struct apl_packed_blocks* const b = job->b;
  for (int64_t me = 0; me < b->threads; ++me) {
    struct apl_packed_tables* const tables = apl_packed_tables_of(job->s, apl_packed_mine(job, me));
    memset(tables, 0, sizeof *tables);
    tables->q = -1;
  }
  const int64_t most = kUnits * b->threads;
  struct apl_work work = {apl_packed_shared_blocks, job, 0, {0, 0}};
  if (b->k_parts > 1) {
    work.body = apl_packed_depth_parts, work.phases = 2 * b->batch;
    work.width[0] = b->k_parts;
    work.width[1] = apl_packed_least(most, apl_packed_up(b->m, job->p->kernels[0].rows) * b->n_panels);
  } else if (b->teams > 1) {
    work.body = apl_packed_batches, work.phases = 1, work.width[0] = apl_packed_least(most, b->batch);
  } else {
    const int64_t n_blocks = apl_packed_up(apl_packed_up(b->n, job->p->kernels[0].columns), b->n_panels);
    work.phases = 2 * b->batch * n_blocks * apl_packed_depths(b);
    work.width[0] = apl_packed_least(most, b->n_panels), work.width[1] = b->m_parts * b->n_parts;
  }
  job->width[0] = work.width[0], job->width[1] = work.width[1];
  apl_in_parallel(b->threads, &work);
}

// The bytes of `space`, if there is none yet, else all of the contraction.
static int64_t apl_packed_run(struct apl_packed* p, const void* arguments, void* space) {
  apl_packed_order(p);
  if (apl_packed_is_direct(p)) return apl_packed_run_direct(p, arguments, space);
  const struct apl_packed_blocks b = apl_packed_cut_blocks(p);
  const struct apl_packed_space s = apl_packed_space_of(p, &b);
  if (!space) return s.all;
  if (b.m == 0 || b.n == 0 || b.batch == 0) return 0;
  struct apl_packed_job job = {p, &b, &s, arguments, (char*)space, {0, 0}};
  apl_packed_run_blocks(&job);
  return 0;
}

#ifdef APL_PACKED_OPTIONS
#pragma GCC pop_options
#undef APL_PACKED_OPTIONS
#endif

#endif
