// Blocks that run at the same time, and what orders their accesses.
#include <algorithm>

#include "runtime/backends/emulate/machine.h"

namespace apl::emulate {

namespace {

// Blocks that are there at the same time, at most.
constexpr std::size_t kMostTogether = 8;
// A thread that has looked so often again, while nothing changed, waits for a change.
constexpr int kInVain = 200;

}  // namespace

// From the first fence or atomic access on. Blocks that ended before posted nothing.
void Machine::run_together() {
  if (most_together_ > 1) return;
  most_together_ = 2 + random_() % (kMostTogether - 1);
  std::size_t order = 0;
  for (std::uint64_t interval = launch_start_; interval <= now_; ++interval) {
    while (order + 1 < block_starts_.size() && block_starts_[order + 1].interval <= interval) ++order;
    owners_.push_back(static_cast<std::uint32_t>(order));
  }
}

std::size_t Machine::owner(std::uint64_t interval) const {
  if (most_together_ > 1) return interval < launch_start_ ? 0 : owners_[interval - launch_start_];
  const auto after = std::ranges::upper_bound(block_starts_, interval, {}, &BlockStart::interval);
  return after == block_starts_.begin() ? 0 : static_cast<std::size_t>(after - block_starts_.begin() - 1);
}

bool Machine::is_known(Stamp other) const {
  const std::size_t block = owner(other.interval);
  return running_->known.knows(block, other, warp_) ||
         running_->threads[static_cast<std::size_t>(thread_)].known.knows(block, other, warp_);
}

// What one of them knew before a barrier all know behind it. `warp`: -1: all threads of the block.
void Machine::note_barrier(const std::vector<int>& threads, int warp) {
  Block& block = *running_;
  if (warp < 0) {
    std::ranges::fill(block.warp_since, now_);
  } else {
    block.warp_since[static_cast<std::size_t>(warp)] = now_;
  }
  if (most_together_ == 1) return;
  const auto state_of = [&](int thread) -> Thread& { return block.threads[static_cast<std::size_t>(thread)]; };
  if (std::ranges::all_of(threads, [&](int thread) { return state_of(thread).known.empty(); })) return;
  Clock all;
  for (const int thread : threads) all.join(state_of(thread).known);
  if (warp < 0) block.known.join(all);
  for (const int thread : threads) {
    if (warp < 0) {
      state_of(thread).known.clear();
    } else {
      state_of(thread).known = all;
    }
  }
}

void Machine::fence(int line) {
  (void)line;
  run_together();
  Thread& thread = self();
  thread.known.join(thread.seen);
  thread.seen.clear();
  thread.released = running_->known;
  thread.released.join(thread.known);
  const int warp = thread_ / warp_;
  thread.released.note(running_->order, running_->since);
  thread.released.note_warp(running_->order, warp, running_->warp_since[static_cast<std::size_t>(warp)]);
  thread.released.note_thread(running_->order, thread_, now_ + 1);
  next_interval();  // of which others know nothing
}

// Another block may run before each of them. A thread that looks goes on later, so that others can.
void Machine::atomic(const void* base, std::int64_t index, int bytes, Use use, int line) {
  run_together();
  if (use == Use::look || random_() % 2 == 0) suspend(Wait::for_others, line);
  global(base, index, bytes, use, line);
  const void* at = static_cast<const unsigned char*>(base) + index * bytes;
  Thread& thread = self();
  Clock& posted = posted_[at];
  if (use != Use::post) thread.seen.join(posted);
  if (use == Use::look) return look_again(at);
  if (use == Use::post) posted.clear();
  posted.join(thread.released);
  ++changes_;
}

void Machine::look_again(const void* at) {
  Thread& thread = self();
  if (thread.looked != changes_) {
    thread.looked = changes_;
    thread.looked_at.clear();
    thread.again = 0;
  }
  if (std::ranges::find(thread.looked_at, at) == thread.looked_at.end()) {
    thread.looked_at.push_back(at);
  } else if (++thread.again >= kInVain) {
    looks_in_vain_ = true;
  }
}

// Nothing will change any more if each block has a thread that looks again and again. Its others would have come to a
// barrier, have written something, or have ended since.
void Machine::find_deadlock() {
  looks_in_vain_ = false;
  Fault fault{FaultKind::deadlock};
  for (const auto& block : blocks_) {
    const auto waits = std::ranges::find_if(
        block->threads, [&](const Thread& thread) { return thread.looked == changes_ && thread.again >= kInVain; });
    if (waits == block->threads.end()) return;
    fault.actor = {block->number, static_cast<int>(waits - block->threads.begin()), waits->barrier_line};
  }
  fault.count = static_cast<std::int64_t>(blocks_.size());
  fault_ = fault;
}

}  // namespace apl::emulate
