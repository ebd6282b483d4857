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
};

static void apl_packed_blocks_of(void* argument, struct apl_packed_team* team, int64_t me) {
  const struct apl_packed_job* const job = (const struct apl_packed_job*)argument;
  const struct apl_packed* const p = job->p;
  const struct apl_packed_blocks* const b = job->b;
  const struct apl_packed_space* const s = job->s;
  char* const mine = job->space + b->teams * s->team + me * s->thread;
  struct apl_packed_team alone = {1, 0, 0, NULL, NULL};
  if (b->k_parts > 1) {
    const int64_t blocks = apl_packed_up(b->k, b->depth);
    for (int64_t batch = 0; batch < b->batch; ++batch) {
      for (int64_t part = me; part < b->k_parts; part += team->there)
        apl_packed_batch(p, b, s, job->arguments, batch, apl_packed_least(b->k, blocks * part / b->k_parts * b->depth),
                         apl_packed_least(b->k, blocks * (part + 1) / b->k_parts * b->depth),
                         job->space + part * s->team, mine, &alone, 0);
      apl_packed_wait(team);
      apl_packed_combine(p, b, s, job->arguments, batch, job->space, team, me);
      apl_packed_wait(team);
    }
  } else if (b->teams > 1) {
    for (int64_t batch = me; batch < b->batch; batch += team->there)
      apl_packed_batch(p, b, s, job->arguments, batch, 0, b->k, job->space + me * s->team, mine, &alone, 0);
  } else {
    for (int64_t batch = 0; batch < b->batch; ++batch)
      apl_packed_batch(p, b, s, job->arguments, batch, 0, b->k, job->space, mine, team, me);
  }
}

// The bytes of `space`, if there is none yet, else all of the contraction.
static int64_t apl_packed_run(struct apl_packed* p, const void* arguments, void* space) {
  apl_packed_order(p);
  if (apl_packed_is_direct(p)) return apl_packed_run_direct(p, arguments, space);
  const struct apl_packed_blocks b = apl_packed_cut_blocks(p);
  const struct apl_packed_space s = apl_packed_space_of(p, &b);
  if (!space) return s.all;
  if (b.m == 0 || b.n == 0 || b.batch == 0) return 0;
  struct apl_packed_job job = {p, &b, &s, arguments, (char*)space};
  apl_packed_in_parallel(b.threads, apl_packed_blocks_of, &job);
  return 0;
}

#ifdef APL_PACKED_OPTIONS
#pragma GCC pop_options
#undef APL_PACKED_OPTIONS
#endif

#endif
