// How many threads the parallel loops and products of a program have, and who runs their units of work.
#ifndef APL_THREADS_H
#define APL_THREADS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "context.h"
#include "runtime/backends/units.h"

#if defined(_OPENMP)
#include <omp.h>
#endif

// Multiply-adds that are worth a thread that waits for work.
#ifndef APL_PACKED_WORK_OF_THREAD
#define APL_PACKED_WORK_OF_THREAD (1 << 18)
#endif

// The pool's. A library has it in its file, a program gets that of the process from who loads it.
#ifdef APL_HAS_THREAD_POOL
static apl_work_runner* const apl_thread_pool = apl_pool_run;
#else
APL_PROGRAM apl_work_runner* apl_thread_pool;
#endif

#ifndef _OPENMP
// What the calling thread's loops and products were asked to have; 0: nothing. OpenMP knows it by itself.
static __thread int apl_asked_threads;
#endif

// How many threads there may be: without OpenMP as many as were asked for, as OMP_NUM_THREADS says, or as processors.
static inline int64_t apl_threads(void) {
#if defined(_OPENMP)
  const int64_t all = omp_in_parallel() ? 1 : omp_get_max_threads();
#else
  int64_t all = 1;
  if (apl_thread_pool) {
    const char* const said = getenv("OMP_NUM_THREADS");
    all = apl_asked_threads > 0 ? apl_asked_threads : said ? strtol(said, NULL, 10) : 0;
    if (all < 1) all = apl_processors();
  }
#endif
  const int64_t most = kUnitThreads;
  return all < 1 ? 1 : all < most ? all : most;
}

// Whether OpenMP's threads do it: where there is no pool, or where OpenMP binds threads to cores, which threads of the
// pool would inherit from the caller.
static inline bool apl_is_by_openmp(void) {
#if defined(_OPENMP)
  return !apl_thread_pool || omp_get_proc_bind() != omp_proc_bind_false;
#else
  return false;
#endif
}

// By up to `threads` threads.
static inline void apl_in_parallel(int64_t threads, const struct apl_work* work) {
  const int64_t widest = work->width[0] > work->width[1] ? work->width[0] : work->width[1];
  if (threads > widest) threads = widest;
  if (threads < 2) {
    apl_units_alone(work);
    return;
  }
#if defined(_OPENMP)
  if (apl_is_by_openmp()) {
    struct apl_units units;
    apl_units_open(&units, threads, work);
#pragma omp parallel num_threads((int)threads)
    apl_units_work(&units, omp_get_thread_num());
    return;
  }
#endif
  if (apl_thread_pool)
    apl_thread_pool(threads, work);
  else
    apl_units_alone(work);
}

// ---- loops ----

// Does the rounds of a loop from `begin` up to `end`; `names` are what the loop reads.
typedef void apl_loop_part(const void* names, int64_t begin, int64_t end);

struct apl_loop_job {
  apl_loop_part* part;
  const void* names;
  int64_t each, longer;  // rounds of a unit; the first `longer` units have one more
};

static inline void apl_loop_unit(void* job, int64_t phase, int64_t unit, int64_t me) {
  const struct apl_loop_job* const loop = (const struct apl_loop_job*)job;
  const int64_t begin = unit * loop->each + (unit < loop->longer ? unit : loop->longer);
  (void)phase, (void)me;
  loop->part(loop->names, begin, begin + loop->each + (unit < loop->longer));
}

// Does all `count` rounds, by several threads if they are cut into `most` parts.
static inline void apl_loop(apl_loop_part* part, const void* names, int64_t count, int64_t most) {
  enum { kUnits = 4 };  // of a thread, at most: some threads have more to do, or no core
  if (count < 1) return;
  const int64_t threads = count > 1 && most > 1 ? apl_threads() : 1;
  if (threads < 2) {
    part(names, 0, count);
    return;
  }
  int64_t units = kUnits * threads;
  if (units > count) units = count;
  if (units > most) units = most;
  struct apl_loop_job job = {part, names, count / units, count % units};
  const struct apl_work work = {apl_loop_unit, &job, 1, {units, 0}};
  apl_in_parallel(threads, &work);
}

// Into how many parts short rounds are cut: threads are not waited for where one is done before they have begun.
static inline int64_t apl_units_of(int64_t elements) {
  enum { kWorthThreads = 4096, kUnit = 1024 };
  return elements < kWorthThreads ? 1 : elements / kUnit;
}

static inline int64_t apl_rounds(int64_t from, int64_t to, int64_t step) {
  return to > from ? (to - from - 1) / step + 1 : 0;
}

// So many neighbouring columns are folded at once, whole lines and `most` at most, that all threads have some.
static inline int64_t apl_columns_at_once(int64_t columns, int64_t most) {
  const int64_t line = 16, threads = apl_threads(), parts = threads > 1 ? 2 * threads : 1;
  const int64_t each = (columns + parts - 1) / parts, lines = (each + line - 1) / line * line;
  const int64_t some = lines < most ? lines : most;
  return some < line ? line : some;
}

// ---- products over non-zeros ----

static inline void apl_sparse_unit(void* job, int64_t phase, int64_t unit, int64_t me) {
  struct apl_context* const ctx = (struct apl_context*)job;
  (void)phase, (void)unit, (void)me;
  ctx->backend->sparse_work(ctx);
}

// What the backend was asked for last. A thread does what no other has begun, so those that come late have nothing to
// do.
static inline void apl_sparse_run(struct apl_context* ctx, int64_t threads) {
  const int64_t most = threads > 1 ? apl_threads() : 1;
  const struct apl_work work = {apl_sparse_unit, ctx, 1, {threads < most ? threads : most, 0}};
  apl_in_parallel(most, &work);
}

#endif
