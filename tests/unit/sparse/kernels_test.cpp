// The kernels of sparse products in emulation, against sums made here: whole numbers, so that all orders agree.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <type_traits>

#include "runtime/backends/emulate.h"
#include "runtime/program/bridge.h"
#include "runtime/sparse/device_operand.h"
#include "tests/unit/sparse/matrices.h"
#include "tests/unit/sparse/tiles.h"

namespace {

using apl::program::Bridge;
using apl::sparse::Csr;
namespace sparse_test = apl::sparse_test;

// A machine that is emulated, and by what texts of kernels: they are compiled once for all test cases.
struct Emulated {
  explicit Emulated(const std::string& record)
      : device(*apl::find_device(record)), bridge(apl::make_emulate_backend({.device = record}), nullptr) {}
  apl_device device;
  Bridge bridge;
};
Emulated& emulated(bool has_waves_of_64) {
  static Emulated h200("h200"), mi300("mi300");
  return has_waves_of_64 ? mi300 : h200;
}
bool has_waves_of_64 = false;  // what the checks below run on
Bridge& emulator() { return emulated(has_waves_of_64).bridge; }
const apl_device& device() { return emulated(has_waves_of_64).device; }

struct Half {
  std::uint16_t bits;
};
struct Bfloat {
  std::uint16_t bits;
};

// Whole numbers up to 2048 are exact in f16.
Half to_half(double number) {
  if (number == 0) return {0};
  const auto magnitude = static_cast<unsigned>(std::abs(number));
  int exponent = 0;
  while (magnitude >> (exponent + 1)) ++exponent;
  const unsigned fraction = (magnitude << (10 - std::min(exponent, 10)) >> std::max(exponent - 10, 0)) & 1023;
  return {static_cast<std::uint16_t>((number < 0 ? 0x8000u : 0u) | unsigned(exponent + 15) << 10 | fraction)};
}
double from_half(Half half) {
  const int exponent = half.bits >> 10 & 31, fraction = half.bits & 1023;
  const double magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25);
  return half.bits >> 15 ? -magnitude : magnitude;
}

// Whole numbers up to 256 are exact in bf16.
Bfloat to_bfloat(double number) {
  return {static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(number)) >> 16)};
}
double from_bfloat(Bfloat x) { return static_cast<double>(std::bit_cast<float>(std::uint32_t{x.bits} << 16)); }

template <class T>
T from_number(double number) {
  if constexpr (std::is_same_v<T, Half>)
    return to_half(number);
  else if constexpr (std::is_same_v<T, Bfloat>)
    return to_bfloat(number);
  else
    return static_cast<T>(static_cast<std::int64_t>(number));
}
template <class T>
double to_number(T element) {
  if constexpr (std::is_same_v<T, Half>)
    return from_half(element);
  else if constexpr (std::is_same_v<T, Bfloat>)
    return from_bfloat(element);
  else if constexpr (std::is_integral_v<T>)
    return static_cast<double>(static_cast<std::int64_t>(element));  // numbers without a sign wrap, too
  else
    return static_cast<double>(element);
}

template <class T>
constexpr std::int32_t kType = std::is_same_v<T, Half>           ? APL_F16
                               : std::is_same_v<T, Bfloat>       ? APL_BF16
                               : std::is_same_v<T, float>        ? APL_F32
                               : std::is_same_v<T, double>       ? APL_F64
                               : std::is_same_v<T, std::int8_t>  ? APL_I8
                               : std::is_same_v<T, std::int32_t> ? APL_I32
                                                                 : APL_U64;

void check(Bridge& bridge, int status) {
  if (status != APL_SUCCESS) FAIL(bridge.error(status).message);
}

// Small numbers; sums of them stay exact in every type but the 8-bit ones, which wrap.
double number(std::int64_t i) { return static_cast<double>((i * 7 + i / 5 % 11) % 5 - 2); }

