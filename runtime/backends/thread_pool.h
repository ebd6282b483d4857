// A pool of threads that help whoever has units of work (units.h).
//
// A call is done when its units are done, not when threads have arrived: where another library's threads spin on the
// cores, as those of OpenBLAS do for 25 ms after each of its calls, threads of the pool get no core, find nothing left
// once they do, and nobody has waited for them. Work is described in slots of static memory, which late threads may
// look at whenever they come: a slot is used again when the last of them has left it. Threads are made when they are
// first asked for, and sleep where there is no work. A forked child makes its own.
#ifndef APL_THREAD_POOL_H
#define APL_THREAD_POOL_H

#ifndef APL_WITH_THREAD_POOL
#define APL_WITH_THREAD_POOL 1
#endif
#include "runtime/backends/units.h"

#ifdef APL_HAS_THREAD_POOL

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#endif

// What tests stop threads by: one that is about to claim its first unit.
#ifndef APL_POOL_BEFORE_CLAIM
#define APL_POOL_BEFORE_CLAIM(me) ((void)(me))
#endif

enum {
  kPoolThreads = kUnitThreads - 1,
  kPoolSlots = 32,  // calls at a time; further ones are done by their callers alone
  // Of `users`: its caller fills the slot, or it has units for who comes. What is below counts threads of the pool.
  kPoolTaken = 1 << 30,
  kPoolOpen = 1 << 29,
};

struct apl_pool_slot {
  struct apl_units units;  // first: a pointer to it is one to the slot
  int32_t users;
  int32_t calls;   // threads that are still to be woken
  int32_t ticks;   // goes up where who sleeps should look again
  int64_t wanted;  // units that have to be done first of all that threads sleep for
} __attribute__((aligned(128)));

static struct {
  struct apl_pool_slot slots[kPoolSlots];
  pthread_t threads[kPoolThreads];
  int32_t started, starting, registered;
  int32_t posted;  // goes up with each call
  int32_t sleepers, stopped;
  pid_t process;
} apl_pool;

#ifndef __linux__
static pthread_mutex_t apl_pool_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t apl_pool_changed = PTHREAD_COND_INITIALIZER;
#endif

// Sleeps unless `word` is no longer `seen`; may wake up for no reason.
static inline void apl_pool_sleep(int32_t* word, int32_t seen) {
#ifdef __linux__
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
#else
  pthread_mutex_lock(&apl_pool_mutex);
  if (__atomic_load_n(word, __ATOMIC_SEQ_CST) == seen) pthread_cond_wait(&apl_pool_changed, &apl_pool_mutex);
  pthread_mutex_unlock(&apl_pool_mutex);
#endif
}

static inline void apl_pool_wake(int32_t* word, int32_t threads) {
#ifdef __linux__
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, threads, NULL, NULL, 0);
#else
  (void)word, (void)threads;
  pthread_mutex_lock(&apl_pool_mutex);
  pthread_cond_broadcast(&apl_pool_changed);
  pthread_mutex_unlock(&apl_pool_mutex);
#endif
}

// Wakes up some threads that sleep. To wake one takes microseconds: whoever has come, and whoever has done a unit, goes
// on with it, so that no thread does it all, and none that gets no core is waited for.
static inline void apl_pool_call(struct apl_pool_slot* slot) {
  enum { kAtOnce = 2 };
  if (__atomic_load_n(&slot->calls, __ATOMIC_RELAXED) <= 0) return;
  if (__atomic_load_n(&apl_pool.sleepers, __ATOMIC_SEQ_CST) == 0) return;
  const int32_t left = __atomic_fetch_sub(&slot->calls, kAtOnce, __ATOMIC_RELAXED);
  if (left > 0) apl_pool_wake(&apl_pool.posted, left < kAtOnce ? left : kAtOnce);
}

