// The packer and the reference executor: whatever the plan, each non-zero is in one tile, at its position, and products
// are those of the dense matrix.
#include "tests/unit/sparse/tiles.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <numeric>
#include <random>
#include <string>

#include "tests/unit/sparse/matrices.h"

namespace apl::sparse_test {
namespace {

using namespace sparse;

std::string plan_head(const Csr& m) {
  return fmt::format("apl-sparse-plan 2\nmatrix {} {} {} {:x}\noperator spmm\ndense 8 part 8\n", m.rows, m.columns,
                     m.nonzeros(), pattern_hash(m));
}

// Any selections in any order, rows in any order.
std::string random_plan(const Csr& m, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string text = plan_head(m) + "note for a test\nform tiles\norder ";
  std::vector<std::int64_t> order(static_cast<std::size_t>(m.rows));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  text += seed % 3 == 0 ? "natural" : fmt::format("{}", fmt::join(order, " "));
  text += fmt::format("\nell 1 {} {} elements {} segments {}\n", 2 + random() % 3, 6 + random() % 30,
                      1 + random() % 100, 1 + random() % 40);
  const std::int64_t groups = (m.rows + 63) / 64;
  text += fmt::format("groups {}\n", groups);
  for (std::int64_t left = groups; left > 0;) {
    const std::int64_t here = 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(left));
    left -= here;
    text += fmt::format("{}", here);
    for (std::uint64_t k = random() % 8; k > 0; --k) {
      const std::uint64_t height = std::uint64_t{8} << random() % 4;
      text += fmt::format(" {}@{}>={}", height, random() % (64 / height), 1 + random() % (height / 2));
    }
    text += random() % 2 == 0 ? " ell\n" : " segments\n";
  }
  return text + "end\n";
}

TEST_CASE("compiler and runtime compute the same key") {
  for (const std::string& kind : kinds()) {
    const Csr m = random_matrix(kind, 70, 1);
    const apl_sparse_csr csr = apl::csr_view(m);
    CHECK(apl_sparse_hash(&csr) == pattern_hash(m));
  }
}

TEST_CASE("products over the tiles of the built-in plan are those of the dense matrix") {
  for (const std::string& kind : kinds())
    for (const std::int64_t size : {1, 9, 64, 65, 150}) {
      INFO(kind << " " << size);
      const Csr m = random_matrix(kind, size, 2);
      const PlanPointer plan = builtin_plan(m);
      REQUIRE(plan);
      const TilesPointer tiles = pack(m, *plan);
      REQUIRE(tiles);
      check_tiles(m, *tiles);
      check_products(m, *tiles, 5, size % 2 == 0 ? 2 : 0);
    }
}

TEST_CASE("the built-in plan takes blocks where rows share columns") {
  const PlanPointer blocks = builtin_plan(random_matrix("block", 128, 1)),
                    ell_rows = builtin_plan(random_matrix("uniform", 128, 1));
  CHECK(blocks->stretch[0].selections == 10);
  CHECK(ell_rows->stretch[0].selections == 0);
}

TEST_CASE("products over the tiles of any plan are those of the dense matrix") {
  for (const std::string& kind : kinds())
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      INFO(kind << ", seed " << seed);
      const Csr m = random_matrix(kind, static_cast<std::int64_t>(40 + 30 * (seed % 5)), seed);
      std::string message;
      const PlanPointer plan = parse_plan(random_plan(m, seed), &message);
      REQUIRE_MESSAGE(plan, message);
      const TilesPointer tiles = pack(m, *plan);
      REQUIRE(tiles);
      check_tiles(m, *tiles);
      check_products(m, *tiles, 3, 2);
    }
}

TEST_CASE("selections take what their thresholds say, first come first served") {
  // Rows 0 to 7 have columns 0 .. row: column c has 8 - c non-zeros.
  std::vector<std::pair<std::int32_t, std::int32_t>> points;
  for (std::int32_t row = 0; row < 8; ++row)
    for (std::int32_t column = 0; column <= row; ++column) points.emplace_back(row, column);
  const Csr m = pattern(20, 20, points);
  const PlanPointer plan = parse_plan(plan_head(m) +
                                      "form tiles\norder natural\nell 1 2 elements 4 segments 9\ngroups 1\n"
                                      "1 8@0>=6 16@0>=4 8@1>=1 ell\nend\n");
  REQUIRE(plan);
  const TilesPointer tiles = pack(m, *plan);
  REQUIRE(tiles);
  REQUIRE(tiles->blocks == 2);
  CHECK(std::vector<std::int32_t>(tiles->block_column, tiles->block_column + 4) ==
        std::vector<std::int32_t>{0, 1, 2, 2});
  CHECK(std::vector<std::int32_t>(tiles->block_column + 16, tiles->block_column + 19) ==
        std::vector<std::int32_t>{3, 4, 4});
  CHECK(tiles->block_elements == 16 * (8 + 16));
  // Rows 5, 6, 7 keep 1, 2, 3: lists of 1, 2, 2 and 1.
  CHECK(tiles->ell_rows == 4);
  CHECK(tiles->ell_elements == 6);
  check_tiles(m, *tiles);
}