// A dense array whose rows lie `row` elements apart, and begin `offset` elements behind an aligned address.
template <class T>
struct Dense {
  Dense(std::int64_t rows, std::int64_t columns, std::int64_t row, std::int64_t offset)
      : elements(static_cast<std::size_t>(rows * row + offset)), row_(row), offset_(offset) {
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j) at(i, j) = from_number<T>(number(i * columns + j));
  }
  T& at(std::int64_t i, std::int64_t j) { return elements[static_cast<std::size_t>(offset_ + i * row_ + j)]; }
  apl_sparse_dense on(Bridge& bridge, const char* what, bool is_set) {
    const auto bytes = static_cast<std::int64_t>(elements.size() * sizeof(T));
    data = *bridge.allocate(bytes + 16, what);
    if (is_set) REQUIRE(bridge.backend().upload(data, elements.data(), bytes));
    return {static_cast<T*>(data) + offset_, row_};
  }
  std::vector<T> elements;
  void* data = nullptr;

 private:
  std::int64_t row_, offset_;
};

struct RowPitch {
  std::int64_t width, more_b = 0, more_c = 0, offset = 0;
};

template <class T>
void* upload(Bridge& bridge, const std::vector<double>& numbers, const char* what) {
  std::vector<T> elements;
  for (const double each : numbers) elements.push_back(from_number<T>(each));
  const auto bytes = static_cast<std::int64_t>(elements.size() * sizeof(T));
  void* data = *bridge.allocate(bytes, what);
  REQUIRE(bridge.backend().upload(data, elements.data(), bytes));
  return data;
}

// Operands of T, results of Result: T itself, or float for types of 16 bits.
template <class T, class Result = T>
void check_spmm(const Csr& m, const apl_sparse_plan* plan, const apl_sparse_options& options, const RowPitch& pitch,
                const apl_sparse_epilogue* epilogue = nullptr,
                const std::function<double(double, std::int64_t, std::int64_t)>& wanted_epilogue = {}) {
  Bridge& bridge = emulator();
  const std::uint64_t mark = bridge.mark();
  const apl_sparse_csr csr = apl::csr_view(m);
  apl_sparse_packed* packed = nullptr;
  REQUIRE(apl_sparse_packed_make(&csr, plan, &device(), kType<T>, pitch.width, &options, &packed) == APL_SPARSE_FINE);
  apl_sparse_operand a{};
  check(bridge, apl_sparse_upload(bridge.context(), packed, kType<T>, &a));
  apl_sparse_packed_free(packed);
  check(bridge, apl_sparse_set_values(bridge.context(), &a, upload<T>(bridge, m.values, "values")));
  Dense<T> b(m.columns, pitch.width, pitch.width + pitch.more_b, pitch.offset);
  a.is_wide = std::is_same_v<T, Result> ? 0 : 1;
  Dense<Result> c(m.rows, pitch.width, pitch.width + pitch.more_c, pitch.offset);
  const apl_sparse_dense b_there = b.on(bridge, "B", true), c_there = c.on(bridge, "C", false);
  check(bridge, apl_sparse_spmm(bridge.context(), &a, b_there, c_there, pitch.width, &options, epilogue));
  bool right = true;
  for (std::int64_t i = 0; i < m.rows; ++i) {
    std::vector<Result> row(static_cast<std::size_t>(pitch.width));
    if (pitch.width > 0)
      REQUIRE(bridge.backend().download(row.data(), static_cast<const Result*>(c_there.data) + i * c_there.row,
                                        pitch.width * static_cast<std::int64_t>(sizeof(Result))));
    for (std::int64_t j = 0; j < pitch.width; ++j) {
      double sum = 0;
      for (std::int64_t k = m.row_start[static_cast<std::size_t>(i)]; k < m.row_start[static_cast<std::size_t>(i) + 1];
           ++k)
        sum += m.values[static_cast<std::size_t>(k)] * to_number(b.at(m.column[static_cast<std::size_t>(k)], j));
      if (wanted_epilogue) sum = wanted_epilogue(sum, i, j);
      right = right && to_number(row[static_cast<std::size_t>(j)]) == to_number(from_number<Result>(sum));
    }
  }
  CHECK(right);
  REQUIRE(bridge.release_since(mark));
}