static inline void apl_pool_sleep_until(struct apl_units* units, int64_t done) {
  struct apl_pool_slot* const slot = (struct apl_pool_slot*)(void*)units;
  const int32_t seen = __atomic_load_n(&slot->ticks, __ATOMIC_SEQ_CST);
  int64_t wanted = __atomic_load_n(&slot->wanted, __ATOMIC_SEQ_CST);
  while (done < wanted &&
         !__atomic_compare_exchange_n(&slot->wanted, &wanted, done, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
  }
  if (__atomic_load_n(&units->done, __ATOMIC_SEQ_CST) < done) apl_pool_sleep(&slot->ticks, seen);
}

// The call may have returned; the slot stays its until this thread, too, has left it.
static inline void apl_pool_finished(struct apl_units* units, int64_t done) {
  struct apl_pool_slot* const slot = (struct apl_pool_slot*)(void*)units;
  apl_pool_call(slot);
  if (done < __atomic_load_n(&slot->wanted, __ATOMIC_SEQ_CST)) return;
  __atomic_store_n(&slot->wanted, INT64_MAX, __ATOMIC_SEQ_CST);
  __atomic_add_fetch(&slot->ticks, 1, __ATOMIC_SEQ_CST);
  apl_pool_wake(&slot->ticks, INT_MAX);
}

// A share of the slot's that nobody has come for; `wanted` if that is one.
static inline int64_t apl_pool_join(struct apl_units* units, int64_t wanted) {
  for (int64_t k = 0; k < units->threads; ++k) {
    const int64_t me = (wanted + k) % units->threads;
    if (__atomic_exchange_n(&units->shares[me].taken, 1, __ATOMIC_RELAXED) == 0) return me;
  }
  return -1;
}

// Does units of a slot, if it has any.
static inline bool apl_pool_help(struct apl_pool_slot* slot, int64_t number) {
  int32_t users = __atomic_load_n(&slot->users, __ATOMIC_RELAXED);
  do {
    if (!(users & kPoolOpen)) return false;
  } while (!__atomic_compare_exchange_n(&slot->users, &users, users + 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED));
  const int64_t me = apl_pool_join(&slot->units, number);
  if (me >= 0) {
    apl_pool_call(slot);
    APL_POOL_BEFORE_CLAIM(me);
    apl_units_work(&slot->units, me);
  }
  __atomic_sub_fetch(&slot->users, 1, __ATOMIC_RELEASE);
  return me >= 0;
}

static void* apl_pool_main(void* number) {
  // Calls that follow one another closely find threads awake, unless these would take cores from other threads.
  enum { kTries = 2000 };
  const int64_t processors = apl_processors();
  while (!__atomic_load_n(&apl_pool.stopped, __ATOMIC_SEQ_CST)) {
    const int32_t seen = __atomic_load_n(&apl_pool.posted, __ATOMIC_SEQ_CST);
    bool helped = false;
    for (int k = 0; k < kPoolSlots; ++k) helped |= apl_pool_help(&apl_pool.slots[k], (intptr_t)number);
    if (helped) continue;
    const int tries = __atomic_load_n(&apl_pool.started, __ATOMIC_RELAXED) < processors ? kTries : 0;
    for (int k = 0; k < tries && __atomic_load_n(&apl_pool.posted, __ATOMIC_RELAXED) == seen; ++k) apl_units_pause();
    __atomic_add_fetch(&apl_pool.sleepers, 1, __ATOMIC_SEQ_CST);
    apl_pool_sleep(&apl_pool.posted, seen);
    __atomic_sub_fetch(&apl_pool.sleepers, 1, __ATOMIC_SEQ_CST);
  }
  return NULL;
}

// In a forked child there are no threads, and calls that others made in the parent never end.
static inline void apl_pool_forked(void) {
  for (int k = 0; k < kPoolSlots; ++k) apl_pool.slots[k].users = 0;
  apl_pool.started = apl_pool.starting = apl_pool.sleepers = 0;
#ifndef __linux__
  pthread_mutex_init(&apl_pool_mutex, NULL);
  pthread_cond_init(&apl_pool_changed, NULL);
#endif
}

// Makes threads until there are `wanted`, as far as the system gives them.
static inline void apl_pool_start(int64_t wanted) {
  if (wanted > kPoolThreads) wanted = kPoolThreads;
  if (__atomic_load_n(&apl_pool.started, __ATOMIC_RELAXED) >= wanted) return;
  if (__atomic_load_n(&apl_pool.stopped, __ATOMIC_RELAXED)) return;
  if (__atomic_exchange_n(&apl_pool.starting, 1, __ATOMIC_ACQUIRE)) return;  // another caller does
  if (!apl_pool.registered) apl_pool.registered = pthread_atfork(NULL, NULL, apl_pool_forked) == 0;
  apl_pool.process = getpid();
  // Signals are for threads of the program around.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  while (apl_pool.registered && apl_pool.started < wanted &&
         pthread_create(&apl_pool.threads[apl_pool.started], NULL, apl_pool_main,
                        (void*)(intptr_t)(apl_pool.started + 1)) == 0)
    __atomic_add_fetch(&apl_pool.started, 1, __ATOMIC_RELAXED);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  __atomic_store_n(&apl_pool.starting, 0, __ATOMIC_RELEASE);
}

// At the end of the process, and before the code of the threads is unloaded.
__attribute__((destructor)) static void apl_pool_stop(void) {
  __atomic_store_n(&apl_pool.stopped, 1, __ATOMIC_SEQ_CST);
  while (__atomic_exchange_n(&apl_pool.starting, 1, __ATOMIC_ACQUIRE)) sched_yield();
  if (apl_pool.process != getpid()) return;
  __atomic_add_fetch(&apl_pool.posted, 1, __ATOMIC_SEQ_CST);
  apl_pool_wake(&apl_pool.posted, INT_MAX);
  for (int32_t k = 0; k < apl_pool.started; ++k) pthread_join(apl_pool.threads[k], NULL);
}

static void apl_pool_run(int64_t threads, const struct apl_work* work) {
  struct apl_pool_slot* slot = NULL;
  for (int k = 0; k < kPoolSlots && !slot && threads > 1; ++k) {
    int32_t users = 0;
    if (__atomic_load_n(&apl_pool.slots[k].users, __ATOMIC_RELAXED) == 0 &&
        __atomic_compare_exchange_n(&apl_pool.slots[k].users, &users, kPoolTaken, false, __ATOMIC_ACQUIRE,
                                    __ATOMIC_RELAXED))
      slot = &apl_pool.slots[k];
  }
  if (!slot) {
    apl_units_alone(work);
    return;
  }
  struct apl_units* const units = &slot->units;
  if (threads > kUnitThreads) threads = kUnitThreads;
  apl_units_open(units, threads, work);
  units->sleep = apl_pool_sleep_until, units->finished = apl_pool_finished;
  __atomic_store_n(&slot->wanted, INT64_MAX, __ATOMIC_RELAXED);
  __atomic_store_n(&slot->calls, (int32_t)threads - 1, __ATOMIC_RELAXED);
  apl_pool_start(threads - 1);
  __atomic_store_n(&slot->users, kPoolOpen, __ATOMIC_RELEASE);
  __atomic_add_fetch(&apl_pool.posted, 1, __ATOMIC_SEQ_CST);
  apl_pool_call(slot);
  apl_units_work(units, 0);
  apl_units_wait(units, apl_units_before(work, work->phases));
  __atomic_and_fetch(&slot->users, ~kPoolOpen, __ATOMIC_RELEASE);
}

#endif
#endif
