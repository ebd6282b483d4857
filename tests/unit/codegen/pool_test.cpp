#include "runtime/backends/cuda/pool.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <vector>

namespace {

constexpr std::uint64_t kMebibyte = 1 << 20;

// A device of so many bytes whose addresses are numbers, with a pool over it. It finds blocks that are given back twice
// or without waiting for work.
struct SimulatedDevice {
  static constexpr int kNoMemory = 2, kFault = 700;

  std::uint64_t room = std::numeric_limits<std::uint64_t>::max();
  std::map<std::uint64_t, std::uint64_t> blocks;  // size by address
  std::uint64_t held = 0, most_held = 0, next = 1;
  int allocations = 0, refusals = 0, releases = 0, waits = 0, wrong = 0;
  int release_result = 0, wait_result = 0;
  bool has_waited = false;
  apl_pool pool{};

  explicit SimulatedDevice(bool is_direct = false) {
    pool.source = {this, allocate, release, wait, kNoMemory, is_direct};
  }
  SimulatedDevice(const SimulatedDevice&) = delete;
  SimulatedDevice& operator=(const SimulatedDevice&) = delete;
  ~SimulatedDevice() { apl_pool_close(&pool); }

  static SimulatedDevice& of(void* user) { return *static_cast<SimulatedDevice*>(user); }
  static int allocate(void* user, std::uint64_t bytes, std::uint64_t* data) {
    SimulatedDevice& device = of(user);
    if (bytes == 0) ++device.wrong;
    if (bytes > device.room - device.held) return ++device.refusals, kNoMemory;
    ++device.allocations;
    *data = device.next++ * 256;
    device.blocks.emplace(*data, bytes);
    device.held += bytes;
    device.most_held = std::max(device.most_held, device.held);
    device.has_waited = false;
    return 0;
  }
  static int release(void* user, std::uint64_t data) {
    SimulatedDevice& device = of(user);
    const auto block = device.blocks.find(data);
    if (block == device.blocks.end() || !(device.has_waited || device.pool.source.is_direct)) ++device.wrong;
    if (block == device.blocks.end()) return kFault;
    ++device.releases;
    device.held -= block->second;
    device.blocks.erase(block);
    return device.release_result;
  }
  static int wait(void* user) {
    SimulatedDevice& device = of(user);
    ++device.waits;
    device.has_waited = true;
    return device.wait_result;
  }

  // The address of a block that must be there.
  std::uint64_t take(std::int64_t bytes) {
    std::uint64_t data = 0;
    REQUIRE(apl_pool_allocate(&pool, bytes, &data) == 0);
    REQUIRE(blocks.contains(data));
    REQUIRE(blocks.at(data) >= static_cast<std::uint64_t>(bytes));
    return data;
  }
  int try_to_take(std::int64_t bytes) {
    std::uint64_t data = 0;
    return apl_pool_allocate(&pool, bytes, &data);
  }
  void give(std::uint64_t data) { REQUIRE(apl_pool_release(&pool, data) == 0); }
};

}  // namespace

TEST_CASE("pool: four size classes in each power of two, none less than 256 bytes") {
  const std::vector<std::uint64_t> first = {256, 320, 384, 448, 512, 640, 768, 896, 1024, 1280};
  for (std::size_t k = 0; k < first.size(); ++k) CHECK(apl_pool_class_bytes(static_cast<int>(k)) == first[k]);
  CHECK(apl_pool_class_of(APL_POOL_LARGEST) == APL_POOL_CLASSES - 1);
  CHECK(apl_pool_class_bytes(APL_POOL_CLASSES - 1) == APL_POOL_LARGEST);
  for (int k = 0; k < APL_POOL_CLASSES; ++k) {
    CAPTURE(k);
    CHECK(apl_pool_class_of(apl_pool_class_bytes(k)) == k);
    if (k + 1 < APL_POOL_CLASSES) CHECK(apl_pool_class_of(apl_pool_class_bytes(k) + 1) == k + 1);
  }
}