template <class T, class Result = T>
void check_sddmm(const Csr& m, const apl_sparse_plan* plan, const apl_sparse_options& options, const RowPitch& pitch,
                 bool is_scaled, const apl_sparse_epilogue* epilogue = nullptr,
                 const std::function<double(double, std::int64_t, std::int64_t, std::size_t)>& wanted_epilogue = {}) {
  Bridge& bridge = emulator();
  const std::uint64_t mark = bridge.mark();
  const apl_sparse_csr csr = apl::csr_view(m);
  apl_sparse_sddmm_packed* samples = nullptr;
  REQUIRE(apl_sparse_sddmm_packed_make(&csr, plan, &device(), kType<T>, pitch.width, &options, &samples) ==
          APL_SPARSE_FINE);
  CHECK((samples->windows > 0) == (options.window > 0 && m.rows > 0 && device().matrix_units != 0));
  apl_sparse_sddmm_operand a{};
  check(bridge, apl_sparse_upload_sddmm(bridge.context(), samples, kType<T>, &a));
  apl_sparse_sddmm_packed_free(samples);
  Dense<T> x(m.rows, pitch.width, pitch.width + pitch.more_b, pitch.offset);
  Dense<T> y(m.columns, pitch.width, pitch.width + pitch.more_c, pitch.offset);
  const apl_sparse_dense x_there = x.on(bridge, "X", true), y_there = y.on(bridge, "Y", true);
  a.is_wide = std::is_same_v<T, Result> ? 0 : 1;
  const auto bytes = m.nonzeros() * static_cast<std::int64_t>(sizeof(Result));
  void* result = *bridge.allocate(bytes, "samples");
  void* values = is_scaled ? upload<T>(bridge, m.values, "values") : nullptr;
  check(bridge, apl_sparse_sddmm(bridge.context(), &a, values, x_there, y_there, pitch.width, result, epilogue));
  std::vector<Result> samples_of(static_cast<std::size_t>(m.nonzeros()));
  REQUIRE(bridge.backend().download(samples_of.data(), result, bytes));
  bool right = true;
  std::size_t n = 0;
  for (std::int64_t i = 0; i < m.rows; ++i)
    for (const std::int32_t j : m.row(i)) {
      double sum = 0;
      for (std::int64_t k = 0; k < pitch.width; ++k) sum += to_number(x.at(i, k)) * to_number(y.at(j, k));
      if (is_scaled) sum *= m.values[n];
      if (wanted_epilogue) sum = wanted_epilogue(sum, i, j, n);
      right = right && to_number(samples_of[n]) == to_number(from_number<Result>(sum));
      ++n;
    }
  CHECK(right);
  REQUIRE(bridge.release_since(mark));
}

}  // namespace

TEST_CASE("sparse kernels: gathered rows for every kind of matrix, class of rows, width and pitch") {
  const std::vector<RowPitch> pitches = {{136}, {7}, {20, 4, 12, 4}, {0}, {24, 0, 0, 2}};
  std::size_t turn = 0;
  for (const std::string& kind : sparse_test::kinds())
    for (const apl_sparse_options& options :
         {apl_sparse_options{.window = -1, .staged = -1},
          apl_sparse_options{.window = -1, .warp_row = 3, .block_row = 9, .sorted = -1, .staged = -1}}) {
      const Csr m = sparse_test::random_matrix(kind, 37, 5);
      const RowPitch pitch = pitches[turn++ % pitches.size()];
      CAPTURE(kind);
      CAPTURE(pitch.width);
      check_spmm<Half>(m, nullptr, options, pitch);
    }
}

TEST_CASE("sparse kernels: gathered rows of every type") {
  const Csr m = sparse_test::random_matrix("power-law", 37, 6);
  const apl_sparse_options options{.window = -1, .warp_row = 4, .block_row = 12};
  check_spmm<float>(m, nullptr, options, {36});
  check_spmm<double>(m, nullptr, options, {6});
  check_spmm<std::int8_t>(m, nullptr, options, {17});
  check_spmm<std::int32_t>(m, nullptr, options, {10});
  check_spmm<std::uint64_t>(m, nullptr, options, {3});
}

