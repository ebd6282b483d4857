#include "runtime/backends/emulate/clocks.h"

#include <algorithm>

namespace apl::emulate {

void Clock::note(std::size_t block, std::uint64_t all) {
  if (blocks_.size() <= block) blocks_.resize(block + 1);
  Known& known = blocks_[block];
  known.all = std::max(known.all, all);
  std::erase_if(known.some, [&](const auto& entry) { return entry.second <= known.all; });
}

void Clock::note(std::size_t block, int who, std::uint64_t until) {
  if (blocks_.size() <= block) blocks_.resize(block + 1);
  Known& known = blocks_[block];
  if (until <= known.all) return;
  const auto found = std::ranges::find(known.some, who, &std::pair<int, std::uint64_t>::first);
  if (found == known.some.end()) {
    known.some.emplace_back(who, until);
  } else {
    found->second = std::max(found->second, until);
  }
}

void Clock::join(const Clock& other) {
  for (std::size_t block = 0; block < other.blocks_.size(); ++block) {
    const Known& known = other.blocks_[block];
    if (known.all != 0) note(block, known.all);
    for (const auto& [who, until] : known.some) note(block, who, until);
  }
}

bool Clock::knows(std::size_t block, Stamp stamp, int warp_size) const {
  if (block >= blocks_.size()) return false;
  const Known& known = blocks_[block];
  if (stamp.interval < known.all) return true;
  const int thread = static_cast<int>(stamp.thread), warp = kMaxThreads + thread / warp_size;
  return std::ranges::any_of(known.some, [&](const auto& entry) {
    return (entry.first == thread || entry.first == warp) && stamp.interval < entry.second;
  });
}

}  // namespace apl::emulate
