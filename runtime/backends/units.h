// Work in units that threads claim, and what runs it: a pool's threads, OpenMP's, or the caller alone.
//
// The units of a call come in phases: those of a phase begin when those of the phase before are done. Each thread has
// a share of a phase, where its caches are warm from the call before, and then claims what others have not begun. It
// goes on to the next phase when all units are claimed, so it waits for threads that work, and never for one that was
// asked for but has no core.
#ifndef APL_UNITS_H
#define APL_UNITS_H

#include <stdint.h>

#if defined(__unix__)
#include <sched.h>
#include <unistd.h>
#ifndef APL_NO_THREADS
#define APL_CAN_HAVE_THREADS 1
#endif
#endif

enum { kUnitThreads = 256 };  // of a call, at most

// What is to be done. Phases of even and of odd number have `width[0]` and `width[1]` units, of which each is
// `body(job, phase, unit, me)` by thread `me` of the call; 0 is the caller. Fewer than 2^31 phases, and units of each.
struct apl_work {
  void (*body)(void* job, int64_t phase, int64_t unit, int64_t me);
  void* job;
  int64_t phases, width[2];
};

// Does it by at most `threads` threads, of which the caller is one. Returns when all units are done.
typedef void apl_work_runner(int64_t threads, const struct apl_work* work);

#if defined(APL_WITH_THREAD_POOL) && defined(APL_CAN_HAVE_THREADS)
static apl_work_runner apl_pool_run;  // thread_pool.h
#define APL_HAS_THREAD_POOL 1
#endif

// The share of a thread, whether that has come or not.
struct apl_unit_share {
  int64_t claimed;  // the last phase of which a unit was claimed, times 2^32, and how many were
  int32_t taken;    // by a thread that came
} __attribute__((aligned(64)));

struct apl_units {
  struct apl_work work;
  int64_t threads;
  int64_t done;                                             // units, of all phases
  void (*sleep)(struct apl_units* units, int64_t done);     // how threads wait for long; NULL: they yield
  void (*finished)(struct apl_units* units, int64_t done);  // called after each unit; may be NULL
  struct apl_unit_share shares[kUnitThreads];
};

// That the calling thread may run on.
static inline int64_t apl_processors(void) {
#if defined(__linux__) && defined(CPU_COUNT)
  cpu_set_t mine;
  if (sched_getaffinity(0, sizeof mine, &mine) == 0) return CPU_COUNT(&mine);
#endif
#if defined(__unix__)
  return sysconf(_SC_NPROCESSORS_ONLN);
#else
  return 1;
#endif
}

static inline void apl_units_open(struct apl_units* units, int64_t threads, const struct apl_work* work) {
  units->work = *work;
  units->threads = threads;
  units->sleep = NULL, units->finished = NULL;
  __atomic_store_n(&units->done, 0, __ATOMIC_RELAXED);
  for (int64_t k = 0; k < threads; ++k) {
    __atomic_store_n(&units->shares[k].claimed, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&units->shares[k].taken, k == 0, __ATOMIC_RELAXED);
  }
}

// How many units the phases before this one have.
static inline int64_t apl_units_before(const struct apl_work* work, int64_t phase) {
  return phase / 2 * (work->width[0] + work->width[1]) + phase % 2 * work->width[0];
}

static inline void apl_units_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

// Waits until `done` units are finished.
static inline void apl_units_wait(struct apl_units* units, int64_t done) {
  enum { kTries = 1000 };
  for (int tries = 0; __atomic_load_n(&units->done, __ATOMIC_ACQUIRE) < done; ++tries) {
    if (tries < kTries)
      apl_units_pause();
    else if (units->sleep)
      units->sleep(units, done);
#if defined(__unix__)
    else
      sched_yield();
#endif
  }
}

// A unit of a share of `count`; -1: all were claimed.
static inline int64_t apl_units_claim(struct apl_unit_share* share, int64_t phase, int64_t count) {
  enum { kPhase = 32 };
  int64_t claimed = __atomic_load_n(&share->claimed, __ATOMIC_RELAXED);
  for (;;) {
    const int64_t at = claimed >> kPhase, unit = at < phase ? 0 : claimed & UINT32_MAX;
    if (at > phase || unit >= count) return -1;
    if (__atomic_compare_exchange_n(&share->claimed, &claimed, (phase << kPhase) + unit + 1, 0, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED))
      return unit;
  }
}

// Claims and does units until none is left. A thread that has claimed nothing touches nothing of the job's.
static inline void apl_units_work(struct apl_units* units, int64_t me) {
  const struct apl_work* const work = &units->work;
  const int64_t threads = units->threads;
  for (int64_t phase = 0; phase < work->phases; ++phase) {
    const int64_t before = apl_units_before(work, phase), width = work->width[phase % 2];
    if (__atomic_load_n(&units->done, __ATOMIC_RELAXED) >= before + width) continue;
    apl_units_wait(units, before);
    for (int64_t k = 0; k < threads; ++k) {
      const int64_t whose = (me + k) % threads, first = width * whose / threads;
      const int64_t count = width * (whose + 1) / threads - first;
      for (int64_t unit; (unit = apl_units_claim(&units->shares[whose], phase, count)) >= 0;) {
        work->body(work->job, phase, first + unit, me);
        const int64_t done = __atomic_add_fetch(&units->done, 1, __ATOMIC_SEQ_CST);
        if (units->finished) units->finished(units, done);
      }
    }
  }
}

static inline void apl_units_alone(const struct apl_work* work) {
  for (int64_t phase = 0; phase < work->phases; ++phase)
    for (int64_t unit = 0; unit < work->width[phase % 2]; ++unit) work->body(work->job, phase, unit, 0);
}

#endif