TEST_CASE("a plan for another matrix is refused") {
  const Csr m = random_matrix("uniform", 30, 1);
  const PlanPointer plan = builtin_plan(random_matrix("uniform", 30, 2)), own = builtin_plan(m);
  CHECK_FALSE(pack(m, *plan));
  own->hash ^= 1;
  CHECK_FALSE(pack(m, *own));
}

TEST_CASE("tiles of far more padding than the matrix has elements are refused before there is memory for them") {
  std::vector<std::pair<std::int32_t, std::int32_t>> diagonal;
  for (std::int32_t row = 0; row < 64000; ++row) diagonal.emplace_back(row, row);
  const Csr m = pattern(64000, 64000, diagonal);
  const apl_sparse_csr csr = apl::csr_view(m);
  const auto status_of = [&](const std::string& width, const std::string& stretch) {
    const PlanPointer plan = parse_plan(plan_head(m) + "form tiles\norder natural\nell " + width +
                                        " elements 1073741824 segments 9\ngroups 1000\n1000 " + stretch + "\nend\n");
    REQUIRE(plan);
    apl_sparse_tiles* tiles = nullptr;
    const int status = apl_sparse_pack(&csr, plan.get(), &tiles);
    apl_sparse_tiles_free(tiles);
    return status;
  };
  // 32 elements for each row and non-zero, and four million: 8.3 million, or 129 a row.
  CHECK(status_of("1048576", "ell") == APL_SPARSE_PADDED);
  CHECK(status_of("130", "ell") == APL_SPARSE_PADDED);
  CHECK(status_of("129", "ell") == APL_SPARSE_FINE);
  CHECK(status_of("1048576", "segments") == APL_SPARSE_FINE);
  CHECK(status_of("1048576", "64@0>=1 ell") == APL_SPARSE_FINE);
  CHECK(status_of("129", "64@0>=2 64@0>=1 ell") == APL_SPARSE_FINE);
}

TEST_CASE("plans of version 1 have other words for the same") {
  const Csr m = random_matrix("uniform", 130, 1);
  const std::string head = plan_head(m), old_head = "apl-sparse-plan 1" + head.substr(head.find('\n'));
  const PlanPointer now = parse_plan(
      head + "form tiles\norder natural\nell 1 2 elements 4 segments 9\ngroups 3\n1 8@0>=2 ell\n2 segments\nend\n");
  const PlanPointer old = parse_plan(
      old_head + "form tiles\norder natural\nlists 1 2 elements 4 run 9\ngroups 3\n1 8@0>=2 ell\n2 run\nend\n");
  REQUIRE(now);
  REQUIRE(old);
  CHECK(old->widths == now->widths);
  CHECK(old->width[1] == now->width[1]);
  CHECK(old->ell_elements == now->ell_elements);
  CHECK(old->segment_length == 9);
  REQUIRE(old->stretches == now->stretches);
  for (std::int64_t k = 0; k < now->stretches; ++k) CHECK(old->stretch[k].segments == now->stretch[k].segments);
}

TEST_CASE("what is wrong with a plan's text is said at its line") {
  const Csr m = random_matrix("uniform", 70, 1);
  const std::string good =
      plan_head(m) + "form tiles\norder natural\nell 1 2 elements 4 segments 9\ngroups 2\n2 ell\nend\n";
  REQUIRE(parse_plan(good));
  REQUIRE(parse_plan(plan_head(m) + "form dense\nend\n"));
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    std::string message;
    CHECK_FALSE(parse_plan(text, &message));
    return message;
  };
  CHECK(changed("plan 2", "plan 3") == "line 1: expected a number from 1 to 2");
  CHECK(changed("plan 2", "plan 1") == "line 7: expected `lists`");
  CHECK(changed("\nell", "\nlists") == "line 7: expected `ell`");
  CHECK(changed("segments", "run") == "line 7: expected `segments`");
  CHECK(changed("spmm", "spmv") == "line 3: expected `spmm`");
  CHECK(changed("natural", "1 0") == "line 6: the order of 70 rows is missing");
  CHECK(changed("natural", fmt::format("{}", fmt::join(std::vector<int>(70, 3), " "))) ==
        "line 6: row 3 is there twice");
  CHECK(changed("1 2 elements", "2 1 elements") == "line 7: expected a number from 3 to 1048576");
  CHECK(changed("groups 2", "groups 3") == "line 8: expected a number from 0 to 2");
  CHECK(changed("2 ell", "3 ell") == "line 9: expected a number from 1 to 2");
  CHECK(changed("2 ell", "1 ell") == "line 10: expected a number from 1 to 1");
  CHECK(changed("2 ell", "2 12@0>=1 ell") == "line 9: windows have 8, 16, 32 or 64 rows");
  CHECK(changed("2 ell", "2 32@2>=1 ell") == "line 9: expected a number from 0 to 1");
  CHECK(changed("2 ell", "2 8@0>=9 ell") == "line 9: expected a number from 1 to 8");
  std::string many;
  for (int k = 0; k < 257; ++k) many += " 8@0>=1";
  CHECK(changed("2 ell", "2" + many + " ell") == "line 9: more than 256 selections");
  CHECK(changed("end\n", "end\nmore") == "line 11: text after the plan's end");
}

}  // namespace
}  // namespace apl::sparse_test
