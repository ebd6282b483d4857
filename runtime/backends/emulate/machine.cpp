#include "runtime/backends/emulate/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

namespace apl::emulate {

namespace {

// What current devices take.
constexpr std::int64_t kMaxBlocks = INT32_MAX;
// What a thread shows the others of its warp (device/warp.h).
constexpr std::size_t kLaneBytes = 8 * sizeof(std::uint32_t);

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

Machine::Machine(std::uint64_t seed, std::int32_t most_shared_bytes)
    : random_(seed), most_shared_bytes_(most_shared_bytes) {
  fill_table();
}

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
  if (launch.blocks <= 0) return std::optional<Fault>();
  const bool is_behind = failure.code != APL_OK;
  threads_ = launch.threads;
  launch_start_ = ++now_;
  block_starts_.clear();
  owners_.clear();
  posted_.clear();
  most_together_ = 1;
  attach(&table_);
  Permutation order(launch.blocks, random_);
  std::int64_t started = 0;
  bool has_memory = true;
  while (!fault_ && has_memory) {
    const bool goes_on =
        is_behind || failure.code == APL_OK || most_together_ > 1;  // others may wait for what is still to come
    while (goes_on && has_memory && blocks_.size() < most_together_ && started < launch.blocks) {
      has_memory = start_block(order.next(), launch, kernel);
      ++started;
    }
    if (blocks_.empty() || !has_memory) break;
    const std::size_t next = blocks_.size() == 1 ? 0 : random_() % blocks_.size();
    run_interval(*blocks_[next]);
    if (!blocks_[next]->running.empty()) continue;
    idle_.push_back(std::move(blocks_[next]));
    blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(next));
  }
  for (auto& block : blocks_) idle_.push_back(std::move(block));
  blocks_.clear();
  attach(nullptr);
  if (!has_memory) return refuse("no memory for its threads' stacks");
  if (fault_ && !counts(fault_->kind)) fault_.reset();
  return std::move(fault_);
}

bool Machine::start_block(std::int64_t number, const apl_launch& launch, Kernel kernel) {
  if (idle_.empty()) idle_.push_back(std::make_unique<Block>());
  Block& block = *idle_.back();
  const auto threads = static_cast<std::size_t>(launch.threads);
  if (!block.team.start(launch.threads, [kernel, args = launch.args] { kernel(args); })) return false;
  block.number = number;
  block.order = block_starts_.size();
  // One unit more than asked: an array without elements may start at the end.
  block.shared_memory.resize(static_cast<std::size_t>(launch.shared_bytes) / sizeof(std::max_align_t) + 1);
  constexpr int kPoison = 0xa5;
  std::memset(block.shared_memory.data(), kPoison, block.shared_memory.size() * sizeof(std::max_align_t));
  block.shared_shadow.reset(launch.shared_bytes, false);
  block.lanes.resize(threads * kLaneBytes);
  block.threads.assign(threads, {});
  block.running.resize(threads);
  std::iota(block.running.begin(), block.running.end(), 0);
  block.known.clear();
  running_ = &block;
  next_interval();
  block.start = block.since = now_;
  block.warp_since.assign((threads + static_cast<std::size_t>(warp_) - 1) / static_cast<std::size_t>(warp_), now_);
  block_starts_.push_back({now_, number});
  ++changes_;
  blocks_.push_back(std::move(idle_.back()));
  idle_.pop_back();
  return true;
}

void Machine::next_interval() {
  ++now_;
  if (most_together_ > 1) owners_.push_back(static_cast<std::uint32_t>(running_->order));
}

void Machine::run_interval(Block& block) {
  running_ = &block;
  block_ = block.number;
  table_.shared_memory = reinterpret_cast<unsigned char*>(block.shared_memory.data());
  table_.lanes = block.lanes.data();
  if (most_together_ > 1) next_interval();  // others' may have been since its last
  std::shuffle(block.running.begin(), block.running.end(), random_);
  for (const int thread : block.running) {
    thread_ = thread;
    reads_ = 0;
    block.team.resume(thread);
    if (fault_) return;
  }
  next_interval();
  block.running = released();
  if (looks_in_vain_ && !fault_) find_deadlock();
}

Moment Machine::moment(int line) const {
  Moment moment{launch_start_, running_->start, now_, thread_, line, running_->since, warp_};
  if (most_together_ == 1) return moment;
  moment.order = this;
  moment.warp_since = running_->warp_since[static_cast<std::size_t>(thread_ / warp_)];
  return moment;
}

// Threads that look at what others publish go on alone. Warps do so, too, as long as one waits for its own threads;
// then all threads of the block wait at one barrier, or all have ended. A thread that left because of a failed check
// may be missing: the failure is what the user hears of.
std::vector<int> Machine::released() {
  Block& block = *running_;
  auto state_of = [&](int thread) -> const Thread& { return block.threads[static_cast<std::size_t>(thread)]; };
  auto waits = [&](int thread) { return block.team.state(thread) == Team::State::waiting; };
  // Threads from `begin` to `end`, which all must wait where `first` does.
  auto gather = [&](int begin, int end, int first) {
    std::vector<int> threads;
    for (int thread = begin; thread < end && !fault_; ++thread) {
      threads.push_back(thread);
      const Thread& state = state_of(thread);
      if (waits(thread) && state.wait == state_of(first).wait && state.barrier_line == state_of(first).barrier_line)
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
    bool goes_on = false;
    for (int thread = warp; thread < end; ++thread) {
      if (!waits(thread)) continue;
      if (first < 0) first = thread;
      if (state_of(thread).wait == Wait::for_others) {
        running.push_back(thread);
        goes_on = true;
      }
      if (waiting < 0 && state_of(thread).wait == Wait::for_warp) waiting = thread;
    }
    if (waiting < 0 || goes_on) continue;
    const std::vector<int> threads = gather(warp, end, waiting);
    running.insert(running.end(), threads.begin(), threads.end());
    note_barrier(threads, warp / warp_);
  }
  if (fault_ || !running.empty()) return running;
  ++changes_;
  if (first < 0) return running;
  block.since = now_;
  running = gather(0, threads_, first);
  note_barrier(running, -1);
  return running;
}

Actor Machine::actor(Stamp stamp) const {
  const std::size_t order = owner(stamp.interval);
  const std::int64_t block = order < block_starts_.size() ? block_starts_[order].block : 0;
  return {block, static_cast<int>(stamp.thread), static_cast<int>(stamp.line)};
}

bool Machine::counts(FaultKind kind) const {
  return failure.code == APL_OK || kind == FaultKind::out_of_bounds || kind == FaultKind::no_array;
}

void Machine::stop(Fault fault) {
  fault_ = std::move(fault);
  for (;;) running_->team.suspend();  // run() drops the fiber
}

void Machine::suspend(Wait wait, int line) {
  Thread& thread = self();
  thread.barrier_line = line;
  thread.wait = wait;
  running_->team.suspend();
}

}  // namespace apl::emulate
