// Kernels whose blocks wait for each other, in emulation: what is right passes in every order of blocks, and without
// each fence, with a look that is no atomic one, or with a wait for a block that need not have started, it is a fault.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "runtime/backends/emulate.h"
#include "tests/unit/codegen/kernels.h"

namespace waiting_blocks {
namespace {

using kernels::contains;
using kernels::Device;
using kernels::take;

// The last block to come adds up what all gave: its counter is 0 again then.
const std::string kLastBlock = R"(#include "device.h"
APL_KERNEL(32) void last_block(apl_in<int32_t> A, apl_out<int32_t> parts, apl_out<uint32_t> counter, apl_out<int32_t> C, int64_t blocks) {
  const apl_shared<int32_t> is_last = apl_shared_at<int32_t>(0, 1);
  const int t = apl_thread();
  int32_t sum = A(apl_block() * 32 + t);
  for (int step = 1; step < 32; step *= 2) sum += apl_shuffle_xor(sum, step);
  if (t == 0) {
    parts(apl_block()) = sum;
    apl_fence();  // the part is there
    is_last(0) = apl_ticket(counter, 0, (uint32_t)(blocks - 1)) == (uint32_t)(blocks - 1);
    apl_fence();  // all parts are there
  }
  apl_barrier();
  if (is_last(0) == 0) return;
  sum = 0;
  for (int64_t k = t; k < blocks; k += 32) sum += parts(k);
  for (int step = 1; step < 32; step *= 2) sum += apl_shuffle_xor(sum, step);
  if (t == 0) C(0) = sum;
}
APL_EXPORT(last_block)
)";

// Each block adds up what the one before gave and its own elements; which block is which says a ticket. The last to end
// clears the flags.
const std::string kChain = R"(#include "device.h"
APL_KERNEL(32) void chain(apl_in<int32_t> A, apl_out<int32_t> ends, apl_out<uint32_t> flags, apl_out<uint32_t> counters, int64_t blocks) {
  const apl_shared<int32_t> shared = apl_shared_at<int32_t>(0, 2);
  const int t = apl_thread();
  if (t == 0) shared(0) = (int32_t)apl_ticket(counters, 0, (uint32_t)(blocks - 1));
  apl_barrier();
  const int tile = shared(0);
  int32_t sum = A(tile * 32 + t);
  for (int step = 1; step < 32; step *= 2) sum += apl_shuffle_xor(sum, step);
  if (t == 0) {
    if (tile > 0) {
      while (apl_look(flags, tile - 1) == 0) {}
      apl_fence();  // its end is there
      sum += ends(tile - 1);
    }
    ends(tile) = sum;
    apl_fence();  // the end is there
    apl_post(flags, tile, 1u);
    apl_fence();  // nobody looks any more
    shared(1) = apl_ticket(counters, 1, (uint32_t)(blocks - 1)) == (uint32_t)(blocks - 1);
    apl_fence();  // nobody does
  }
  apl_barrier();
  if (shared(1) != 0)
    for (int64_t k = t; k < blocks; k += 32) flags(k) = 0;
}
APL_EXPORT(chain)
)";

std::vector<std::int32_t> elements(std::int64_t count) {
  std::vector<std::int32_t> result;
  for (std::int64_t k = 0; k < count; ++k) result.push_back(static_cast<std::int32_t>(k * 7 % 23));
  return result;
}

apl::Status run_last_block(Device& device, std::int64_t blocks) {
  const auto a = elements(blocks * 32);
  void* A = device.array(a, "A");
  void* parts = device.scratch<std::int32_t>(static_cast<std::size_t>(blocks), "parts");
  void* counter = device.array(std::vector<std::uint32_t>{0}, "counter");
  void* C = device.scratch<std::int32_t>(1, "C");
  for (int call = 0; call < 2; ++call) {
    if (auto ok = device.launch("last_block", blocks, 32, 16, A, parts, counter, C, blocks); !ok) return ok;
    std::int32_t sum = 0;
    for (const std::int32_t x : a) sum += x;
    CHECK(device.read<std::int32_t>(C, 1).front() == sum);
  }
  return apl::Unit{};
}

