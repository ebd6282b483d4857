// One group of rows: its candidates, what is withdrawn, and the shapes of its tiles.
#include <doctest/doctest.h>

#include <bit>
#include <random>

#include "passes/sparse/bits.h"
#include "passes/sparse/greedy.h"
#include "passes/sparse/group_cover.h"
#include "passes/sparse/profile.h"
#include "tests/unit/sparse/matrices.h"

namespace apl::sparse_test {
namespace {

using namespace sparse;

// Blocks of 8 and 16 rows that cost 50 and 60 a step, 79 a tile; lists that nobody wants.
Profile two_heights() {
  Profile profile = *builtin_profile("h200");
  profile.blocks = {{Operator::spmm, 8, 128, 50}, {Operator::spmm, 16, 128, 60}};
  profile.spmm_ell.b = profile.spmm_segments.b = 1e5;
  return profile;
}

// 8 full rows of 16 columns, then one row with the first `more` of them.
Csr full_and_more(std::int32_t more) {
  std::vector<std::pair<std::int32_t, std::int32_t>> points;
  for (std::int32_t row = 0; row < 8; ++row)
    for (std::int32_t column = 0; column < 16; ++column) points.emplace_back(row, column);
  for (std::int32_t column = 0; column < more; ++column) points.emplace_back(8, column);
  return pattern(64, 16, points);
}

TEST_CASE("a taller window replaces what it covers, and takes its non-zeros over") {
  const Profile profile = two_heights();
  const CostModel model(profile, {}, 128);
  const RemainderShape remainder{profile.widths, profile.ell_elements, profile.segment_length};
  RowGroup group;
  group.read(full_and_more(8), {}, 0);
  for (const bool withdraw : {true, false}) {
    GroupCover cover(model, remainder, {});
    cover.start(group);
    // 8 rows: 129 for 128 points; 16 rows: 139 for 136.
    CHECK(cover.find_best() == doctest::Approx(129.0 / 128));
    CHECK(cover.find_replacement() > 1e9);
    cover_greedily(cover, {1.0, withdraw, 0});
    CHECK(cover.done());
    CHECK(cover.withdrawn() == (withdraw ? 1 : 0));
    std::vector<Selection> selections;
    cover.finish(selections);
    if (withdraw) CHECK(selections == std::vector<Selection>{{16, 0, 8}});
    if (!withdraw) CHECK(selections == std::vector<Selection>{{8, 0, 8}, {8, 1, 1}});
  }
}

TEST_CASE("nothing is lost when selections are withdrawn") {
  // Without lists all must end in blocks, whatever was given back on the way.
  const Profile profile = two_heights();
  const CostModel model(profile, {}, 128);
  const RemainderShape remainder{profile.widths, profile.ell_elements, profile.segment_length};
  for (std::int32_t more = 0; more <= 16; ++more) {
    RowGroup group;
    group.read(full_and_more(more), {}, 0);
    GroupCover cover(model, remainder, {true, false, false});
    cover.start(group);
    cover_greedily(cover, {1.0, true, 0});
    CHECK(cover.done());
    std::vector<Selection> selections;
    cover.finish(selections);
    std::vector<TileShape> shapes;
    GroupTiles(remainder, 16).append(group, selections, Remainder::ell, shapes);
    for (const TileShape& shape : shapes) CHECK(shape.kind == TileShape::Kind::block);
  }
}

std::vector<TileShape> shapes_of(const Csr& matrix, std::vector<Selection> selections, Remainder kind) {
  const RemainderShape remainder{{1, 4}, 8, 6};
  RowGroup group;
  group.read(matrix, {}, 0);
  std::vector<TileShape> shapes;
  GroupTiles(remainder, matrix.columns).append(group, selections, kind, shapes);
  return shapes;
}

TEST_CASE("tiles that share a row with another are marked") {
  // Row 0 has 9 non-zeros, pieces of 4, 4 and 1; row 8 has one of its own.
  std::vector<std::pair<std::int32_t, std::int32_t>> points;
  for (std::int32_t column = 0; column < 9; ++column) points.emplace_back(0, column);
  points.emplace_back(8, 3);
  const Csr matrix = pattern(16, 16, points);
  const std::vector<TileShape> ell_rows = shapes_of(matrix, {}, Remainder::ell);
  REQUIRE(ell_rows.size() == 2);
  CHECK(ell_rows[0].rows == 2);  // lists of 1: both rows
  CHECK(ell_rows[0].columns == 2);
  CHECK(ell_rows[0].shared);
  CHECK(ell_rows[1].columns == 8);
  CHECK(ell_rows[1].shared);
  // A block of row 8 alone shares nothing; then the lists do among themselves.
  const std::vector<TileShape> mixed = shapes_of(matrix, {{8, 1, 1}}, Remainder::ell);
  REQUIRE(mixed.size() == 3);
  CHECK(mixed[0].kind == TileShape::Kind::block);
  CHECK_FALSE(mixed[0].shared);
  CHECK(mixed[1].shared);
  // Runs of 6: the second has the rest of row 0 and row 8.
  const std::vector<TileShape> segments = shapes_of(matrix, {}, Remainder::segment);
  REQUIRE(segments.size() == 2);
  CHECK(segments[0].shared);
  CHECK(segments[1].rows == 2);
  CHECK_FALSE(shapes_of(pattern(16, 16, {{0, 1}, {0, 2}, {3, 1}}), {}, Remainder::segment)[0].shared);
}

TEST_CASE("bits are counted in each byte and together") {
  std::mt19937_64 random(2);
  for (int round = 0; round < 1000; ++round) {
    const std::uint64_t bits = round == 0 ? 0 : round == 1 ? ~std::uint64_t{0} : random() & (random() | random());
    CHECK(count_bits(bits) == std::popcount(bits));
    for (int byte = 0; byte < 8; ++byte)
      CHECK(static_cast<int>(byte_counts(bits) >> (8 * byte) & 0xFF) == std::popcount(bits >> (8 * byte) & 0xFF));
  }
}

}  // namespace
}  // namespace apl::sparse_test
