// Threads of packed contractions: OpenMP's, or where a program is compiled without it POSIX threads for one
// contraction.
#ifndef APL_PACKED_THREADS_H
#define APL_PACKED_THREADS_H

#include <stdbool.h>
#include <stdint.h>

#if defined(_OPENMP)
#include <omp.h>
#elif defined(__unix__) && !defined(APL_NO_THREADS)
#define APL_POSIX_THREADS
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>
#endif

// Multiply-adds that are worth a thread: those of OpenMP wait for work, others are made for it.
#ifndef APL_PACKED_WORK_OF_THREAD
#ifdef _OPENMP
#define APL_PACKED_WORK_OF_THREAD (1 << 18)
#else
#define APL_PACKED_WORK_OF_THREAD (1 << 22)
#endif
#endif

// `body` is run by each of `there` threads, with its number.
struct apl_packed_team {
  int64_t there;
  int64_t arrived, phase;  // of the barrier
  void (*body)(void* job, struct apl_packed_team* team, int64_t me);
  void* job;
};

enum { kPackedThreads = 256 };  // at most

// How many threads there may be: without OpenMP as many as OMP_NUM_THREADS says, or processors.
static inline int64_t apl_packed_threads(void) {
#if defined(_OPENMP)
  const int64_t all = omp_in_parallel() ? 1 : omp_get_max_threads();
#elif defined(APL_POSIX_THREADS)
  const char* const asked = getenv("OMP_NUM_THREADS");
  int64_t all = asked ? strtol(asked, NULL, 10) : 0;
  if (all < 1) all = sysconf(_SC_NPROCESSORS_ONLN);
#else
  const int64_t all = 1;
#endif
  const int64_t most = kPackedThreads;
  return all < 1 ? 1 : all < most ? all : most;
}

// A barrier of the team.
static inline void apl_packed_wait(struct apl_packed_team* team) {
  if (team->there < 2) return;
#if defined(_OPENMP)
#pragma omp barrier
#elif defined(APL_POSIX_THREADS)
  enum { kTries = 4096 };
  const int64_t phase = __atomic_load_n(&team->phase, __ATOMIC_ACQUIRE);
  if (__atomic_add_fetch(&team->arrived, 1, __ATOMIC_ACQ_REL) == team->there) {
    __atomic_store_n(&team->arrived, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&team->phase, phase + 1, __ATOMIC_RELEASE);
    return;
  }
  for (int64_t tries = 0; __atomic_load_n(&team->phase, __ATOMIC_ACQUIRE) == phase; ++tries)
    if (tries >= kTries) sched_yield();
#endif
}

#ifdef APL_POSIX_THREADS
struct apl_packed_member {
  struct apl_packed_team* team;
  int64_t me;
};

static void* apl_packed_begin(void* argument) {
  const struct apl_packed_member* const member = (const struct apl_packed_member*)argument;
  // How many there are is known when all have been made.
  while (__atomic_load_n(&member->team->there, __ATOMIC_ACQUIRE) == 0) sched_yield();
  member->team->body(member->team->job, member->team, member->me);
  return NULL;
}
#endif

// `body` by up to `threads` threads, of which the caller is one; fewer where the system gives no more.
static inline void apl_packed_in_parallel(int64_t threads,
                                          void (*body)(void* job, struct apl_packed_team* team, int64_t me),
                                          void* job) {
  struct apl_packed_team team = {1, 0, 0, body, job};
  if (threads < 2) {
    body(job, &team, 0);
    return;
  }
#if defined(_OPENMP)
#pragma omp parallel num_threads((int)threads)
  {
#pragma omp single
    team.there = omp_get_num_threads();
    body(job, &team, omp_get_thread_num());
  }
#elif defined(APL_POSIX_THREADS)
  pthread_t made[kPackedThreads];
  struct apl_packed_member members[kPackedThreads];
  int64_t there = 1;
  team.there = 0;
  for (; there < threads; ++there) {
    members[there].team = &team, members[there].me = there;
    if (pthread_create(&made[there], NULL, apl_packed_begin, &members[there]) != 0) break;
  }
  __atomic_store_n(&team.there, there, __ATOMIC_RELEASE);
  body(job, &team, 0);
  for (int64_t k = 1; k < there; ++k) pthread_join(made[k], NULL);
#else
  body(job, &team, 0);
#endif
}

#endif
