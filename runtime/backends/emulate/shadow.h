// Shadow memory: who touched an element, between which barriers, and was it ever written.
//
// Time is a count of *intervals*: a new one begins with every launch, every block and every barrier, be it of the block
// or of its warps. Blocks run one after the other, so the intervals of a launch, and of a block, are a range. Two
// accesses by different threads are ordered only if a barrier of their block, or of the warp of both, or the end of a
// launch, lies between.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace apl::emulate {

// When and by whom; 8 bytes, as there are five for every element.
struct Stamp {
  std::uint64_t interval : 33;   // 0: never
  std::uint64_t is_defined : 1;  // of writers: the element holds a value
  std::uint64_t thread : 10;
  std::uint64_t is_fold : 1;  // an atomic step, which orders itself with others of its kind
  std::uint64_t line : 19;
};
inline constexpr Stamp kNever{0, 0, 0, 0, 0};
inline constexpr std::uint64_t kHostInterval = 1;  // of what the host wrote; launches come later
inline constexpr Stamp kHost{kHostInterval, 1, 0, 0, 0};
inline constexpr int kMaxThreads = 1024;

// Blocks that run at the same time, as the running thread sees them.
class Order {
 public:
  virtual bool is_own(Stamp other) const = 0;    // of its own block
  virtual bool is_known(Stamp other) const = 0;  // of another block: whether it came before

 protected:
  ~Order() = default;
};

// The present of the running thread.
struct Moment {
  std::uint64_t launch = 0;  // the first interval of this launch
  std::uint64_t block = 0;   // the first interval of this block
  std::uint64_t now = 0;
  int thread = 0;
  int line = 0;
  std::uint64_t since = 0;  // the first interval since a barrier of the block; 0: this one
  int warp = 32;            // threads of a warp
  // Of blocks that run at the same time: how they are ordered, and the first interval since a barrier of the warp.
  const Order* order = nullptr;
  std::uint64_t warp_since = 0;

  bool same_warp(Stamp other) const { return static_cast<int>(other.thread) / warp == thread / warp; }
  // Whether no barrier of the block came after it.
  bool is_recent(Stamp other) const { return other.interval >= (since == 0 ? now : since); }

  Stamp stamp(bool is_defined, bool is_fold = false) const;
  // Whether nothing orders `other` before now.
  bool races_with(Stamp other) const {
    if (other.interval < launch) return false;
    if (order == nullptr ? other.interval < block : !order->is_own(other))
      return order == nullptr || !order->is_known(other);
    if (static_cast<int>(other.thread) == thread) return false;
    if (!same_warp(other)) return is_recent(other);
    return order == nullptr ? other.interval == now : other.interval >= warp_since;
  }
};

// begin_copy: an asynchronous write, whose value is not there yet; fold: an atomic step that reads and writes.
// replace, repeat: writes of a scatter, of another value than is there and of the same. Threads may write the same.
// look, post: atomic reads and writes, of what blocks publish.
enum class Use { read, write, begin_copy, fold, replace, repeat, look, post };
inline bool is_write(Use use) { return use != Use::read && use != Use::look; }

enum class FaultKind {
  race,
  undefined,
  copy_pending,
  out_of_bounds,
  no_array,
  misaligned,
  divergence,
  deadlock,
  no_memory
};

struct Conflict {
  FaultKind kind{};
  Stamp other = kNever;  // of a race
  bool other_writes = false;
};

// A range of bytes, watched in granules: the largest unit that every access so far was made of.
class Shadow {
 public:
  // `is_defined`: whether its bytes hold values.
  void reset(std::int64_t bytes, bool is_defined);
  std::int64_t bytes() const { return bytes_; }

  // Both in bytes, inside the range, `size` a power of two and `offset` a multiple of it.
  std::optional<Conflict> access(const Moment& moment, std::int64_t offset, int size, Use use);

  // What the host did, between launches; any offset and size inside the range.
  void define(std::int64_t offset, std::int64_t size);
  void copy(std::int64_t offset, const Shadow& from, std::int64_t from_offset, std::int64_t size);
  std::optional<std::int64_t> first_undefined(std::int64_t offset, std::int64_t size) const;

 private:
  // One granule's history. Its five stamps are enough to find every race:
  // - A write by another block of this launch is a race at once, so `writer` hides only writes of this block; and of
  //   these only the ones since the block's barrier matter, which are by one warp, and by one thread an interval, or
  //   there was a race.
  // - If any other block of this launch read the granule, the first reader did, for blocks run one after the other.
  // - If any other warp read it since the block's barrier, `reader` or `far_reader` (of a different warp) is in another
  //   warp than the running thread. If its own warp alone did, and another thread did in this interval, `reader` or
  //   `other_reader` (a different thread of that warp and interval) is another thread.
  struct Granule {
    Stamp writer = kNever;
    Stamp first_reader = kNever;  // of the launch
    Stamp reader = kNever, other_reader = kNever, far_reader = kNever;
  };

  // What else nothing orders: readers for which a granule has no stamp, and defined writes that the last one is not
  // ordered behind. Readers that later ones cover are dropped when there are enough, so that a read costs no search.
  static constexpr std::size_t kFewReaders = 8;
  struct Others {
    std::vector<Stamp> writers, readers;
    std::size_t enough = kFewReaders;
  };

  std::optional<Conflict> touch(Granule& granule, const Moment& moment, Use use);
  // The same where blocks run at the same time: the stamps of readers are any four, all others that count are kept
  // beside the granule, so that each access is held against all that nothing orders.
  std::optional<Conflict> touch_together(std::size_t at, const Moment& moment, Use use);
  void refine(int shift);  // to granules of 1 << shift bytes or less
  static int common_shift(std::int64_t offset, std::int64_t size);

  std::int64_t bytes_ = 0;
  bool is_defined_ = false;  // while there are no granules
  int shift_ = 0;
  std::vector<Granule> granules_;                   // empty until the first access that needs them
  std::unordered_map<std::size_t, Others> others_;  // by granule
  std::uint64_t launch_ = 0;                        // that they are of
};

}  // namespace apl::emulate
