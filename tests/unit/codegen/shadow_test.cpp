#include "runtime/backends/emulate/shadow.h"

#include <doctest/doctest.h>

#include <random>
#include <vector>

namespace {

using namespace apl::emulate;

// Every access ever made, kept and searched: what Shadow must find with five stamps an element.
class History {
 public:
  explicit History(std::int64_t bytes) : bytes_(static_cast<std::size_t>(bytes)) {}

  std::optional<FaultKind> access(const Moment& moment, std::int64_t offset, int size, Use use) {
    for (std::int64_t at = offset; at < offset + size; ++at)
      for (const Event& event : bytes_[static_cast<std::size_t>(at)])
        if ((use != Use::read || event.use != Use::read) && moment.races_with(event.moment.stamp(true)))
          return FaultKind::race;
    if (use == Use::read)
      for (std::int64_t at = offset; at < offset + size; ++at) {
        std::optional<Use> last;
        for (const Event& event : bytes_[static_cast<std::size_t>(at)])
          if (event.use != Use::read) last = event.use;
        if (!last) return FaultKind::undefined;
        if (*last == Use::begin_copy) return FaultKind::copy_pending;
      }
    for (std::int64_t at = offset; at < offset + size; ++at)
      bytes_[static_cast<std::size_t>(at)].push_back({moment, use});
    return std::nullopt;
  }

 private:
  struct Event {
    Moment moment;
    Use use;
  };
  std::vector<std::vector<Event>> bytes_;
};

}  // namespace

TEST_CASE("shadow: finds the fault that the full history shows, at the same access") {
  for (std::uint32_t seed = 1; seed <= 3000; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    constexpr std::int64_t kBytes = 16;
    Shadow shadow;
    shadow.reset(kBytes, false);
    History history(kBytes);
    Moment moment{2, 2, 2, 0, 1};
    const bool mixed_sizes = below(2) == 0;
    const int usual_size = 1 << below(4);
    for (int step = 0; step < 60; ++step) {
      const int what = below(12);
      if (what == 0) moment.launch = moment.block = ++moment.now;
      if (what == 1) moment.block = ++moment.now;
      if (what == 2) ++moment.now;
      if (what <= 2) moment.since = moment.now;
      if (what == 3) ++moment.now;  // a barrier of the warps
      moment.thread = below(2) * moment.warp + below(3);
      const int size = mixed_sizes ? 1 << below(4) : usual_size;
      const std::int64_t offset = below(static_cast<int>(kBytes) / size) * size;
      const Use use = below(4) == 0 ? Use::write : below(20) == 0 ? Use::begin_copy : Use::read;
      const auto expected = history.access(moment, offset, size, use);
      const auto found = shadow.access(moment, offset, size, use);
      REQUIRE(found.has_value() == expected.has_value());
      if (!expected) continue;
      // With several faulty bytes in one access either may be named.
      if (!mixed_sizes) CHECK(found->kind == *expected);
      // The machine stops at any fault. After a read of something undefined the sequence can go on here, unless parts
      // of the access were noted before its fault was met.
      if (mixed_sizes || *expected == FaultKind::race) break;
    }
  }
}

TEST_CASE("shadow: ranges that the host defines and copies") {
  Shadow a, b;
  a.reset(64, false);
  b.reset(100, false);
  CHECK(a.first_undefined(0, 64) == 0);
  a.define(3, 9);
  CHECK_FALSE(a.first_undefined(3, 9));
  CHECK(a.first_undefined(0, 12) == 0);
  CHECK(a.first_undefined(3, 10) == 12);
  b.copy(50, a, 2, 12);
  CHECK(b.first_undefined(51, 9) == std::nullopt);
  CHECK(b.first_undefined(50, 5) == 50);
  CHECK(b.first_undefined(51, 20) == 60);
  a.define(0, 64);
  CHECK_FALSE(a.first_undefined(0, 64));
  b.copy(0, a, 0, 64);
  CHECK_FALSE(b.first_undefined(0, 64));
  CHECK_FALSE(b.first_undefined(0, 0));
}
