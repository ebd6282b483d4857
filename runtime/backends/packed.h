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
#include "runtime/backends/packed_machine.h"

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