TEST_CASE("sparse kernels: rows in pieces, of every class, type and pitch, for every kind of matrix") {
  const std::vector<RowPitch> pitches = {{136}, {7}, {20, 4, 12, 4}, {0}, {24, 0, 0, 2}};
  std::size_t turn = 0;
  for (const std::string& kind : sparse_test::kinds())
    for (const std::int32_t piece : {4, 12}) {
      const Csr m = sparse_test::random_matrix(kind, 37, 5);
      const RowPitch pitch = pitches[turn++ % pitches.size()];
      CAPTURE(kind);
      CAPTURE(piece);
      CAPTURE(pitch.width);
      check_spmm<Half>(m, nullptr, {.window = -1, .warp_row = 3, .block_row = 9, .piece = piece}, pitch);
    }
  const Csr m = sparse_test::random_matrix("dense rows", 50, 6);
  const apl_sparse_options options{.window = -1, .warp_row = 4, .block_row = 12, .piece = 16};
  check_spmm<Half, float>(m, nullptr, options, {40});
  check_spmm<float>(m, nullptr, options, {36});
  check_spmm<double>(m, nullptr, options, {6});
  check_spmm<std::int8_t>(m, nullptr, options, {17});
  check_spmm<std::uint64_t>(m, nullptr, options, {3});
}

TEST_CASE("sparse kernels: rows that stand apart from windows are gathered, in pieces") {
  for (const int window : {8, 16, 32})
    for (const char* kind : {"dense rows", "full", "power-law"}) {
      CAPTURE(window);
      CAPTURE(kind);
      check_spmm<Half>(sparse_test::random_matrix(kind, 70, 4), nullptr, {.window = window, .piece = 12, .apart = 20},
                       {40});
    }
}

TEST_CASE("sparse kernels: windows of every height, shared by warps, for every kind of matrix") {
  struct Variant {
    int window, split, slices;
    RowPitch pitch;
  };
  const std::vector<Variant> ways = {
      {32, 1, 1, {64}}, {16, 4, 1, {20, 4, 12, 4}}, {8, 1, 2, {136}}, {32, 2, 2, {6}}, {16, 1, 1, {3}}};
  std::size_t turn = 0;
  for (const std::string& kind : sparse_test::kinds())
    for (const std::int64_t size : {40, 75}) {
      const auto& [window, split, slices, pitch] = ways[turn++ % ways.size()];
      CAPTURE(kind);
      CAPTURE(window);
      CAPTURE(pitch.width);
      check_spmm<Half>(sparse_test::random_matrix(kind, size, 7), nullptr,
                       {.window = window, .split = split, .slices = slices}, pitch);
    }
}

TEST_CASE("sparse kernels: windows without matrix units, of every type, height and share, for every kind of matrix") {
  struct Variant {
    int window, split, slices;
    RowPitch pitch;
  };
  const std::vector<Variant> ways = {
      {8, 1, 1, {132}}, {16, 4, 1, {20, 4, 12, 4}}, {8, 1, 2, {136}}, {16, 2, 2, {6}}, {8, 8, 1, {3}}};
  std::size_t turn = 0;
  for (const std::string& kind : sparse_test::kinds())
    for (const std::int64_t size : {40, 75}) {
      const auto& [window, split, slices, pitch] = ways[turn++ % ways.size()];
      CAPTURE(kind);
      CAPTURE(window);
      CAPTURE(pitch.width);
      check_spmm<float>(sparse_test::random_matrix(kind, size, 7), nullptr,
                        {.window = window, .split = split, .slices = slices}, pitch);
    }
  const Csr m = sparse_test::random_matrix("block", 70, 3);
  for (const int window : {8, 16}) {
    check_spmm<double>(m, nullptr, {.window = window}, {66});
    check_spmm<std::int8_t>(m, nullptr, {.window = window}, {40});
    check_spmm<std::int32_t>(m, nullptr, {.window = window, .piece = 8, .apart = 12}, {33});
    check_spmm<std::uint64_t>(m, nullptr, {.window = window}, {5});
  }
  // A machine without them has these for 16 bits, too, and wider warps.
  has_waves_of_64 = true;
  check_spmm<Half>(m, nullptr, {.window = 8}, {40});
  check_spmm<Half, float>(m, nullptr, {.window = 16, .split = 2}, {136});
  check_spmm<float>(m, nullptr, {.window = 8}, {132});
  has_waves_of_64 = false;
}

