// The seeded random order in which the indices of a parallel construct run.
#pragma once

#include <cstdint>
#include <vector>

namespace apl::interpreter {

// splitmix64: small, and the same everywhere.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t x = state_ += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }
  // 0 <= result < bound; the bias of a bound below 2^32 is far too small to matter.
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }

 private:
  std::uint64_t state_;
};

// A permutation of 0, ..., count-1.
class IndexOrder {
 public:
  IndexOrder(std::int64_t count, Random& random);

  std::int64_t operator[](std::int64_t k) const {
    if (!shuffled_.empty()) return shuffled_[static_cast<std::size_t>(k)];
    return static_cast<std::int64_t>((static_cast<std::uint64_t>(k) * factor_ + start_) % count_);
  }

 private:
  std::uint64_t count_;
  std::vector<std::uint32_t> shuffled_;
  // Where a list of all indices would be too long: k -> (k*factor + start) mod count, factor prime to count.
  // No array has more than 2^48 elements, so with a factor below 2^16 nothing wraps.
  std::uint64_t factor_ = 1;
  std::uint64_t start_ = 0;
};

}  // namespace apl::interpreter
