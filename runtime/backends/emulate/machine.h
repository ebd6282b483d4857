// The emulated device: runs a launch block by block, and stops at the first fault.
//
// A block runs in intervals: every thread that can run does so, in a random order, until it waits at a barrier or
// ends; then the next interval begins. Within an interval threads are unordered, and the shadow memory makes any
// conflict a fault whatever the order was: what passes here is right in every schedule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "runtime/backends/context.h"
#include "runtime/backends/emulate/fault.h"
#include "runtime/backends/emulate/memory.h"
#include "runtime/backends/emulate/team.h"

namespace apl::emulate {

// The struct apl_emulator of device.h.
struct Table {
  void* self;
  const std::int32_t* thread;
  const std::int64_t* block;
  const std::int32_t* threads;
  unsigned char* shared_memory;
  void (*barrier)(void*, int line);
  void (*global)(void*, const void* base, std::int64_t index, int bytes, int write, int line);
  void (*shared)(void*, std::int64_t offset, std::int64_t count, std::int64_t index, int bytes, int write, int line);
  void (*copy)(void*, std::int64_t offset, std::int64_t count, std::int64_t index, const void* base, std::int64_t from,
               int elements, int bytes, int line);
  void (*commit)(void*);
  void (*wait)(void*, int groups, int line);
  void (*warp_barrier)(void*, int line);
  void (*scatter)(void*, int location, int count, const std::int64_t* at, int line);
};

class Machine {
 public:
  // `most_shared_bytes`: that a block may have.
  Machine(std::uint64_t seed, std::int32_t most_shared_bytes) : random_(seed), most_shared_bytes_(most_shared_bytes) {}
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  Memory memory;
  apl_failure failure{};  // while it holds a failure nothing more is run, and faults are not reported

  using Kernel = void (*)(void** args);
  using Attach = void (*)(const Table*);
  // How many threads a warp has, of the text's target.
  using Warp = int (*)();
  // bug.internal if the device cannot run such a launch.
  Result<std::optional<Fault>> run(const apl_launch& launch, Kernel kernel, Attach attach, Warp warp);

 private:
  void run_block(const apl_launch& launch);
  std::vector<int> released();  // threads that go on after all that could have run
  Moment moment(int line) const { return {launch_start_, block_start_, now_, thread_, line, since_, warp_}; }
  Actor actor(Stamp stamp) const;

  // A copy to shared memory under way.
  struct Copy {
    std::int64_t offset, count, index;
    const unsigned char* from;  // null: zeros
    int elements, bytes;
    int group;  // how many its thread had closed before
  };
  struct Thread {
    int barrier_line = 0;
    bool of_warp = false;  // that barrier
    int groups = 0;        // closed so far
    std::vector<Copy> copies;
  };

  // What kernels call. A fault leaves the fiber for good.
  void barrier(int line, bool of_warp);
  void global(const void* base, std::int64_t index, int bytes, Use use, int line);
  void shared(std::int64_t offset, std::int64_t count, std::int64_t index, int bytes, Use use, int line);
  void copy(Copy copy, const void* base, std::int64_t from, int line);
  void wait(int groups, int line);
  void scatter(int location, int count, const std::int64_t* at, int line);
  bool scattered_twice(Use use, int line, const Conflict& conflict) const;
  static Table table_of(Machine& machine);
  [[noreturn]] void stop(Fault fault);
  [[noreturn]] void stop(Use use, int line, std::string array, std::int64_t index, const Conflict& conflict,
                         std::int64_t count);

  std::mt19937_64 random_;
  Team team_;
  std::vector<Thread> thread_states_;
  std::vector<std::max_align_t> shared_memory_;
  Shadow shared_shadow_;
  std::uint64_t now_ = kHostInterval, launch_start_ = 0, block_start_ = 0;
  std::uint64_t since_ = 0;  // the first interval since a barrier of the whole block
  struct BlockStart {
    std::uint64_t interval;
    std::int64_t block;
  };
  std::vector<BlockStart> block_starts_;  // of this launch: to name the block of a stamp
  std::int64_t block_ = 0;
  std::int32_t thread_ = 0, threads_ = 0;
  const std::int32_t most_shared_bytes_;
  int warp_ = 1;
  std::optional<Fault> fault_;
  apl_failure scatter_{};  // what the scatter's write under way says if another thread wrote something else there
  int scatter_line_ = 0;
};

}  // namespace apl::emulate