TEST_CASE("sparse kernels: a plan's windows and the other rows in one launch, in the plan's order") {
  const Csr m = sparse_test::random_matrix("block", 130, 8);
  std::string order;
  for (int k = 0; k < 130; ++k) order += fmt::format(" {}", k * 7 % 130);
  const auto plan = sparse_test::parse_plan(
      fmt::format("apl-sparse-plan 2\nmatrix {} {} {} {:x}\noperator spmm\ndense 64 part 64\nform tiles\norder{}\n"
                  "ell 1 2 4 elements 64 segments 8\ngroups 3\n1 32@1>=2 ell\n1 ell\n1 8@0>=1 segments\nend\n",
                  m.rows, m.columns, m.nonzeros(), apl::sparse::pattern_hash(m), order));
  REQUIRE(plan);
  for (const int window : {8, 32}) {
    CAPTURE(window);
    check_spmm<Half>(m, plan.get(), {.window = window, .warp_row = 8, .block_row = 20}, {40});
  }
  const apl_sparse_csr csr = apl::csr_view(m);
  apl_sparse_packed* packed = nullptr;
  REQUIRE(apl_sparse_packed_make(&csr, plan.get(), &device(), APL_F16, 40, nullptr, &packed) == APL_SPARSE_FINE);
  CHECK(packed->parts == 4);    // most of what the plan selects is 32 rows high
  CHECK(packed->windows == 2);  // the second half of the first group, the last two rows
  CHECK(packed->records == 130 - 32 - 2);
  apl_sparse_packed_free(packed);
  check_sddmm<Half>(m, plan.get(), {.window = 8}, {64}, true);
}

TEST_CASE("sparse kernels: rows in another order give the results of each row where it belongs") {
  for (const std::string& kind : sparse_test::kinds()) {
    CAPTURE(kind);
    const Csr m = sparse_test::random_matrix(kind, 97, 3);
    std::vector<std::int32_t> order;
    for (std::int64_t k = 0; k < m.rows; ++k) order.push_back(static_cast<std::int32_t>(m.rows - 1 - k));
    for (const int window : {-1, 8, 32}) {
      apl_sparse_options options{.window = window};
      options.row_order = order.data();
      check_spmm<Half>(m, nullptr, options, {40});
      check_spmm<float>(m, nullptr, options, {40});
    }
  }
}

TEST_CASE("sparse kernels: a plan's nnz segments are pieces of rows, beside windows and whole rows") {
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    const Csr m = sparse_test::random_matrix(seed % 2 == 0 ? "dense rows" : "power-law", 200, seed);
    const auto plan = sparse_test::parse_plan(
        fmt::format("apl-sparse-plan 2\nmatrix {} {} {} {:x}\noperator spmm\ndense 64 part 64\nform tiles\norder "
                    "natural\nell 1 2 4 elements 64 segments {}\ngroups 4\n1 segments\n1 32@1>=1 segments\n1 ell\n1 "
                    "segments\nend\n",
                    m.rows, m.columns, m.nonzeros(), apl::sparse::pattern_hash(m), 8 * seed));
    REQUIRE(plan);
    check_spmm<Half>(m, plan.get(), {.warp_row = 8, .block_row = 20}, {40});
    check_spmm<float>(m, plan.get(), {.warp_row = 8, .block_row = 20}, {12});
    const apl_sparse_csr csr = apl::csr_view(m);
    apl_sparse_packed* packed = nullptr;
    REQUIRE(apl_sparse_packed_make(&csr, plan.get(), &device(), APL_F16, 40, nullptr, &packed) == APL_SPARSE_FINE);
    CHECK(packed->windows == 1);
    // Rows of the second group's first half, the third group and the pieces of the others.
    std::int32_t pieces = 0, cuts = 0;
    for (std::int64_t row = 0; row < m.rows; ++row) {
      if ((row >= 96 && row < 192) || m.length(row) <= std::int64_t(8 * seed)) continue;
      ++cuts;
      const std::int64_t padded = (m.length(row) + 3) / 4 * 4, most = std::int64_t(8 * seed);
      const std::int64_t each = ((padded + (padded + most - 1) / most - 1) / ((padded + most - 1) / most) + 3) / 4 * 4;
      pieces += static_cast<std::int32_t>((padded + each - 1) / each);
    }
    CHECK(packed->cuts == cuts);
    CHECK(packed->pieces == pieces);
    CHECK(packed->records == 200 - 32 - cuts + pieces);
    apl_sparse_packed_free(packed);
  }
}

