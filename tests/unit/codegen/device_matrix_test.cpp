// Products of tiles by matrix units (runtime/device/matrix.h), in emulation.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "runtime/backends/emulate.h"
#include "tests/unit/codegen/kernels.h"

namespace {

using kernels::Device;
using kernels::take;

// A block of two warpgroups makes a tile p of 128 rows, p[i][k] = i + 3 k - 20, and q of 64, q[j][k] = k - 2 j, and
// multiplies them twice. `between` stands between the second product and the wait for it.
std::string product_kernel(const char* type, int depth, bool p_by_depth, bool q_by_depth, bool flipped,
                           const std::string& between) {
  return "#include \"device.h\"\n" + fmt::format(R"(
APL_KERNEL(256) void product(apl_out<float> C) {{
  typedef {0} T;
  enum {{ depth = {1}, rows = 128, columns = 64 }};
  const auto p = apl_shared_at<T>(0, rows * depth);
  const auto q = apl_shared_at<T>(rows * depth * 2, columns * depth);
  for (int x = apl_thread(); x < rows * depth; x += 256) {{
    const int i = x / depth, k = x % depth;
    p(apl_matrix_position<depth, {2}>(i, k)) = T(float(i + 3 * k - 20));
    if (i < columns) q(apl_matrix_position<depth, {3}>(i, k)) = T(float(k - 2 * i));
  }}
  apl_matrix_publish();
  apl_barrier();
  float sums[32];
  for (int e = 0; e < 32; ++e) sums[e] = 1;
  apl_matrix_start<32>(sums);
  for (int n = 0; n < 2; ++n) {{
    apl_matrix_multiply<depth, 16, {2}, {3}, {4}>(sums, p, 0, q, 0);
    apl_matrix_commit();
    apl_matrix_wait<1>();
  }}
  {5}
  apl_matrix_finish<32>(sums);
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 16; ++j) {{
      const int row = apl_warp() * 16 + apl_lane() / 4 + i * 8, column = j / 2 * 8 + apl_lane() % 4 * 2 + j % 2;
      C(row * columns + column) = sums[{4} ? j * 2 + i : i * 16 + j];
    }}
}}
APL_EXPORT(product)
)",
                                                 type, depth, p_by_depth, q_by_depth, flipped, between);
}

// The same of bytes, once: p[i][k] = 7 i + 3 k - 20, q[j][k] = 5 k - 2 j, and sums that begin with `start`.
std::string bytes_kernel(const char* p, const char* q, const char* sum, int depth, bool flipped, int start) {
  return "#include \"device.h\"\n" + fmt::format(R"(
APL_KERNEL(256) void product(apl_out<int32_t> C) {{
  enum {{ depth = {3}, rows = 128, columns = 64 }};
  const auto p = apl_shared_at<{0}>(0, rows * depth);
  const auto q = apl_shared_at<{1}>(rows * depth, columns * depth);
  for (int x = apl_thread(); x < rows * depth; x += 256) {{
    const int i = x / depth, k = x % depth;
    p(apl_matrix_position<depth, true, 1>(i, k)) = static_cast<{0}>(i * 7 + 3 * k - 20);
    if (i < columns) q(apl_matrix_position<depth, true, 1>(i, k)) = static_cast<{1}>(k * 5 - 2 * i);
  }}
  apl_matrix_publish();
  apl_barrier();
  {2} sums[32];
  for (int e = 0; e < 32; ++e) sums[e] = {5};
  apl_matrix_start<32>(sums);
  apl_matrix_multiply<depth, 16, true, true, {4}>(sums, p, 0, q, 0);
  apl_matrix_commit();
  apl_matrix_finish<32>(sums);
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 16; ++j) {{
      const int row = apl_warp() * 16 + apl_lane() / 4 + i * 8, column = j / 2 * 8 + apl_lane() % 4 * 2 + j % 2;
      C(row * columns + column) = static_cast<int32_t>(sums[{4} ? j * 2 + i : i * 16 + j]);
    }}
}}
APL_EXPORT(product)
)",
                                                 p, q, sum, depth, flipped, start);
}

