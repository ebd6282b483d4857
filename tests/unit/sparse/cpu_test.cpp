// Fast products on CPUs against plain loops: all types, formats, sizes of the dense loop, cuts and threads.
#include "runtime/sparse/cpu.h"

#include <doctest/doctest.h>

#include <fmt/format.h>

#include <bit>
#include <thread>
#include <vector>

#include "tests/unit/sparse/matrices.h"
#include "tests/unit/sparse/tiles.h"

namespace apl::sparse_test {
namespace {

struct FreePacked {
  void operator()(apl_sparse_cpu_packed* packed_tiles) const { apl_sparse_cpu_packed_free(packed_tiles); }
};
using PackedPointer = std::unique_ptr<apl_sparse_cpu_packed, FreePacked>;

PackedPointer packed_of(const apl_sparse_tiles& tiles, int threads) {
  apl_sparse_cpu_packed* packed_tiles = nullptr;
  REQUIRE(apl_sparse_cpu_packed_new(&tiles, threads, &packed_tiles) == APL_SPARSE_FINE);
  return PackedPointer(packed_tiles);
}

PlanPointer plan_like(const sparse::Csr& m, const std::string& how, const std::string& order) {
  const std::int64_t groups = (m.rows + APL_SPARSE_GROUP - 1) / APL_SPARSE_GROUP;
  std::string text = fmt::format(
      "apl-sparse-plan 2\nmatrix {} {} {} {:x}\noperator spmm\ndense 8 part 8\nform tiles\norder {}\n"
      "ell 1 2 3 5 8 elements 40 segments 30\ngroups {}\n",
      m.rows, m.columns, m.nonzeros(), sparse::pattern_hash(m), order, groups);
  if (groups > 0) text += fmt::format("{} {}\n", groups, how);
  std::string message;
  PlanPointer plan = parse_plan(text + "end\n", &message);
  REQUIRE_MESSAGE(plan, message);
  return plan;
}

// Whole numbers, which every type holds; sums may not fit, and are cut off or rounded as the type says.
template <class Number>
std::vector<Number> small_numbers(std::int64_t count, int seed) {
  std::vector<Number> numbers(static_cast<std::size_t>(count));
  for (std::size_t k = 0; k < numbers.size(); ++k)
    numbers[k] = static_cast<Number>(static_cast<int>((k * 7 + k / 5 + static_cast<std::size_t>(seed)) % 9) - 4);
  return numbers;
}

void work_on_cpu(apl_sparse_cpu_call& call, int threads) {
  std::vector<std::thread> others;
  for (int k = 1; k < threads; ++k) others.emplace_back([&call] { apl_sparse_cpu_work(&call); });
  apl_sparse_cpu_work(&call);
  for (std::thread& other : others) other.join();
}

// bf16, of whole numbers.
struct Bfloat {
  explicit Bfloat(std::int64_t number = 0)
      : bits(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(number)) >> 16)) {}
  explicit operator std::int64_t() const {
    return static_cast<std::int64_t>(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16));
  }
  std::uint16_t bits;
};

// Operands of Number, results of Result.
template <class Number, class Result = Number>
void check_on_cpu(const sparse::Csr& m, const apl_sparse_cpu_packed& packed_tiles, apl_sparse_type type,
                  std::int64_t dense, std::int64_t part, int threads) {
  // Rows lie a little apart; what is between them stays as it is.
  const std::int64_t stride = dense + 3;
  std::vector<Number> values;
  for (const double value : m.values) values.push_back(static_cast<Number>(static_cast<int>(value)));
  const auto b = small_numbers<Number>(m.columns * stride, 1), x = small_numbers<Number>(m.rows * stride, 5);
  const Result untouched = static_cast<Result>(77);
  std::vector<Result> c(static_cast<std::size_t>(m.rows * stride), untouched), wanted = c, samples(values.size()),
                                                                               sampled;
  std::vector<unsigned char> packed(apl_sparse_cpu_values_bytes(&packed_tiles, type));
  apl_sparse_cpu_values(&packed_tiles, type, values.data(), packed.data());
  const auto sum_up = [&](auto&& term, std::int64_t begin, std::int64_t end) {
    std::int64_t sum = 0;
    for (std::int64_t k = begin; k < end; ++k) sum += term(k);
    return static_cast<Result>(sum);
  };
  const auto at = [](const std::vector<Number>& v, std::int64_t k) {
    return static_cast<std::int64_t>(v[static_cast<std::size_t>(k)]);
  };
  for (std::int64_t row = 0; row < m.rows; ++row) {
    const std::int64_t begin = m.row_start[static_cast<std::size_t>(row)], end = begin + m.length(row);
    for (std::int64_t j = 0; j < dense; ++j)
      wanted[static_cast<std::size_t>(row * stride + j)] = sum_up(
          [&](std::int64_t k) { return at(values, k) * at(b, m.column[static_cast<std::size_t>(k)] * stride + j); },
          begin, end);
    for (std::int64_t k = begin; k < end; ++k)
      samples[static_cast<std::size_t>(k)] =
          static_cast<Result>(at(values, k) * static_cast<std::int64_t>(sum_up(
                                                  [&](std::int64_t j) {
                                                    return at(x, row * stride + j) *
                                                           at(b, m.column[static_cast<std::size_t>(k)] * stride + j);
                                                  },
                                                  0, dense)));
  }
  apl_sparse_cpu_call call{};
  call.packed = &packed_tiles;
  call.type = type;
  call.values = packed.data();
  call.dense = dense;
  call.part = part;
  call.b = call.y = b.data();
  call.x = x.data();
  call.b_stride = call.x_stride = call.y_stride = call.c_stride = stride;
  call.c = c.data();
  work_on_cpu(call, threads);
  INFO("type " << type << ", dense " << dense << " in " << part << ", threads " << threads);
  CHECK(c == wanted);
  sampled.assign(samples.size(), untouched);
  call.sddmm = 1;
  call.next = 0;
  call.result = sampled.data();
  work_on_cpu(call, threads);
  CHECK(sampled == samples);
}

