#include "runtime/backends/emulate/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

namespace apl::emulate {

namespace {

// What current devices take.
constexpr std::int64_t kMaxBlocks = INT32_MAX;

// 0 .. count-1 in a random order that needs no table: steps of a number that has no divisor in common with `count`.
class Permutation {
 public:
  Permutation(std::int64_t count, std::mt19937_64& random) : count_(static_cast<std::uint64_t>(count)) {
    at_ = random() % count_;
    do step_ = random() % count_ + 1;
    while (std::gcd(step_, count_) != 1);
  }
  std::int64_t next() { return static_cast<std::int64_t>(at_ = (at_ + step_) % count_); }

 private:
  std::uint64_t count_, at_ = 0, step_ = 0;
};

}  // namespace

Result<std::optional<Fault>> Machine::run(const apl_launch& launch, Kernel kernel, Attach attach, Warp warp) {
  auto refuse = [&](std::string why) {
    return make_error(Code::bug_internal, {}, fmt::format("kernel {} cannot be launched: {}", launch.kernel, why));
  };
  if (launch.threads < 1 || launch.threads > kMaxThreads)
    return refuse(fmt::format("{} threads a block, {} at most", launch.threads, kMaxThreads));
  if (launch.shared_bytes < 0 || launch.shared_bytes > most_shared_bytes_)
    return refuse(fmt::format("{} bytes of shared memory, {} at most", launch.shared_bytes, most_shared_bytes_));
  if (launch.blocks > kMaxBlocks) return refuse(fmt::format("{} blocks, {} at most", launch.blocks, kMaxBlocks));
  warp_ = warp();
  fault_.reset();
  if (launch.blocks <= 0 || failure.code != APL_OK) return std::optional<Fault>();
  // One unit more than asked: an array without elements may start at the end.
  shared_memory_.resize(static_cast<std::size_t>(launch.shared_bytes) / sizeof(std::max_align_t) + 1);
  const Table table = table_of(*this);
  attach(&table);
  launch_start_ = ++now_;
  block_starts_.clear();
  Permutation order(launch.blocks, random_);
  for (std::int64_t n = 0; n < launch.blocks && !fault_ && failure.code == APL_OK; ++n) {
    block_ = order.next();
    if (!team_.start(launch.threads, [&] { kernel(launch.args); })) return refuse("no memory for its threads' stacks");
    run_block(launch);
  }
  attach(nullptr);
  if (failure.code != APL_OK) fault_.reset();
  return std::move(fault_);
}

void Machine::run_block(const apl_launch& launch) {
  block_start_ = since_ = ++now_;
  block_starts_.push_back({block_start_, block_});
  threads_ = launch.threads;
  constexpr int kPoison = 0xa5;
  std::memset(shared_memory_.data(), kPoison, shared_memory_.size() * sizeof(std::max_align_t));
  shared_shadow_.reset(launch.shared_bytes, false);
  thread_states_.assign(static_cast<std::size_t>(threads_), {});
  std::vector<int> running(static_cast<std::size_t>(threads_));
  std::iota(running.begin(), running.end(), 0);
  while (!running.empty()) {
    std::shuffle(running.begin(), running.end(), random_);
    for (int thread : running) {
      thread_ = thread;
      team_.resume(thread);
      if (fault_) return;
    }
    ++now_;
    running = released();
    if (fault_) return;
  }
}

// Warps go on alone as long as one waits for its own threads; then all threads of the block wait at one barrier, or all
// have ended. A thread that left because of a failed check may be missing: the failure is what the user hears of.
std::vector<int> Machine::released() {
  auto state_of = [&](int thread) -> const Thread& { return thread_states_[static_cast<std::size_t>(thread)]; };
  auto waits = [&](int thread) { return team_.state(thread) == Team::State::waiting; };
  // Threads from `begin` to `end`, which all must wait where `first` does.
  auto gather = [&](int begin, int end, int first) {
    std::vector<int> threads;
    for (int thread = begin; thread < end && !fault_; ++thread) {
      threads.push_back(thread);
      const Thread& state = state_of(thread);
      if (waits(thread) && state.of_warp == state_of(first).of_warp &&
          state.barrier_line == state_of(first).barrier_line)
        continue;
      fault_ = Fault{FaultKind::divergence};
      fault_->actor = {block_, first, state_of(first).barrier_line};
      fault_->other = Actor{block_, thread, waits(thread) ? state.barrier_line : 0};
    }
    return threads;
  };
  std::vector<int> running;
  int first = -1;  // that waits
  for (int warp = 0; warp < threads_; warp += warp_) {
    const int end = std::min(warp + warp_, threads_);
    int waiting = -1;  // at a barrier of the warp
    for (int thread = warp; thread < end; ++thread) {
      if (!waits(thread)) continue;
      if (first < 0) first = thread;
      if (waiting < 0 && state_of(thread).of_warp) waiting = thread;
    }
    if (waiting < 0) continue;
    const std::vector<int> threads = gather(warp, end, waiting);
    running.insert(running.end(), threads.begin(), threads.end());
  }
  if (fault_ || !running.empty() || first < 0) return running;
  since_ = now_;
  return gather(0, threads_, first);
}

Actor Machine::actor(Stamp stamp) const {
  auto after =
      std::upper_bound(block_starts_.begin(), block_starts_.end(), std::uint64_t{stamp.interval},
                       [](std::uint64_t interval, const BlockStart& start) { return interval < start.interval; });
  const std::int64_t block = after == block_starts_.begin() ? 0 : std::prev(after)->block;
  return {block, static_cast<int>(stamp.thread), static_cast<int>(stamp.line)};
}

void Machine::stop(Fault fault) {
  fault_ = std::move(fault);
  for (;;) team_.suspend();  // run() drops the fiber
}

void Machine::barrier(int line, bool of_warp) {
  Thread& thread = thread_states_[static_cast<std::size_t>(thread_)];
  thread.barrier_line = line;
  thread.of_warp = of_warp;
  team_.suspend();
}

}  // namespace apl::emulate