bool runs(const std::string& kernel, std::vector<float>& c) {
  Device device{apl::make_emulate_backend({}), kernel};
  void* C = device.scratch<float>(128 * 64, "C");
  const auto done = device.launch("product", 1, 256, 128 * 64 * 2 + 64 * 64 * 2, C);
  if (done) c = device.read<float>(C, 128 * 64);
  return static_cast<bool>(done);
}

}  // namespace

TEST_CASE("device_matrix: the product of two tiles, in all orders and depths") {
  struct Case {
    const char* type;
    int depth;
    bool p_by_depth, q_by_depth, flipped;
  };
  for (const Case& one : {Case{"apl_half", 64, true, true, false}, Case{"apl_bfloat", 32, true, false, true},
                          Case{"apl_half", 16, false, true, false}, Case{"apl_bfloat", 64, false, false, true}}) {
    CAPTURE(one.depth);
    std::vector<float> c;
    REQUIRE(runs(product_kernel(one.type, one.depth, one.p_by_depth, one.q_by_depth, one.flipped, ""), c));
    int wrong = 0;
    for (int i = 0; i < 128; ++i)
      for (int j = 0; j < 64; ++j) {
        float sum = 0;
        for (int k = 0; k < one.depth; ++k)
          for (int n = 0; n < 2; ++n) {
            const int p = i + 3 * k - 20, q = k - 2 * j;
            // bf16 has 8 bits of them.
            const auto round = [&](int x) {
              int odd = std::abs(x), bit = 1;
              while (one.type[4] == 'b' && odd / bit >= 256) bit *= 2;
              const int low = odd / bit * bit, rest = odd - low;
              const bool up = 2 * rest > bit || (2 * rest == bit && (low / bit) % 2 == 1);
              return static_cast<float>((low + (up ? bit : 0)) * (x < 0 ? -1 : 1));
            };
            sum += round(p) * round(q);
          }
        wrong += c[static_cast<std::size_t>(i * 64 + j)] == 1 + sum ? 0 : 1;
      }
    CHECK(wrong == 0);
  }
}

TEST_CASE("device_matrix: products of bytes of all signs, whose sums wrap around") {
  struct Case {
    const char *p, *q, *sum;
    int depth;
    bool flipped;
  };
  const auto as = [](const char* type, int x) {
    const bool has_sign = type[0] == 'i';
    return has_sign ? static_cast<std::int64_t>(static_cast<std::int8_t>(x))
                    : static_cast<std::int64_t>(static_cast<std::uint8_t>(x));
  };
  for (const Case& one :
       {Case{"int8_t", "int8_t", "int32_t", 128, false}, Case{"uint8_t", "uint8_t", "uint32_t", 64, true},
        Case{"int8_t", "uint8_t", "int32_t", 32, true}, Case{"uint8_t", "int8_t", "int32_t", 64, false}}) {
    CAPTURE(one.depth);
    constexpr std::int64_t kStart = 0x7fffff00;  // which products of some rows go beyond
    Device device{apl::make_emulate_backend({}),
                  bytes_kernel(one.p, one.q, one.sum, one.depth, one.flipped, static_cast<int>(kStart))};
    void* C = device.scratch<std::int32_t>(128 * 64, "C");
    REQUIRE(device.launch("product", 1, 256, (128 + 64) * one.depth, C));
    const std::vector<std::int32_t> c = device.read<std::int32_t>(C, 128 * 64);
    int wrong = 0;
    for (int i = 0; i < 128; ++i)
      for (int j = 0; j < 64; ++j) {
        std::int64_t sum = kStart;
        for (int k = 0; k < one.depth; ++k) sum += as(one.p, i * 7 + 3 * k - 20) * as(one.q, k * 5 - 2 * j);
        wrong += c[static_cast<std::size_t>(i * 64 + j)] == static_cast<std::int32_t>(sum) ? 0 : 1;
      }
    CHECK(wrong == 0);
  }
}

TEST_CASE("device_matrix: a tile that is written while a product reads it is a race") {
  std::vector<float> c;
  const std::string write = "p(apl_thread()) = T(1.0f);";
  CHECK_FALSE(runs(product_kernel("apl_half", 16, true, true, false, write), c));
  // Not if the product was waited for, and all threads know it.
  CHECK(runs(product_kernel("apl_half", 16, true, true, false, "apl_matrix_wait<0>(); apl_barrier(); " + write), c));
}
