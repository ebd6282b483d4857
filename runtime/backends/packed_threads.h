// How many threads packed contractions have, and who runs their units of work.
#ifndef APL_PACKED_THREADS_H
#define APL_PACKED_THREADS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "runtime/backends/units.h"

#if defined(_OPENMP)
#include <omp.h>
#elif defined(__unix__)
#include <unistd.h>
#endif

// Multiply-adds that are worth a thread that waits for work.
#ifndef APL_PACKED_WORK_OF_THREAD
#define APL_PACKED_WORK_OF_THREAD (1 << 18)
#endif

#ifndef APL_PROGRAM
#define APL_PROGRAM
#endif

// The pool's. A library has it in its file, a program gets that of the process from who loads it.
#ifdef APL_HAS_THREAD_POOL
static apl_work_runner* const apl_packed_pool = apl_pool_run;
#else
APL_PROGRAM apl_work_runner* apl_packed_pool;
#endif

#ifndef _OPENMP
// What the calling thread's contractions were asked to have; 0: nothing. OpenMP knows it by itself.
static __thread int apl_packed_asked;
#endif

// How many threads there may be: without OpenMP as many as were asked for, as OMP_NUM_THREADS says, or as processors.
static inline int64_t apl_packed_threads(void) {
#if defined(_OPENMP)
  const int64_t all = omp_in_parallel() ? 1 : omp_get_max_threads();
#else
  int64_t all = 1;
  if (apl_packed_pool) {
    const char* const said = getenv("OMP_NUM_THREADS");
    all = apl_packed_asked > 0 ? apl_packed_asked : said ? strtol(said, NULL, 10) : 0;
#if defined(__unix__)
    if (all < 1) all = sysconf(_SC_NPROCESSORS_ONLN);
#endif
  }
#endif
  const int64_t most = kUnitThreads;
  return all < 1 ? 1 : all < most ? all : most;
}

// Whether OpenMP's threads do it. Those of a program's loops wait awake for milliseconds after each, and threads of the
// pool would get no core from them. Where OpenMP binds threads to cores, threads of the pool would inherit the
// caller's.
static inline bool apl_packed_by_openmp(void) {
#if !defined(_OPENMP)
  return false;
#elif defined(APL_PACKED_BY_OPENMP)
  return true;
#else
  return !apl_packed_pool || omp_get_proc_bind() != omp_proc_bind_false;
#endif
}

// By up to `threads` threads.
static inline void apl_packed_in_parallel(int64_t threads, const struct apl_work* work) {
  const int64_t widest = work->width[0] > work->width[1] ? work->width[0] : work->width[1];
  if (threads > widest) threads = widest;
  if (threads < 2) {
    apl_units_alone(work);
    return;
  }
#if defined(_OPENMP)
  if (apl_packed_by_openmp()) {
    struct apl_units units;
    apl_units_open(&units, threads, work);
#pragma omp parallel num_threads((int)threads)
    apl_units_work(&units, omp_get_thread_num());
    return;
  }
#endif
  if (apl_packed_pool)
    apl_packed_pool(threads, work);
  else
    apl_units_alone(work);
}

#endif
