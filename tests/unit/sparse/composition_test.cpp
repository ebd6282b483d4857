// The algebra of the six primitives, and the numbers that STile's figures tell.
#include "passes/sparse/composition.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>

#include "passes/sparse/definitions.h"
#include "tests/unit/sparse/matrices.h"

namespace apl::sparse_test {
namespace {

using namespace sparse;

std::vector<Tile> tiles_of(const std::string& text, const Csr& matrix) {
  const auto composition = parse_composition(text);
  REQUIRE_MESSAGE(composition, composition.error().message);
  return sparse::apply(*composition, matrix);
}

// Costs of the example in section 1.
double block_cost(const Tile& tile) {
  static const std::map<std::int64_t, double> kCosts = {{1, 2}, {2, 4}, {4, 15}};
  return kCosts.at(tile.height);
}

double cost_of(const std::vector<Tile>& tiles) {
  double cost = 0;
  for (const Tile& tile : tiles) cost += tile.format == Format::block ? block_cost(tile) : 6;
  return cost;
}

TEST_CASE("compositions print as what they were parsed from") {
  const char* texts[] = {
      "",
      "reorder(rows) > reorder(columns)",
      "divide(rows, 2) > divide(columns, 2)",
      "divide(rows, 16) > reorder(columns) > divide(columns, 16)",
      "squeeze > pad(rows)",
      "divide(columns, 64) > reorder(rows) > squeeze > split(1|2|4) > pad(rows) > divide(rows, 8|4|2)",
      "squeeze > flatten > split(32) > divide(rows, 1)",
  };
  for (const char* text : texts) {
    const auto composition = parse_composition(text);
    REQUIRE_MESSAGE(composition, text);
    CHECK(to_text(*composition) == text);
  }
  CHECK(to_text(*parse_composition(" divide( rows ,2 )>divide(columns,2)")) == to_text(bsr_format(2)));
  CHECK(to_text(hyb_format(64, 4, 8)) == texts[5]);
}

TEST_CASE("steps that cannot follow each other are refused") {
  for (const char* text :
       {"turn", "divide(rows)", "divide(rows, 0)", "divide(both, 2)", "squeeze(2)", "split(2)",
        "squeeze > divide(columns, 2) > pad(rows)", "squeeze", "squeeze > split(4)", "pad(rows)",
        "squeeze > squeeze > pad(rows)", "flatten", "squeeze > pad(columns)", "squeeze > split(2) > flatten",
        "squeeze > split(4|2) > pad(rows)", "squeeze > split(2|4) > pad(rows) > divide(rows, 1|2|3)",
        "divide(rows, 2|3)", "squeeze > flatten > divide(rows, 1)", "divide(rows, 2) >> squeeze > pad(rows)"}) {
    const auto composition = parse_composition(text);
    CHECK_MESSAGE(!composition, text);
    if (!composition) CHECK(composition.error().code == Code::command_bad_argument);
  }
}

TEST_CASE("the five named formats cover every matrix once, in tiles of their shape") {
  struct Named {
    Composition composition;
    Format format;
    std::int64_t height, width;  // at most
  };
  const Named named[] = {
      {bsr_format(4), Format::block, 4, 4},
      {condensed_format(), Format::block, 16, 16},
      {hyb_format(8, 8, 16), Format::ell, 16, 8},
      {ell_format(), Format::ell, 1 << 20, 1 << 20},
      {one_d_format(8), Format::one_d, 1, 8},
      {bsr_format(1), Format::block, 1, 1},
      {condensed_format(8, 16), Format::block, 8, 16},
  };
  for (const std::string& kind : sparse_test::kinds())
    for (const Named& n : named)
      for (const std::int64_t size : {1, 7, 40}) {
        const Csr matrix = sparse_test::random_matrix(kind, size, 3);
        const std::vector<Tile> tiles = sparse::apply(n.composition, matrix);
        INFO(kind << " " << size << ": " << to_text(n.composition));
        const Status status = check_selection(matrix, tiles);
        CHECK_MESSAGE(status, status.error().message);
        for (const Tile& tile : tiles) {
          CHECK(tile.format == n.format);
          CHECK(tile.height <= n.height);
          CHECK(tile.width <= n.width);
        }
      }
}

TEST_CASE("tiles have the shapes of the hardware, and lists a bounded number of elements") {
  TileLimits limits = tensor_core_limits();
  limits.ell_elements = 64;
  const Csr matrix = sparse_test::random_matrix("power-law", 64, 1);
  const auto all_fit = [&](const Composition& composition) {
    const std::vector<Tile> tiles = sparse::apply(composition, matrix);
    return std::all_of(tiles.begin(), tiles.end(),
                       [&](const Tile& tile) { return static_cast<bool>(check_tile(matrix, tile, &limits)); });
  };
  CHECK(all_fit(condensed_format(16)));
  CHECK(all_fit(condensed_format(8)));
  CHECK(all_fit(condensed_format(16, 8)));
  CHECK_FALSE(all_fit(condensed_format(12)));
  CHECK_FALSE(all_fit(bsr_format(32)));
  CHECK(all_fit(hyb_format(64, 32, limits.ell_elements)));
  CHECK_FALSE(all_fit(hyb_format(64, 32, 2 * limits.ell_elements)));
  CHECK_FALSE(all_fit(ell_format()));
}

TEST_CASE("the example of figures 1 to 3 costs what the paper tells") {
  const Csr matrix = sparse_test::figure_matrix();
  const std::vector<Tile> single = tiles_of("divide(rows, 1) > divide(columns, 1)", matrix);
  CHECK(cost_of(single) == 20);
  const std::vector<Tile> aligned = tiles_of("divide(rows, 2) > divide(columns, 2)", matrix);
  CHECK(aligned.size() == 7);
  CHECK(cost_of(aligned) == 28);

  // One 2 by 2 block, the rest single.
  std::vector<Tile> mixed = {
      *std::find_if(aligned.begin(), aligned.end(), [](const Tile& t) { return t.points.size() == 4; })};
  for (const Tile& tile : sparse::apply(bsr_format(1), remaining(matrix, mixed))) mixed.push_back(tile);
  CHECK(mixed.size() == 7);
  CHECK(cost_of(mixed) == 16);
  CHECK(check_selection(matrix, mixed));

  // Reordered, two full blocks come together.
  std::vector<Tile> reordered;
  for (const Tile& tile : tiles_of("reorder(rows) > divide(rows, 2) > reorder(columns) > divide(columns, 2)", matrix))
    if (tile.points.size() == 4) reordered.push_back(tile);
  REQUIRE(reordered.size() == 2);
  CHECK(reordered[0].rows == std::vector<std::int32_t>{2, 3});
  CHECK(reordered[1].columns == std::vector<std::int32_t>{5, 6});
  const std::vector<Tile> blocks = reordered;
  for (const Tile& tile : sparse::apply(bsr_format(1), remaining(matrix, blocks))) reordered.push_back(tile);
  CHECK(cost_of(reordered) == 12);
  CHECK(check_selection(matrix, reordered));

  // Two parts of lists, two zeros padded.
  const std::vector<Tile> ell_rows = tiles_of("divide(rows, 4) > squeeze > pad(rows)", matrix);
  REQUIRE(ell_rows.size() == 2);
  CHECK(ell_rows[0].width == 2);
  CHECK(ell_rows[0].stored() + ell_rows[1].stored() - matrix.nonzeros() == 2);
  CHECK(cost_of(ell_rows) == 12);

  // Second level: what the blocks leave makes one list tile, of cost 3.
  std::vector<Tile> levels = blocks;
  for (Tile& tile : sparse::apply(ell_format(), remaining(matrix, blocks))) {
    CHECK(tile.points == std::vector<Point>{{1, 6}, {4, 1}});
    CHECK(tile.stored() == 2);
    tile.level = 2;
    levels.push_back(tile);
  }
  CHECK(levels.size() == 3);
  CHECK(cost_of(blocks) + 3 == 11);
  CHECK(check_selection(matrix, levels));
  levels.back().level = 3;
  CHECK_FALSE(check_selection(matrix, levels));
}

TEST_CASE("figure 4: two tiles and a dense loop cut in two make four sub-tasks") {
  const Csr matrix = sparse_test::pattern(3, 3, {{2, 0}, {0, 1}, {0, 2}});
  std::vector<Tile> tiles = tiles_of("divide(rows, 1) > squeeze > pad(rows)", matrix);
  REQUIRE(tiles.size() == 2);
  const std::vector<SubTask> tasks = partition_tasks(tiles, 2, 1);
  REQUIRE(tasks.size() == 4);
  CHECK(check_partition(matrix, tiles, 2, tasks));
  // u1 and u2 are (2, j, 0), u3 and u4 are (0, j, 1) and (0, j, 2), one j each.
  for (std::size_t k = 0; k < 4; ++k) {
    const Tile& tile = tiles[tasks[k].tile];
    CHECK((tile.points == std::vector<Point>{{2, 0}} || tile.points == std::vector<Point>{{0, 1}, {0, 2}}));
    CHECK(tasks[k].end == tasks[k].begin + 1);
    for (std::size_t other = 0; other < k; ++other)
      CHECK((tasks[k].tile != tasks[other].tile || tasks[k].begin != tasks[other].begin));
  }
  CHECK(partition_cost({2, 2, 1, 1}, 2) == 3);
  CHECK(partition_cost({3, 3, 2, 2}, 4) == 3);
  CHECK(partition_cost({}, 4) == 0);
  std::vector<SubTask> fewer(tasks.begin(), tasks.end() - 1), more = tasks;
  more.push_back(tasks[0]);
  CHECK_FALSE(check_partition(matrix, tiles, 2, fewer));
  CHECK_FALSE(check_partition(matrix, tiles, 2, more));
  CHECK(partition_tasks(tiles, 5, 2).size() == 6);
  CHECK(check_partition(matrix, tiles, 5, partition_tasks(tiles, 5, 2)));
}

TEST_CASE("a selection that misses a non-zero, has one twice or one that is none is refused") {
  const Csr matrix = sparse_test::figure_matrix();
  const std::vector<Tile> tiles = sparse::apply(bsr_format(2), matrix);
  std::vector<Tile> missing(tiles.begin() + 1, tiles.end()), twice = tiles, other = tiles;
  twice.push_back(tiles[0]);
  other[0].points.push_back({0, 0});
  CHECK_FALSE(check_selection(matrix, missing));
  CHECK_FALSE(check_selection(matrix, twice));
  CHECK_FALSE(check_selection(matrix, other));
  CHECK(remaining(matrix, tiles).nonzeros() == 0);
  CHECK(remaining(matrix, {}) == matrix);
}

TEST_CASE("the cost of a partition is at most 4/3 of the best assignment's") {
  std::mt19937_64 random(5);
  for (int round = 0; round < 200; ++round) {
    const int workers = 1 + static_cast<int>(random() % 3);
    std::vector<double> costs(random() % 8);
    for (double& cost : costs) cost = 1 + static_cast<double>(random() % 9);
    double best = 1e9;
    std::uint64_t assignments = 1;
    for (std::size_t k = 0; k < costs.size(); ++k) assignments *= static_cast<std::uint64_t>(workers);
    for (std::uint64_t a = 0; a < assignments; ++a) {
      std::vector<double> busy(static_cast<std::size_t>(workers));
      std::uint64_t remainder = a;
      for (const double cost : costs) {
        busy[remainder % static_cast<std::uint64_t>(workers)] += cost;
        remainder /= static_cast<std::uint64_t>(workers);
      }
      best = std::min(best, *std::max_element(busy.begin(), busy.end()));
    }
    const double found = partition_cost(costs, workers);
    CHECK(found >= best);
    CHECK(found <= best * 4 / 3 + 1e-9);
  }
}

}  // namespace
}  // namespace apl::sparse_test
