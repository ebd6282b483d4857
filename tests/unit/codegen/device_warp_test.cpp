// What warps do together (device_warp.h), in emulation.
#include <doctest/doctest.h>

#include "runtime/backends/emulate.h"
#include "runtime/embed.h"
#include "tests/unit/codegen/kernels.h"

namespace {

using kernels::contains;
using kernels::Device;
using kernels::take;

Device emulated_warps(const std::string& kernels) {
  return {apl::make_emulate_backend({}), "#include \"device.h\"\n" + std::string(apl::device_warp_text()) + kernels};
}

}  // namespace

TEST_CASE("device_warp: the product of matrices of f16 and bf16 is that of the fragments' places") {
  // a[i][k] = i + 3 k - 20, b[k][j] = k - 2 j; each lane puts its fragments together by the rule of m16n8k16.
  Device device = emulated_warps(R"(
template <class T>
uint32_t pair(float low, float high) {
  return T(low).bits | uint32_t(T(high).bits) << 16;
}
template <class T>
void multiply(const apl_out<float>& C) {
  const int g = apl_lane() / 4, t = apl_lane() % 4;
  const auto a = [](int i, int k) { return float(i + 3 * k - 20); };
  const auto b = [](int k, int j) { return float(k - 2 * j); };
  uint32_t from_a[4], from_b[2];
  for (int r = 0; r < 4; ++r) {
    const int i = g + r % 2 * 8, k = 2 * t + r / 2 * 8;
    from_a[r] = pair<T>(a(i, k), a(i, k + 1));
  }
  for (int r = 0; r < 2; ++r) from_b[r] = pair<T>(b(2 * t + 8 * r, g), b(2 * t + 8 * r + 1, g));
  float sums[4] = {1, 1, 1, 1};
  // The second warp adds its product twice.
  for (int n = 0; n <= apl_warp(); ++n) apl_mma<T>(sums, from_a, from_b);
  for (int e = 0; e < 4; ++e) C(apl_warp() * 128 + (g + e / 2 * 8) * 8 + 2 * t + e % 2) = sums[e];
}
APL_KERNEL(64) void product_f16(apl_out<float> C) { multiply<apl_half>(C); }
APL_EXPORT(product_f16)
APL_KERNEL(64) void product_bf16(apl_out<float> C) { multiply<apl_bfloat>(C); }
APL_EXPORT(product_bf16)
)");
  for (const char* product : {"product_f16", "product_bf16"}) {
    void* C = device.scratch<float>(256, "C");
    take(device.launch(product, 1, 64, 0, C));
    const auto c = device.read<float>(C, 256);
    for (int warp = 0; warp < 2; ++warp)
      for (int i = 0; i < 16; ++i)
        for (int j = 0; j < 8; ++j) {
          float sum = 0;
          for (int k = 0; k < 16; ++k) sum += static_cast<float>((i + 3 * k - 20) * (k - 2 * j));
          CHECK(c[static_cast<std::size_t>(warp * 128 + i * 8 + j)] == 1 + static_cast<float>(warp + 1) * sum);
        }
  }
}

TEST_CASE("device_warp: shuffles give the value of the other lane") {
  Device device = emulated_warps(R"(
APL_KERNEL(64) void swap(apl_out<double> A) {
  double x = apl_thread();
  for (int distance = 16; distance > 0; distance /= 2) x += apl_shuffle_xor(x, distance);
  A(apl_thread()) = x;
}
APL_EXPORT(swap)
)");
  void* A = device.scratch<double>(64, "A");
  take(device.launch("swap", 1, 64, 0, A));
  const auto a = device.read<double>(A, 64);
  CHECK(a[3] == 31 * 16);
  CHECK(a[60] == 31 * 16 + 32 * 32);
}

TEST_CASE("device_warp: wide loads and stores must be aligned, inside and defined") {
  Device device = emulated_warps(R"(
APL_KERNEL(32) void copy(apl_in<int32_t> A, apl_out<int32_t> C, int64_t first) {
  uint32_t words[4];
  apl_load_words<4>(A, first + apl_thread() * 4, words);
  apl_store_words<4>(C, apl_thread() * 4, words);
  int32_t pair[2];
  apl_load<2>(A, first + apl_thread() * 2, pair);
}
APL_EXPORT(copy)
)");
  std::vector<std::int32_t> numbers(136);
  for (std::size_t k = 0; k < numbers.size(); ++k) numbers[k] = static_cast<std::int32_t>(k);
  void* A = device.array(numbers, "A");
  void* C = device.scratch<std::int32_t>(128, "C");
  take(device.launch("copy", 1, 32, 0, A, C, std::int64_t{4}));
  CHECK(device.read<std::int32_t>(C, 128)[127] == 131);
  const auto unaligned = device.launch("copy", 1, 32, 0, A, C, std::int64_t{2});
  REQUIRE_FALSE(unaligned);
  CHECK(contains(unaligned.error().message, "align"));
  const auto outside = device.launch("copy", 1, 32, 0, A, C, std::int64_t{12});
  REQUIRE_FALSE(outside);
  CHECK(outside.error().code == apl::Code::run_index_out_of_bounds);
}
