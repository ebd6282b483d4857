// Products of tiles by matrix units (runtime/device/matrix.h), in emulation.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>

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

TEST_CASE("device_matrix: a kernel that was ended leaves no product to the next one") {
  // A product is under way when a fault ends it: the array is too small for `between`.
  Device device{apl::make_emulate_backend({}),
                product_kernel("apl_half", 16, true, true, false, "C(128 * 64 + apl_thread()) = 1;")};
  const auto launch = [&](void* C) { return device.launch("product", 1, 256, 128 * 64 * 2 + 64 * 64 * 2, C); };
  constexpr std::size_t kCount = 128 * 64, kMore = kCount + 256;
  void* enough = device.scratch<float>(kMore, "C");
  take(launch(enough));
  const auto expected = device.read<float>(enough, kMore);
  CHECK_FALSE(launch(device.scratch<float>(kCount, "C")));
  take(launch(enough));
  CHECK(device.read<float>(enough, kMore) == expected);
}

namespace {

// A warp multiplies 32 x depth by depth x 32, eight steps at a time, by so many products of tf32 each.
std::string floats_kernel(int products) {
  return "#include \"device.h\"\n" + fmt::format(R"(
APL_KERNEL(32) void product(apl_in<float> A, apl_in<float> B, apl_out<float> C, int64_t depth) {{
  const auto p = apl_shared_at<float>(0, 8 * 32);
  const auto q = apl_shared_at<float>(8 * 32 * 4, 8 * 32);
  const int thread = apl_thread(), first = thread / 4 * 4;
  float sums[32] = {{}};
  for (int64_t from = 0; from < depth; from += 8) {{
    for (int k = 0; k < 8; ++k) {{
      p(k * 32 + (thread ^ apl_swizzle(k))) = A((from + k) * 32 + thread);
      q(k * 32 + thread) = B((from + k) * 32 + thread);
    }}
    apl_barrier();
    apl_multiply_floats<{}, 4, 8, true, false>(sums, p, 0, 32, first, q, 0, 32, 0);
    apl_barrier();
  }}
  for (int j = 0; j < 8; ++j)
    for (int i = 0; i < 4; ++i) C((thread % 4 * 8 + j) * 32 + first + i) = sums[j * 4 + i];
}}
APL_EXPORT(product)
)",
                                                 products);
}

struct Errors {
  double units, cores;  // of all sums, as a part of them: by norms
};

// A and B are [depth][32], C[j][i] is the sum of A[k][i] * B[k][j].
Errors errors_of(int products, int depth, float least) {
  std::vector<float> a, b;
  std::uint32_t seed = 7;
  const auto number = [&] {
    seed = seed * 1664525u + 1013904223u;
    return least + (1 - least) * static_cast<float>(seed >> 8) / static_cast<float>(1 << 24);
  };
  for (int x = 0; x < depth * 32; ++x) a.push_back(number()), b.push_back(number());
  Device device{apl::make_emulate_backend({}), floats_kernel(products)};
  void *A = device.array(a, "A"), *B = device.array(b, "B"), *C = device.scratch<float>(32 * 32, "C");
  take(device.launch("product", 1, 32, 2 * 8 * 32 * 4, A, B, C, static_cast<std::int64_t>(depth)));
  const std::vector<float> c = device.read<float>(C, 32 * 32);
  double norm = 0, units = 0, cores = 0;
  for (int j = 0; j < 32; ++j)
    for (int i = 0; i < 32; ++i) {
      double exact = 0;
      float fused = 0;
      for (int k = 0; k < depth; ++k) {
        const auto x = a[static_cast<std::size_t>(k * 32 + i)], y = b[static_cast<std::size_t>(k * 32 + j)];
        exact += static_cast<double>(x) * y;
        fused = std::fma(x, y, fused);
      }
      norm += exact * exact;
      units += std::pow(c[static_cast<std::size_t>(j * 32 + i)] - exact, 2);
      cores += std::pow(fused - exact, 2);
    }
  return {std::sqrt(units / norm), std::sqrt(cores / norm)};
}

}  // namespace

TEST_CASE("device_matrix: three products of tf32 lose no more than 2.5 times what products of f32 do") {
  for (const int depth : {8, 16, 32, 64, 256, 2048})
    for (const float least : {-1.0F, 0.0F}) {
      const Errors errors = errors_of(3, depth, least);
      INFO("depth ", depth, " from ", least, ": ", errors.units, ", by multiply-adds ", errors.cores);
      CHECK(errors.units <= 2.5 * errors.cores);
    }
}

TEST_CASE("device_matrix: one product of tf32 has 11 bits of its factors") {
  for (const int depth : {8, 256}) {
    const Errors errors = errors_of(1, depth, -1);
    CHECK(errors.units < 2e-3);
    CHECK(errors.units > 1e-5);  // what products of f32 would not lose
  }
}

TEST_CASE("device_matrix: units cut off what they add, at the last bit of the largest") {
  const std::string kernel = R"(#include "device.h"
APL_KERNEL(1) void sum(apl_in<float> X, apl_out<float> C) {
  const float factors[2][2] = {{X(1), 1}, {X(2), 1}};
  C(0) = apl_unit_sum(X(0), factors, 2);
}
APL_EXPORT(sum)
)";
  const float ulp = std::ldexp(1.0F, -23);
  struct Case {
    std::vector<float> terms;
    float sum;
  };
  for (const Case& one : {Case{{1, ulp, ulp}, 1 + 2 * ulp}, Case{{1, 0.75F * ulp, 0.75F * ulp}, 1},
                          Case{{1, -0.75F * ulp, 0}, 1}, Case{{0.25F * ulp, 1, -1}, 0}, Case{{0, 3, 4}, 7},
                          Case{{-1, -ulp, -ulp}, -1 - 2 * ulp}, Case{{2 - ulp, 1, ulp}, 3}}) {
    Device device{apl::make_emulate_backend({}), kernel};
    void *X = device.array(one.terms, "X"), *C = device.scratch<float>(1, "C");
    take(device.launch("sum", 1, 1, 0, X, C));
    CHECK(device.read<float>(C, 1)[0] == one.sum);
  }
}