TEST_CASE("products on CPUs are those of plain loops") {
  // Blocks of all heights, taken one over the other, so that rows are set by one tile and added to by others.
  const std::vector<std::string> hows = {"ell",
                                         "segments",
                                         "8@7>=8 segments",
                                         "64@0>=30 32@1>=9 16@0>=4 8@0>=2 8@5>=2 ell",
                                         "32@0>=1 32@1>=1 segments",
                                         "8@0>=1 8@1>=2 8@3>=1 segments"};
  std::size_t round = 0;
  for (const std::string& kind : kinds())
    for (const std::string& how : hows) {
      const sparse::Csr m = random_matrix(kind, 40 + 35 * static_cast<std::int64_t>(round % 4), round);
      const std::int64_t dense = std::array<std::int64_t, 7>{1, 3, 8, 16, 32, 76, 135}[round % 7];
      const std::int64_t part = round % 3 == 0 ? 0 : round % 3 == 1 ? 32 : 5;
      const int threads = 1 + static_cast<int>(round % 3);
      std::string order = "natural";
      if (round % 2 == 1 && m.rows > 0) {
        order.clear();
        for (std::int64_t row = m.rows; row > 0; --row) order += fmt::format("{}{}", row == m.rows ? "" : " ", row - 1);
      }
      INFO(kind << ", " << how);
      const PlanPointer plan = plan_like(m, how, order);
      const TilesPointer tiles = pack(m, *plan);
      REQUIRE(tiles);
      // As they are: without tiles.
      const apl_sparse_csr csr = apl::csr_view(m);
      apl_sparse_cpu_packed* made = nullptr;
      if (how == "segments") REQUIRE(apl_sparse_cpu_packed_rows(&csr, threads, &made) == APL_SPARSE_FINE);
      const PackedPointer packed_tiles = made != nullptr ? PackedPointer(made) : packed_of(*tiles, threads);
      check_on_cpu<float>(m, *packed_tiles, APL_SPARSE_F32, dense, part, threads);
      check_on_cpu<double>(m, *packed_tiles, APL_SPARSE_F64, dense, part, threads);
#ifdef __FLT16_MAX__
      check_on_cpu<_Float16>(m, *packed_tiles, APL_SPARSE_F16, dense, part, threads);
      check_on_cpu<_Float16, float>(m, *packed_tiles, APL_SPARSE_F16_WIDE, dense, part, threads);
#endif
      check_on_cpu<Bfloat, float>(m, *packed_tiles, APL_SPARSE_BF16_WIDE, dense, part, threads);
      check_on_cpu<std::int8_t>(m, *packed_tiles, APL_SPARSE_I8, dense, part, threads);
      check_on_cpu<std::int16_t>(m, *packed_tiles, APL_SPARSE_I16, dense, part, threads);
      check_on_cpu<std::int32_t>(m, *packed_tiles, APL_SPARSE_I32, dense, part, threads);
      check_on_cpu<std::int64_t>(m, *packed_tiles, APL_SPARSE_I64, dense, part, threads);
      ++round;
    }
}

TEST_CASE("chunks have every group once, the longest first, and about as much work each") {
  const sparse::Csr m = random_matrix("uniform", 1500, 1);
  const TilesPointer tiles = pack(m, *plan_like(m, "segments", "natural"));
  const PackedPointer packed_tiles = packed_of(*tiles, 2);
  CHECK(packed_tiles->chunks >= 12);
  std::vector<int> seen(static_cast<std::size_t>(tiles->groups));
  for (std::int64_t k = 0; k < packed_tiles->chunks; ++k) {
    for (std::int64_t g = packed_tiles->chunk[k].begin; g < packed_tiles->chunk[k].end; ++g)
      ++seen[static_cast<std::size_t>(g)];
    if (k > 0) CHECK(packed_tiles->chunk[k].work <= packed_tiles->chunk[k - 1].work);
  }
  CHECK(seen == std::vector<int>(seen.size(), 1));
  // Little work is worth one thread.
  apl_sparse_cpu_call call{};
  call.packed = packed_tiles.get();
  call.dense = 128;
  CHECK(apl_sparse_cpu_threads(&call, 2) == 2);
  const sparse::Csr small = random_matrix("banded", 60, 1);
  const TilesPointer few = pack(small, *plan_like(small, "ell", "natural"));
  const PackedPointer one = packed_of(*few, 2);
  call.packed = one.get();
  CHECK(apl_sparse_cpu_threads(&call, 2) == 1);
}

}  // namespace
}  // namespace apl::sparse_test
