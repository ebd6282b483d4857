// What definitions 1 to 8 of STile ask holds after every step of the search, not only for the plan at its end.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>

#include "passes/sparse/definitions.h"
#include "passes/sparse/greedy.h"
#include "passes/sparse/group_cover.h"
#include "passes/sparse/profile.h"
#include "tests/unit/sparse/matrices.h"

namespace apl::sparse_test {
namespace {

using namespace sparse;

// Block tiles of the selections, one a step of 16 columns, level by level; then ELL rows of what is left.
std::vector<Tile> tiles_of(const Csr& matrix, const RowGroup& group, const std::vector<Selection>& selections) {
  std::vector<Tile> tiles;
  std::vector<std::uint64_t> left = group.rows;
  int level = 0;
  for (const Selection& selection : selections) {
    std::vector<std::size_t> taken;
    for (std::size_t k = 0; k < left.size(); ++k)
      if (std::popcount(left[k] & selection.rows()) >= selection.threshold) taken.push_back(k);
    level += !taken.empty();
    for (std::size_t first = 0; first < taken.size(); first += kStepColumns) {
      Tile tile{Format::block, {}, {}, selection.height, kStepColumns, {}, level};
      for (std::int32_t row = 0; row < selection.height; ++row) tile.rows.push_back(selection.offset() + row);
      for (std::size_t k = first; k < std::min(taken.size(), first + kStepColumns); ++k) {
        tile.columns.push_back(group.column[taken[k]]);
        for (std::uint64_t rows = left[taken[k]] & selection.rows(); rows; rows &= rows - 1)
          tile.points.push_back({std::countr_zero(rows), group.column[taken[k]]});
        left[taken[k]] &= ~selection.rows();
      }
      tiles.push_back(tile);
    }
  }
  for (Tile& tile : sparse::apply(ell_format(), remaining(matrix, tiles))) {
    tile.level = level + 1;
    tiles.push_back(tile);
  }
  return tiles;
}

// A cover that is looked at after each of its steps.
struct WatchedCover {
  const Csr& matrix;
  const RowGroup& group;
  GroupCover& cover;
  const CostModel& model;
  const RemainderShape& remainder;
  int steps = 0, replaced = 0;
  std::size_t levels = 0;

  bool done() const { return cover.done(); }
  double limit() const { return cover.limit(); }
  double find_best() { return cover.find_best(); }
  double find_replacement() { return cover.find_replacement(); }
  void select(double most) {
    cover.select(most);
    look();
  }
  void replace() {
    cover.replace();
    ++replaced;
    look();
  }

  void look() {
    ++steps;
    std::vector<Selection> selections;
    cover.finish(selections);
    const std::vector<Tile> tiles = tiles_of(matrix, group, selections);
    const TileLimits limits{{{8, 16}, {16, 16}, {32, 16}, {64, 16}}, 1 << 20};
    for (const Tile& tile : tiles) CHECK(check_tile(matrix, tile, &limits));
    CHECK(check_selection(matrix, tiles));
    for (const std::int64_t part : {3, 8}) CHECK(check_partition(matrix, tiles, 8, partition_tasks(tiles, 8, part)));
    // Definition 7: the next level is made of what the blocks leave, which the cover knows.
    std::vector<Tile> blocks = tiles;
    std::erase_if(blocks, [](const Tile& tile) { return tile.format != Format::block; });
    CHECK(cover.done() == (remaining(matrix, blocks).nonzeros() == 0));
    levels = std::max(levels, selections.size());
    // Definition 6: the busiest of three workers has at least its share, and at most the longest sub-task more.
    std::vector<TileShape> shapes;
    GroupTiles(remainder, matrix.columns).append(group, selections, Remainder::ell, shapes);
    std::vector<double> costs;
    double all = 0, longest = 0;
    for (const TileShape& shape : shapes) {
      costs.push_back(model.cost(shape));
      CHECK(costs.back() > 0);
      all += costs.back();
      longest = std::max(longest, costs.back());
    }
    const double cost = partition_cost(costs, 3);
    CHECK(cost >= std::max(longest, all / 3) * (1 - 1e-12));
    CHECK(cost <= all / 3 + longest * 2 / 3 + 1e-9);
  }
};

TEST_CASE("after every step each non-zero is covered once, by tiles and sub-tasks that the definitions allow") {
  // Costs at which blocks of all heights are worth it, and are withdrawn for others.
  Profile profile = *builtin_profile("h200");
  profile.blocks = {{Operator::spmm, 8, 128, 50},   {Operator::spmm, 16, 128, 60}, {Operator::spmm, 32, 128, 80},
                    {Operator::spmm, 64, 128, 120}, {Operator::sddmm, 8, 128, 55}, {Operator::sddmm, 16, 128, 70},
                    {Operator::sddmm, 32, 128, 85}};
  const RemainderShape remainder{profile.widths, profile.ell_elements, profile.segment_length};
  const CostModel models[] = {CostModel(profile, {}, 128), CostModel(profile, {Operator::sddmm, 128, 2}, 128)};
  int steps = 0, replaced = 0;
  std::size_t levels = 0;
  for (const std::string& kind : kinds())
    for (int setting = 0; setting < 16; ++setting) {
      const CostModel& model = models[setting / 8];
      Csr matrix = random_matrix(kind, 64, static_cast<std::uint64_t>(setting));
      RowGroup group;
      group.read(matrix, {}, 0);
      if (group.entries == 0) continue;
      INFO(kind << ", setting " << setting);
      GroupCover cover(model, remainder, {true, setting % 4 < 2, setting % 4 == 2});  // 3: blocks alone
      cover.start(group);
      WatchedCover watched{matrix, group, cover, model, remainder};
      cover_greedily(watched, {setting % 2 == 0 ? 1.2 : 1.0, setting % 8 < 6, 0});
      if (setting % 4 == 3) CHECK(cover.done());
      steps += watched.steps;
      replaced += watched.replaced;
      levels = std::max(levels, watched.levels);
    }
  CHECK(steps > 200);
  CHECK(replaced > 0);
  CHECK(levels > 2);
}

}  // namespace
}  // namespace apl::sparse_test