TEST_CASE("pool: a class is the smallest that has room, and wastes less than a quarter") {
  constexpr std::uint64_t kSeed = 1;
  CAPTURE(kSeed);
  std::mt19937_64 random(kSeed);
  for (int round = 0; round < 100'000; ++round) {
    const std::uint64_t bytes = random() >> (8 + random() % 56);
    CAPTURE(bytes);
    const int size_class = apl_pool_class_of(bytes);
    const std::uint64_t size = apl_pool_class_bytes(size_class);
    REQUIRE(size >= bytes);
    if (size_class > 0) REQUIRE(apl_pool_class_bytes(size_class - 1) < bytes);
    if (bytes > 256) REQUIRE(4 * (size - bytes) < bytes);
  }
}

TEST_CASE("pool: a released block serves the next allocation of its class, the newest first") {
  SimulatedDevice device;
  const std::uint64_t a = device.take(1000), b = device.take(900);
  CHECK(a != b);
  device.give(a);
  device.give(b);
  CHECK(device.take(1024) == b);
  CHECK(device.take(897) == a);
  CHECK(device.allocations == 2);
  device.give(a);
  const std::uint64_t other = device.take(896);  // of the class below
  CHECK(other != a);
  CHECK(device.allocations == 3);
  CHECK(device.waits == 0);
}

TEST_CASE("pool: bytes are counted as asked for, in use and held") {
  SimulatedDevice device;
  const std::uint64_t a = device.take(300), b = device.take(1);
  CHECK(device.pool.requested == 301);
  CHECK(device.pool.in_use == 320 + 256);
  device.give(a);
  CHECK(device.pool.requested == 1);
  CHECK(device.pool.in_use == 256);
  CHECK(device.pool.held == 320 + 256);
  CHECK(device.pool.peak == 320 + 256);
  device.give(b);
  CHECK(device.pool.requested == 0);
  CHECK(device.pool.in_use == 0);
  CHECK(apl_pool_clear(&device.pool) == 0);
  CHECK(device.pool.held == 0);
  CHECK(device.pool.peak == 0);
  CHECK(device.blocks.empty());
}