TEST_CASE("sparse kernels: B staged in shared memory") {
  for (const char* kind : {"uniform", "power-law", "one column", "empty"}) {
    CAPTURE(kind);
    const Csr m = sparse_test::random_matrix(kind, 60, 9);
    check_spmm<Half>(m, nullptr, {.window = -1, .staged = 1}, {40});
    check_spmm<float>(m, nullptr, {.window = -1, .staged = 1}, {12});
  }
}

TEST_CASE("sparse kernels: what is done with a sum sees its row and column") {
  const Csr m = sparse_test::random_matrix("banded", 40, 3);
  struct {
    float factor;
  } value{2};
  const apl_sparse_epilogue epilogue{
      "bench_bias",
      "struct bench_bias {\n  float factor;\n  template <class Sum>\n  APL_DEVICE Sum "
      "operator()(Sum sum, int64_t row, int64_t column) const {\n    return sum * factor + "
      "Sum(row) - Sum(column);\n  }\n};\n",
      &value};
  const auto wanted = [](double sum, std::int64_t i, std::int64_t j) {
    return 2 * sum + static_cast<double>(i) - static_cast<double>(j);
  };
  check_spmm<Half>(m, nullptr, {.window = 32}, {40}, &epilogue, wanted);
  check_spmm<Half>(m, nullptr, {.window = -1}, {40}, &epilogue, wanted);
  check_spmm<Half>(m, nullptr, {.window = -1, .piece = 4}, {40}, &epilogue, wanted);
  check_spmm<Half, float>(m, nullptr, {.window = -1, .piece = 4}, {7}, &epilogue, wanted);
}

TEST_CASE("sparse kernels: what is done with a sampled sum sees its row, its column and which non-zero it is") {
  const Csr m = sparse_test::random_matrix("banded", 40, 3);
  const apl_sparse_epilogue epilogue{
      "bench_place",
      "struct bench_place {\n  int32_t unused;\n  template <class Sum>\n  APL_DEVICE Sum "
      "operator()(Sum sum, int64_t row, int64_t column, int64_t nonzero) const {\n    return "
      "Sum(row) - Sum(column) + Sum(nonzero % 100) + sum;\n  }\n};\n",
      nullptr};
  const auto wanted = [](double sum, std::int64_t i, std::int64_t j, std::size_t n) {
    return static_cast<double>(i) - static_cast<double>(j) + static_cast<double>(n % 100) + sum;
  };
  check_sddmm<Half>(m, nullptr, {.window = 8}, {40}, false, &epilogue, wanted);
  check_sddmm<float>(m, nullptr, {}, {20}, true, &epilogue, wanted);
}

TEST_CASE("sparse kernels: sampled products by list and by windows for every kind of matrix") {
  const std::vector<RowPitch> pitches = {{160}, {7, 1, 2}, {100, 4, 0, 4}};
  std::size_t turn = 0;
  for (const std::string& kind : sparse_test::kinds()) {
    const Csr m = sparse_test::random_matrix(kind, 40, 11);
    const RowPitch pitch = pitches[turn++ % pitches.size()];
    CAPTURE(kind);
    CAPTURE(pitch.width);
    const bool is_scaled = pitch.width == 7;
    check_sddmm<Half>(m, nullptr, {.window = -1}, pitch, is_scaled);
    check_sddmm<Half>(m, nullptr, {.window = 8, .task = 1 + static_cast<int>(turn % 3)}, pitch, is_scaled);
  }
  const Csr m = sparse_test::random_matrix("uniform", 37, 12);
  check_sddmm<float>(m, nullptr, {}, {48}, true);
  check_sddmm<double>(m, nullptr, {}, {5}, false);
  check_sddmm<std::int32_t>(m, nullptr, {}, {9}, true);
}

