// The pool of threads (runtime/backends/thread_pool.h) with units that wait for one another, with threads that are
// stopped, in forked children and unloaded libraries.
#include <atomic>

namespace {

// Threads of the pool that are about to claim their first unit stop here while `stopping`.
struct Gate {
  std::atomic<bool> stopping{false};
  std::atomic<int> stopped{0}, passed{0};
  void pass() {
    ++stopped;
    while (stopping) {
    }
    --stopped;
    ++passed;
  }
};
Gate gate;

}  // namespace

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#define APL_POOL_BEFORE_CLAIM(me) gate.pass()
#include "runtime/backends/thread_pool.h"
#pragma GCC diagnostic pop

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/backends/toolchain.h"

namespace {

// Phases whose units look whether those of the phase before are done.
struct Phases {
  std::int64_t even, odd, threads;
  std::vector<std::atomic<int>> times;
  std::atomic<int> early{0}, strangers{0};
  Phases(std::int64_t even, std::int64_t odd, std::int64_t pairs, std::int64_t threads)
      : even(even), odd(odd), threads(threads), times(static_cast<std::size_t>(pairs * (even + odd))) {}
  apl_work work();
  void unit(std::int64_t phase, std::int64_t unit, std::int64_t me) {
    const std::int64_t first = phase / 2 * (even + odd) + phase % 2 * even;
    for (std::int64_t k = std::max<std::int64_t>(first - even - odd, 0); k < first; ++k)
      if (times[static_cast<std::size_t>(k)] != 1) ++early;
    if (me < 0 || me >= threads) ++strangers;
    ++times[static_cast<std::size_t>(first + unit)];
  }
  bool are_right() const {
    bool once = early == 0 && strangers == 0;
    for (const auto& number : times) once = once && number == 1;
    return once;
  }
};

apl_work Phases::work() {
  const auto body = [](void* job, std::int64_t phase, std::int64_t unit, std::int64_t me) {
    static_cast<Phases*>(job)->unit(phase, unit, me);
  };
  return {body, this, static_cast<std::int64_t>(times.size()) / std::max<std::int64_t>(even + odd, 1) * 2, {even, odd}};
}

bool runs_right(std::int64_t threads, std::int64_t even, std::int64_t odd, std::int64_t pairs) {
  Phases phases(even, odd, pairs, threads);
  const apl_work work = phases.work();
  apl_pool_run(threads, &work);
  return phases.are_right();
}

std::size_t threads_of_process() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
}

constexpr std::int64_t kThreads = 4;

}  // namespace

TEST_CASE("thread pool: each unit is done once, after all of the phase before, by the threads asked for") {
  for (const std::int64_t threads : {1, 2, 3, 4, 3, 400})
    for (const std::int64_t even : {0, 1, 2, 5, 30})
      for (const std::int64_t odd : {0, 1, 4, 7}) CHECK(runs_right(threads, even, odd, 20));
}

TEST_CASE("thread pool: many callers at a time") {
  std::atomic<int> right{0};
  constexpr int kCallers = 8, kCalls = 100;
  std::vector<std::thread> callers;
  for (int k = 0; k < kCallers; ++k)
    callers.emplace_back([&] {
      for (int call = 0; call < kCalls; ++call) right += runs_right(kThreads, 1 + call % 7, call % 3, 5) ? 1 : 0;
    });
  for (std::thread& caller : callers) caller.join();
  CHECK(right == kCallers * kCalls);
}

namespace {

// A unit that makes a call itself, nested to a depth.
void nested_unit(void* job, std::int64_t, std::int64_t, std::int64_t) {
  const apl_work work{nested_unit, job, 1, {1, 0}};
  if (--*static_cast<std::atomic<int>*>(job) > 0) apl_pool_run(2, &work);
}

}  // namespace