TEST_CASE("pool: results of varying sizes reuse each other's memory") {
  constexpr std::uint64_t kSeed = 2;
  CAPTURE(kSeed);
  std::mt19937_64 random(kSeed);
  SimulatedDevice device;
  // Ten of 10,000 results are in use at a time, each of up to 64 MiB, as of a filter that keeps more or less.
  std::vector<std::uint64_t> results(10);
  for (int round = 0; round < 10'000; ++round) {
    std::uint64_t& result = results[static_cast<std::size_t>(round) % results.size()];
    if (result != 0) device.give(result);
    result = device.take(static_cast<std::int64_t>(random() % (64 * kMebibyte)));
    REQUIRE(device.held == device.pool.held);
    REQUIRE(device.pool.held <= 2 * device.pool.peak);
  }
  CHECK(device.pool.peak <= 10 * 64 * kMebibyte);
  CHECK(device.most_held <= 2 * device.pool.peak);
  CHECK(device.allocations < 2'000);  // the others were reuse
  CHECK(device.wrong == 0);
}

TEST_CASE("pool: a repeated call allocates nothing, though nothing is in use between calls") {
  SimulatedDevice device;
  int after_first = 0;
  for (int call = 0; call < 20; ++call) {
    std::vector<std::uint64_t> temporaries;
    for (std::int64_t k = 1; k <= 12; ++k)
      temporaries.push_back(device.take(k * static_cast<std::int64_t>(37 * kMebibyte)));
    for (std::uint64_t data : temporaries) device.give(data);
    if (call == 0) after_first = device.allocations;
  }
  CHECK(after_first == 12);
  CHECK(device.allocations == after_first);
  CHECK(device.waits == 0);
}

TEST_CASE("pool: above the bound the blocks go back that have been free longest") {
  SimulatedDevice device;
  const std::int64_t size = 100 * static_cast<std::int64_t>(kMebibyte);
  // One block is in use at a time, each of its own class: two blocks of the largest may be held.
  std::vector<std::uint64_t> taken;
  for (std::int64_t k : {size, 2 * size, 4 * size, 8 * size}) {
    taken.push_back(device.take(k));
    device.give(taken.back());
    CHECK(device.pool.held <= 2 * device.pool.peak);
  }
  CHECK(device.releases == 0);  // 15 sizes, of 16
  device.give(device.take(3 * size));
  CHECK(device.releases == 2);
  CHECK_FALSE(device.blocks.contains(taken[0]));
  CHECK_FALSE(device.blocks.contains(taken[1]));
  CHECK(device.blocks.contains(taken[2]));
  CHECK(device.take(8 * size) == taken[3]);
  CHECK(device.wrong == 0);
}

TEST_CASE("pool: few bytes are never given back") {
  SimulatedDevice device;
  for (int k = 0; apl_pool_class_bytes(k) <= 4 * kMebibyte; ++k)
    device.give(device.take(static_cast<std::int64_t>(apl_pool_class_bytes(k))));
  CHECK(device.pool.held > 2 * device.pool.peak);
  CHECK(device.releases == 0);
}

TEST_CASE("pool: where the device has no memory left, free blocks go back and the allocation is tried again") {
  SimulatedDevice device;
  device.room = 100 * kMebibyte;
  const std::uint64_t kept = device.take(20 * static_cast<std::int64_t>(kMebibyte));
  device.give(device.take(30 * static_cast<std::int64_t>(kMebibyte)));
  device.give(device.take(40 * static_cast<std::int64_t>(kMebibyte)));
  const std::uint64_t large = device.take(80 * static_cast<std::int64_t>(kMebibyte));
  CHECK(device.refusals == 1);
  CHECK(device.releases == 2);
  CHECK(device.waits == 1);
  CHECK(device.blocks.contains(kept));
  CHECK(device.held == 100 * kMebibyte);
  device.give(large);
  CHECK(device.wrong == 0);
}

TEST_CASE("pool: where the class does not fit, the size that was asked for may") {
  SimulatedDevice device;
  device.room = 1000;
  const std::uint64_t a = device.take(900);  // of 1024
  CHECK(device.blocks.at(a) == 900);
  CHECK(device.refusals == 1);
  device.give(a);
  CHECK(device.take(899) == a);
  device.give(a);
  // It is too small for others of its class, and makes room for them.
  CHECK(device.take(901) != a);
  CHECK(device.releases == 1);
  CHECK(device.held == 901);
  CHECK(device.wrong == 0);
}

TEST_CASE("pool: an allocation that fails again is an error, and the pool goes on") {
  SimulatedDevice device;
  device.room = 2048;
  const std::uint64_t kept = device.take(1024);
  device.give(device.take(512));
  CHECK(device.try_to_take(4096) == SimulatedDevice::kNoMemory);
  CHECK(device.refusals == 2);
  CHECK(device.releases == 1);
  CHECK(device.pool.requested == 1024);
  CHECK(device.pool.in_use == 1024);
  CHECK(device.pool.held == 1024);
  // Nothing is free and the class has just this size: a second try would be the first again.
  CHECK(device.try_to_take(4096) == SimulatedDevice::kNoMemory);
  CHECK(device.refusals == 3);
  device.give(kept);
  CHECK(device.take(1000) == kept);
}

TEST_CASE("pool: errors of the device are passed on") {
  SimulatedDevice device;
  device.room = 2048;
  const std::uint64_t kept = device.take(256);
  device.give(device.take(1024));
  device.wait_result = SimulatedDevice::kFault;  // a kernel has gone wrong
  CHECK(device.try_to_take(2048) == SimulatedDevice::kFault);
  CHECK(apl_pool_clear(&device.pool) == SimulatedDevice::kFault);
  CHECK(device.pool.held == 256 + 1024);
  device.wait_result = 0;
  device.release_result = SimulatedDevice::kFault;
  CHECK(apl_pool_clear(&device.pool) == SimulatedDevice::kFault);
  CHECK(device.pool.held == 256);
  device.give(kept);
}

TEST_CASE("pool: zero bytes have an address of their own") {
  SimulatedDevice device;
  const std::uint64_t a = device.take(0), b = device.take(0);
  CHECK(a != 0);
  CHECK(a != b);
  CHECK(device.pool.requested == 0);
  device.give(a);
  CHECK(device.take(256) == a);
}

TEST_CASE("pool: sizes that no device has are out of memory at once") {
  SimulatedDevice device;
  const std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  const auto limit = static_cast<std::int64_t>(APL_POOL_LARGEST);
  for (std::int64_t bytes : {largest, largest - 1, largest / 2 + 1, limit + 1, std::int64_t{-1}, -largest - 1}) {
    CAPTURE(bytes);
    CHECK(device.try_to_take(bytes) == SimulatedDevice::kNoMemory);
  }
  CHECK(device.allocations + device.refusals == 0);
  std::vector<std::uint64_t> taken;
  for (int k = 0; k < 60; ++k) taken.push_back(device.take(limit - k));
  CHECK(device.pool.in_use == 60 * APL_POOL_LARGEST);
  for (std::uint64_t data : taken) device.give(data);
  CHECK(device.pool.held == 60 * APL_POOL_LARGEST);
  CHECK(apl_pool_clear(&device.pool) == 0);
  CHECK(device.held == 0);
}

TEST_CASE("pool: what is no block in use cannot be released") {
  SimulatedDevice device;
  CHECK(apl_pool_release(&device.pool, 256) == APL_POOL_UNKNOWN);
  const std::uint64_t a = device.take(100);
  CHECK(apl_pool_release(&device.pool, a + 1) == APL_POOL_UNKNOWN);
  device.give(a);
  CHECK(apl_pool_release(&device.pool, a) == APL_POOL_UNKNOWN);
  CHECK(apl_pool_clear(&device.pool) == 0);
  CHECK(apl_pool_release(&device.pool, a) == APL_POOL_UNKNOWN);
}

TEST_CASE("pool: a direct pool asks for exact sizes and gives blocks back when they are released") {
  SimulatedDevice device(true);
  const std::uint64_t a = device.take(1000), empty = device.take(0);
  CHECK(device.blocks.at(a) == 1000);
  CHECK(device.blocks.at(empty) == 1);
  device.give(a);
  CHECK_FALSE(device.blocks.contains(a));
  CHECK(device.take(1000) != a);
  CHECK(device.allocations == 3);
  CHECK(device.waits == 0);
  device.room = device.held;
  CHECK(device.try_to_take(1) == SimulatedDevice::kNoMemory);
  CHECK(device.refusals == 1);
}

TEST_CASE("pool: in the end everything has been given back, once") {
  constexpr std::uint64_t kSeed = 3;
  CAPTURE(kSeed);
  std::mt19937_64 random(kSeed);
  SimulatedDevice device;
  device.room = 2'000 * kMebibyte;
  std::vector<std::uint64_t> in_use;
  int errors = 0;
  for (int round = 0; round < 20'000; ++round) {
    if (random() % 1'000 == 0) REQUIRE(apl_pool_clear(&device.pool) == 0);
    if (!in_use.empty() && random() % 5 < 2) {
      std::swap(in_use[random() % in_use.size()], in_use.back());
      device.give(in_use.back());
      in_use.pop_back();
      continue;
    }
    std::uint64_t data = 0;
    const auto bytes = static_cast<std::int64_t>((random() % (32 * kMebibyte)) >> (random() % 24));
    const int result = apl_pool_allocate(&device.pool, bytes, &data);
    if (result != 0)
      ++errors;
    else
      in_use.push_back(data);
  }
  CHECK(errors > 0);
  CHECK(in_use.size() > 200);  // the table of blocks has grown
  CHECK(device.pool.held == device.held);
  std::sort(in_use.begin(), in_use.end());
  CHECK(std::adjacent_find(in_use.begin(), in_use.end()) == in_use.end());
  device.has_waited = true;  // as before a context is freed
  apl_pool_close(&device.pool);
  CHECK(device.blocks.empty());
  CHECK(device.wrong == 0);
  CHECK(device.pool.held == 0);
  CHECK(device.pool.source.user == &device);
}