TEST_CASE("sparse kernels: bf16, and results of f32, which no access of 16 bytes holds as many of") {
  for (const char* kind : {"power-law", "block", "full", "one column"}) {
    CAPTURE(kind);
    const Csr m = sparse_test::random_matrix(kind, 75, 13);
    // Rows of C that allow accesses of 16 bytes, of 8, of 4.
    for (const RowPitch& pitch :
         {RowPitch{136}, RowPitch{24, 0, 2, 2}, RowPitch{24, 0, 1, 0}, RowPitch{20, 4, 12, 4}}) {
      CAPTURE(pitch.width);
      const apl_sparse_options rows{.window = -1, .warp_row = 4, .block_row = 12, .staged = -1};
      check_spmm<Bfloat, float>(m, nullptr, rows, pitch);
      check_spmm<Half, float>(m, nullptr, rows, pitch);
      check_spmm<Bfloat, float>(m, nullptr, {.window = 16, .split = 2}, pitch);
      check_spmm<Half, float>(m, nullptr, {.window = 32}, pitch);
    }
    check_spmm<Bfloat, float>(m, nullptr, {.window = -1, .staged = 1}, {40});
    for (const int window : {-1, 8}) {
      check_sddmm<Bfloat, float>(m, nullptr, {.window = window}, {48, 1, 2}, true);
      check_sddmm<Bfloat, float>(m, nullptr, {.window = window}, {160}, false);
      check_sddmm<Half, float>(m, nullptr, {.window = window}, {64}, true);
    }
  }
}

TEST_CASE("sparse kernels: values may be set again") {
  Bridge& bridge = emulator();
  const std::uint64_t mark = bridge.mark();
  const Csr m = sparse_test::random_matrix("full", 20, 1);
  const apl_sparse_csr csr = apl::csr_view(m);
  const apl_sparse_options options{.window = 16};
  apl_sparse_packed* packed = nullptr;
  REQUIRE(apl_sparse_packed_make(&csr, nullptr, &device(), APL_F16, 16, &options, &packed) == APL_SPARSE_FINE);
  apl_sparse_operand a{};
  check(bridge, apl_sparse_upload(bridge.context(), packed, APL_F16, &a));
  apl_sparse_packed_free(packed);
  std::vector<double> ones(m.values.size(), 1);
  check(bridge, apl_sparse_set_values(bridge.context(), &a, upload<Half>(bridge, m.values, "values")));
  check(bridge, apl_sparse_set_values(bridge.context(), &a, upload<Half>(bridge, ones, "ones")));
  Dense<Half> b(m.columns, 8, 8, 0), c(m.rows, 8, 8, 0);
  const apl_sparse_dense b_there = b.on(bridge, "B", true), c_there = c.on(bridge, "C", false);
  check(bridge, apl_sparse_spmm(bridge.context(), &a, b_there, c_there, 8, nullptr, nullptr));
  double sum = 0;
  for (std::int64_t k = 0; k < m.columns; ++k) sum += to_number(b.at(k, 3));
  Half first{};
  REQUIRE(bridge.backend().download(&first, static_cast<const Half*>(c_there.data) + 3, 2));
  CHECK(to_number(first) == sum);
  REQUIRE(bridge.release_since(mark));
}

TEST_CASE("sparse kernels: waves of 64 threads gather, stage and sample") {
  struct Waves {
    Waves() { has_waves_of_64 = true; }
    ~Waves() { has_waves_of_64 = false; }
  } waves;
  REQUIRE(device().warp == 64);
  const Csr m = sparse_test::random_matrix("power-law", 90, 4);
  // Windows are for matrix units that it has not: where they are wished for, rows are gathered.
  check_spmm<Half>(m, nullptr, {.window = 8, .warp_row = 6, .block_row = 20}, {40});
  check_sddmm<Half>(m, nullptr, {.window = 8}, {70}, true);
  check_spmm<double>(m, nullptr, {.warp_row = 6, .block_row = 20, .lanes = 16}, {33});
  check_spmm<float>(m, nullptr, {.window = -1, .staged = 1}, {12});
  check_sddmm<float>(m, nullptr, {}, {7}, false);
}