TEST_CASE("thread pool: more calls at a time than there are slots") {
  std::atomic<int> left{2 * kPoolSlots};
  nested_unit(&left, 0, 0, 0);
  CHECK(left == 0);
  CHECK(runs_right(kThreads, 3, 5, 5));
}

TEST_CASE("thread pool: a call returns while threads that came for it have claimed nothing") {
  REQUIRE(runs_right(kThreads, 4, 2, 4));
  // Late threads of the calls before would stop, too.
  for (const apl_pool_slot& slot : apl_pool.slots)
    while (__atomic_load_n(&slot.users, __ATOMIC_ACQUIRE) != 0) std::this_thread::yield();
  gate.stopping = true;
  const int passed = gate.passed;
  struct Call {
    Phases phases{6, 3, 5, kThreads};
    bool waited = false;
  };
  auto call = std::make_unique<Call>();
  apl_work work = call->phases.work();
  work.job = call.get();
  // The caller's first unit waits until threads have come and stopped.
  work.body = [](void* job, std::int64_t phase, std::int64_t unit, std::int64_t me) {
    auto* self = static_cast<Call*>(job);
    while (!self->waited && gate.stopped < kThreads - 1) std::this_thread::yield();
    self->waited = true;
    if (me != 0) ++self->phases.strangers;
    self->phases.unit(phase, unit, me);
  };
  apl_pool_run(kThreads, &work);
  CHECK(gate.stopped == kThreads - 1);
  CHECK(call->phases.are_right());
  // What they came for is gone, and others' calls are done meanwhile.
  call.reset();
  CHECK(runs_right(kThreads, 3, 5, 5));
  gate.stopping = false;
  while (gate.passed < passed + kThreads - 1) std::this_thread::yield();
  CHECK(runs_right(kThreads, 3, 5, 5));
}

TEST_CASE("thread pool: a forked child has a pool of its own") {
  REQUIRE(runs_right(kThreads, 4, 2, 4));
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);  // a child that waits for threads of its parent ends by a signal
    const bool right = runs_right(kThreads, 4, 3, 40);
    _exit(right && threads_of_process() == static_cast<std::size_t>(kThreads) ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(runs_right(kThreads, 4, 2, 4));
}

TEST_CASE("thread pool: threads end before the library that they run in is unloaded") {
  auto made = apl::TemporaryFolder::make("/tmp");
  REQUIRE(made);
  const std::string folder = made->path(), source = folder + "/pool.c", object = folder + "/pool.so";
  std::ofstream(source) << R"(#define _GNU_SOURCE
#include "runtime/backends/thread_pool.h"
static void count(void* job, int64_t phase, int64_t unit, int64_t me) {
  (void)phase, (void)unit, (void)me;
  __atomic_add_fetch((int*)job, 1, __ATOMIC_RELAXED);
}
int run(void) {
  int done = 0;
  const struct apl_work work = {count, &done, 1, {100, 0}};
  apl_pool_run(4, &work);
  return done;
}
)";
  const auto compiled =
      apl::run_tool({"cc", "-shared", "-fPIC", "-O1", "-pthread", "-I", APL_SOURCE_DIR, source, "-o", object});
  REQUIRE(compiled);
  const std::size_t before = threads_of_process();
  for (int time = 0; time < 10; ++time) {
    void* const handle = dlopen(object.c_str(), RTLD_NOW | RTLD_LOCAL);
    REQUIRE(handle);
    void* const symbol = dlsym(handle, "run");
    REQUIRE(symbol);
    const auto run = reinterpret_cast<int (*)()>(symbol);
    CHECK(run() == 100);
    CHECK(threads_of_process() == before + 3);
    dlclose(handle);
    CHECK(dlopen(object.c_str(), RTLD_NOW | RTLD_NOLOAD) == nullptr);
    // The system lists a thread for a moment longer than its code runs.
    for (int tries = 0; threads_of_process() != before && tries < 10000; ++tries)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    CHECK(threads_of_process() == before);
  }
}
