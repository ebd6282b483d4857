// What came before, of the accesses of other blocks: happens-before clocks for blocks that run at the same time.
//
// A fence of a thread orders what it did and knew before it; an atomic access carries that from one thread to another
// when a fence stands before the store and behind the load. Barriers make what one thread knows known to its block or
// warp.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/backends/emulate/shadow.h"

namespace apl::emulate {

class Clock {
 public:
  // Of a block: everything before interval `all`, and what one thread or warp did before interval `until`.
  void note(std::size_t block, std::uint64_t all);
  void note_thread(std::size_t block, int thread, std::uint64_t until) { note(block, thread, until); }
  void note_warp(std::size_t block, int warp, std::uint64_t until) { note(block, kMaxThreads + warp, until); }
  void join(const Clock& other);
  void clear() { blocks_.clear(); }
  bool empty() const { return blocks_.empty(); }

  // Whether the access of a thread of that block came before.
  bool knows(std::size_t block, Stamp stamp, int warp_size) const;

 private:
  struct Known {
    std::uint64_t all = 0;
    std::vector<std::pair<int, std::uint64_t>> some;  // threads, and behind them warps
  };
  void note(std::size_t block, int who, std::uint64_t until);

  std::vector<Known> blocks_;  // by the order in which blocks started
};

}  // namespace apl::emulate
