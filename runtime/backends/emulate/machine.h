// The emulated device: runs a launch block by block, and stops at the first fault.
//
// A block runs in intervals: every thread that can run does so, in a random order, until it waits at a barrier or
// ends; then the next interval begins. Within an interval threads are unordered, and the shadow memory makes any
// conflict a fault whatever the order was: what passes here is right in every schedule.
//
// Once a block looks at what another one publishes, blocks run at the same time: some of them are there, and a random
// one of these has its next interval; the next block starts, in a random order, when one has ended. So a block that
// started goes on, and that is all a kernel may rely on, as on devices. If all threads that are there look again and
// again at what nobody will change, that is a fault, too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/backends/context.h"
#include "runtime/backends/emulate/clocks.h"
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
  unsigned char* lanes;
  void (*fence)(void*, int line);
  void (*atomic)(void*, const void* base, std::int64_t index, int bytes, int write, int line);
};

class Machine final : Order {
 public:
  // `most_shared_bytes`: that a block may have.
  Machine(std::uint64_t seed, std::int32_t most_shared_bytes);
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  Memory memory;
  // Behind a failed check arrays may hold anything. Kernels run on all the same, as they do on devices, and of their
  // faults only those count that leave the arrays.
  apl_failure failure{};

  using Kernel = void (*)(void** args);
  using Attach = void (*)(const Table*);
  // How many threads a warp has, of the text's target.
  using Warp = int (*)();
  // bug.internal if the device cannot run such a launch.
  Result<std::optional<Fault>> run(const apl_launch& launch, Kernel kernel, Attach attach, Warp warp);

 private:
  // A copy to shared memory under way.
  struct Copy {
    std::int64_t offset, count, index;
    const unsigned char* from;  // null: zeros
    int elements, bytes;
    int group;  // how many its thread had closed before
  };
  enum class Wait { for_block, for_warp, for_others };
  struct Thread {
    int barrier_line = 0;
    Wait wait = Wait::for_block;
    int groups = 0;  // closed so far
    std::vector<Copy> copies;
    // Of blocks that run at the same time: what it knows beside its block, what the next fence lets it know, what its
    // last fence lets others know.
    Clock known, seen, released;
    // Where it looked since the last change of anything, and how often again.
    std::vector<const void*> looked_at;
    std::uint64_t looked = 0;
    int again = 0;
  };
  // A block that has started.
  struct Block {
    std::int64_t number = 0;
    std::size_t order = 0;  // how many had started before
    Team team;
    std::vector<Thread> threads;
    std::vector<int> running;
    std::vector<std::max_align_t> shared_memory;
    Shadow shared_shadow;
    std::vector<unsigned char> lanes;       // what the threads of warps show each other
    std::uint64_t start = 0, since = 0;     // its first interval, and the first since a barrier of all its threads
    std::vector<std::uint64_t> warp_since;  // the same of each warp's threads
    Clock known;
  };

  bool start_block(std::int64_t number, const apl_launch& launch, Kernel kernel);
  void run_interval(Block& block);
  void next_interval();
  std::vector<int> released();  // threads that go on after all that could have run
  Moment moment(int line) const;
  Actor actor(Stamp stamp) const;
  Thread& self() { return running_->threads[static_cast<std::size_t>(thread_)]; }

  // Blocks at the same time (machine_together.cpp).
  void run_together();
  std::size_t owner(std::uint64_t interval) const;
  bool is_own(Stamp other) const override { return owner(other.interval) == running_->order; }
  bool is_known(Stamp other) const override;
  void note_barrier(const std::vector<int>& threads, int warp);
  void find_deadlock();
  void look_again(const void* at);

  // What kernels call. A fault leaves the fiber for good.
  void suspend(Wait wait, int line);
  void fence(int line);
  void atomic(const void* base, std::int64_t index, int bytes, Use use, int line);
  void global(const void* base, std::int64_t index, int bytes, Use use, int line);
  void shared(std::int64_t offset, std::int64_t count, std::int64_t index, int bytes, Use use, int line);
  void copy(Copy copy, const void* base, std::int64_t from, int line);
  void wait(int groups, int line);
  void scatter(int location, int count, const std::int64_t* at, int line);
  bool scattered_twice(Use use, int line, const Conflict& conflict) const;
  void fill_table();
  bool counts(FaultKind kind) const;
  [[noreturn]] void stop(Fault fault);
  [[noreturn]] void stop(Use use, int line, std::string array, std::int64_t index, const Conflict& conflict,
                         std::int64_t count);

  std::mt19937_64 random_;
  Table table_{};
  std::vector<std::unique_ptr<Block>> blocks_, idle_;  // that run; that may be used again
  Block* running_ = nullptr;
  std::uint64_t now_ = kHostInterval, launch_start_ = 0;
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

  std::size_t most_together_ = 1;      // blocks
  std::vector<std::uint32_t> owners_;  // of the launch's intervals, where several run: by the order of their start
  std::uint64_t changes_ = 0;          // of anything that a thread may wait for
  int reads_ = 0;                      // of the running thread
  bool looks_in_vain_ = false;         // whether a thread did, often, in this interval
  std::unordered_map<const void*, Clock> posted_;  // by address: what an atomic write lets those know that look there
};

}  // namespace apl::emulate