apl::Status run_chain(Device& device, std::int64_t blocks) {
  const auto a = elements(blocks * 32);
  void* A = device.array(a, "A");
  void* ends = device.scratch<std::int32_t>(static_cast<std::size_t>(blocks), "ends");
  void* flags = device.array(std::vector<std::uint32_t>(static_cast<std::size_t>(blocks)), "flags");
  void* counters = device.array(std::vector<std::uint32_t>{0, 0}, "counters");
  for (int call = 0; call < 2; ++call) {
    if (auto ok = device.launch("chain", blocks, 32, 16, A, ends, flags, counters, blocks); !ok) return ok;
    std::int32_t sum = 0;
    const auto got = device.read<std::int32_t>(ends, static_cast<std::size_t>(blocks));
    for (std::size_t k = 0; k < a.size(); ++k) {
      sum += a[k];
      if (k % 32 == 31) REQUIRE(got[k / 32] == sum);
    }
  }
  return apl::Unit{};
}

using Run = apl::Status (*)(Device&, std::int64_t);
void check_found(const std::string& text, Run run, std::int64_t blocks, const std::string& message) {
  Device device(apl::make_emulate_backend({}), text);
  for (int order = 0; order < 5; ++order) {
    const auto status = run(device, blocks);
    REQUIRE(!status);
    CHECK_MESSAGE(contains(status.error().message, message), status.error().message);
  }
}

}  // namespace

TEST_CASE("blocks that wait for each other: right in every order of blocks") {
  Device last(apl::make_emulate_backend({}), kLastBlock), chain(apl::make_emulate_backend({}), kChain);
  for (int order = 0; order < 20; ++order) {
    CAPTURE(order);
    for (const std::int64_t blocks : {1, 2, 7, 40}) {
      take(run_last_block(last, blocks));
      take(run_chain(chain, blocks));
    }
  }
}

TEST_CASE("blocks that wait for each other: each fence is needed") {
  check_found(kernels::replace(kLastBlock, "    apl_fence();  // the part is there\n"), run_last_block, 7,
              "race on element");
  check_found(kernels::replace(kLastBlock, "    apl_fence();  // all parts are there\n"), run_last_block, 7,
              "race on element");
  check_found(kernels::replace(kLastBlock, "  apl_barrier();\n"), run_last_block, 7, "element 0 of the shared array");
  for (const char* why : {"its end is there", "the end is there", "nobody looks any more", "nobody does"})
    for (const char* spaces : {"    ", "      "}) {
      const std::string fence = fmt::format("\n{}apl_fence();  // {}\n", spaces, why);
      if (contains(kChain, fence)) check_found(kernels::replace(kChain, fence, "\n"), run_chain, 7, "race on element");
    }
}

TEST_CASE("blocks that wait for each other: what they publish is written atomically") {
  check_found(kernels::replace(kChain, "apl_look(flags, tile - 1)", "flags(tile - 1)"), run_chain, 7,
              "race on element");
  check_found(kernels::replace(kChain, "apl_post(flags, tile, 1u)", "flags(tile) = 1u"), run_chain, 7,
              "race on element");
  // Published before it is there, though a fence stands between.
  check_found(kernels::replace(kernels::replace(kChain, "    ends(tile) = sum;\n"), "    apl_post(flags, tile, 1u);\n",
                               "    apl_post(flags, tile, 1u);\n    ends(tile) = sum;\n"),
              run_chain, 7, "element");
}

TEST_CASE("blocks that wait for each other: for a block that need not have started is an error") {
  const std::string text = kernels::replace(
      kernels::replace(kChain, "  if (t == 0) shared(0) = (int32_t)apl_ticket(counters, 0, (uint32_t)(blocks - 1));\n"),
      "const int tile = shared(0);", "const int tile = (int)apl_block();");
  check_found(text, run_chain, 40, "other blocks may start only when one of them has ended");
}

}  // namespace waiting_blocks
