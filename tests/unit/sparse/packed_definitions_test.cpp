// Definitions 1 to 8 of STile for the operands that kernels for GPUs run: whatever a plan or the rules compose of
// windows, rows and pieces.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "passes/sparse/definitions.h"
#include "passes/sparse/row_group.h"
#include "runtime/sparse/device_operand.h"
#include "tests/unit/sparse/matrices.h"
#include "tests/unit/sparse/tiles.h"

namespace apl::sparse_test {
namespace {

using namespace sparse;

constexpr std::int64_t kUnit = 8 * kStepColumns;  // values of 8 rows and a step's columns

struct Packed {
  apl_sparse_packed* operand = nullptr;
  Packed(const Csr& matrix, const apl_sparse_plan* plan, std::int32_t type, const apl_sparse_options& options) {
    const apl_sparse_csr csr = csr_view(matrix);
    REQUIRE(apl_sparse_packed_make(&csr, plan, &h200(), type, 64, &options, &operand) == APL_SPARSE_FINE);
  }
  ~Packed() { apl_sparse_packed_free(operand); }
  Packed(const Packed&) = delete;
  Packed& operator=(const Packed&) = delete;
};

// A record of the rows' part is a list, a unit of a window a block; what is in them, where the values go says.
std::vector<Tile> tiles_of(const Csr& matrix, const apl_sparse_packed& p) {
  std::map<std::int64_t, Tile> lists, blocks;  // by their first slot
  std::map<std::int64_t, std::int64_t> record_at;
  for (std::int64_t k = 0; k < p.records; ++k) record_at[p.record[4 * k + 1]] = k;
  for (std::int64_t row = 0; row < matrix.rows; ++row)
    for (std::int64_t k = matrix.row_start[static_cast<std::size_t>(row)];
         k < matrix.row_start[static_cast<std::size_t>(row) + 1]; ++k) {
      const std::int64_t slot = p.slot[k];
      const Point point{static_cast<std::int32_t>(row), matrix.column[static_cast<std::size_t>(k)]};
      if (slot >= p.row_elements) {
        const std::int64_t unit = (slot - p.row_elements) / kUnit;
        Tile& tile = blocks.try_emplace(unit, Tile{Format::block, {}, {}, 8, kStepColumns, {}}).first->second;
        for (auto [list, number] : {std::pair{&tile.rows, point.row}, std::pair{&tile.columns, point.column}})
          if (std::ranges::find(*list, number) == list->end()) list->push_back(number);
        tile.points.push_back(point);
        continue;
      }
      const auto record = std::prev(record_at.upper_bound(slot));
      const std::int32_t* numbers = p.record + 4 * record->second;
      CHECK(slot < record->first + numbers[2]);
      CHECK(p.row_column[slot] == point.column);
      Tile& tile =
          lists.try_emplace(record->first, Tile{Format::ell, {numbers[0]}, {}, 1, numbers[2], {}}).first->second;
      tile.points.push_back(point);
    }
  std::vector<Tile> tiles;
  for (auto* made : {&blocks, &lists})
    for (auto& [at, tile] : *made) tiles.push_back(std::move(tile));
  return tiles;
}

// Every row has one owner: a row of a window, one record, or the records of its pieces, which one sum joins in their
// order.
void check_owners(const Csr& matrix, const apl_sparse_packed& p) {
  std::vector<int> in_windows(static_cast<std::size_t>(matrix.rows)), whole(in_windows), cut(in_windows);
  for (std::int64_t k = 0; k < 8 * std::int64_t{p.parts} * p.windows; ++k)
    if (p.window_row[k] >= 0) ++in_windows.at(static_cast<std::size_t>(p.window_row[k]));
  std::map<std::int32_t, std::int32_t> row_of_piece;
  for (std::int64_t k = 0; k < p.records; ++k) {
    const std::int32_t* record = p.record + 4 * k;
    if (record[3] == 0) {
      ++whole.at(static_cast<std::size_t>(record[0]));
    } else {
      CHECK(row_of_piece.emplace(record[3] - 1, record[0]).second);
    }
  }
  CHECK(static_cast<std::int32_t>(row_of_piece.size()) == p.pieces);
  for (std::int64_t k = 0; k < p.cuts; ++k) {
    const std::int32_t* row = p.cut + 4 * k;
    ++cut.at(static_cast<std::size_t>(row[0]));
    for (std::int32_t piece = row[1]; piece < row[1] + row[2]; ++piece) row_of_piece.erase(piece);
  }
  CHECK(row_of_piece.empty());
  for (std::size_t row = 0; row < in_windows.size(); ++row) CHECK(in_windows[row] + whole[row] + cut[row] == 1);
}

std::string random_plan(const Csr& matrix, std::mt19937_64& random) {
  const auto one_of = [&](const auto& list) { return list[random() % list.size()]; };
  std::string text =
      fmt::format("apl-sparse-plan 2\nmatrix {} {} {} {:x}\noperator spmm\ndense 64 part 64\nform tiles\n", matrix.rows,
                  matrix.columns, matrix.nonzeros(), pattern_hash(matrix));
  std::vector<std::int64_t> order(static_cast<std::size_t>(matrix.rows));
  for (std::size_t k = 0; k < order.size(); ++k) order[k] = static_cast<std::int64_t>(k);
  std::ranges::shuffle(order, random);
  text += random() % 2 == 0 || order.empty() ? "order natural\n" : fmt::format("order {}\n", fmt::join(order, " "));
  const std::int64_t groups = (matrix.rows + kGroupRows - 1) / kGroupRows;
  text += fmt::format("ell 1 2 4 elements 64 segments {}\ngroups {}\n", 4 + random() % 40, groups);
  for (std::int64_t group = 0; group < groups; ++group) {
    text += "1";
    for (std::uint64_t left = random() % 3; left > 0; --left) {
      const int height = one_of(std::vector{8, 16, 32, 64});
      text += fmt::format(" {}@{}>={}", height, random() % static_cast<std::uint64_t>(64 / height), 1 + random() % 4);
    }
    text += random() % 2 == 0 ? " ell\n" : " segments\n";
  }
  return text + "end\n";
}

TEST_CASE("packed operands: every non-zero is once in a tile that the definitions allow, every row has one owner") {
  std::mt19937_64 random(5);
  std::int64_t windows = 0, whole = 0, pieces = 0, orders = 0;
  for (const std::string& kind : kinds())
    for (std::uint64_t setting = 0; setting < 24; ++setting) {
      const Csr matrix = random_matrix(kind, 150, setting);
      if (matrix.rows == 0) continue;
      const std::string text = setting % 3 == 0 ? "" : random_plan(matrix, random);
      INFO(kind << ", setting " << setting << "\n" << text);
      const PlanPointer plan = text.empty() ? nullptr : parse_plan(text);
      REQUIRE((plan || text.empty()));
      apl_sparse_options options{};
      if (!plan) options.window = std::vector{0, -1, 8, 16, 32}[random() % 5];
      if (random() % 2 == 0) options.piece = 16;
      const std::int32_t type = std::vector<std::int32_t>{APL_F16, APL_BF16, APL_F32, APL_F64, APL_I8}[random() % 5];
      if (type != APL_F16 && type != APL_BF16) options.window = std::min(options.window, 16);
      const Packed packed(matrix, plan.get(), type, options);
      const apl_sparse_packed& p = *packed.operand;
      const std::vector<Tile> tiles = tiles_of(matrix, p);
      const TileLimits limits{{{8, kStepColumns}}, matrix.columns + 4};
      for (const Tile& tile : tiles) CHECK(check_tile(matrix, tile, &limits));
      CHECK(check_selection(matrix, tiles));
      for (const std::int64_t part : {8, 24, 64})
        CHECK(check_partition(matrix, tiles, 64, partition_tasks(tiles, 64, part)));
      check_owners(matrix, p);
      // Definition 6, the longest first: windows by their steps, records in classes by their lengths.
      for (std::int64_t k = 1; k < p.longs; ++k)
        if (p.sorted > 0) CHECK(p.record[4 * (k - 1) + 2] >= p.record[4 * k + 2]);
      windows += p.windows;
      whole += p.records - p.pieces;
      pieces += p.pieces;
      orders += plan && plan->row_order;
    }
  CHECK(windows > 300);
  CHECK(whole > 3000);
  CHECK(pieces > 1000);
  CHECK(orders > 40);
}

}  // namespace
}  // namespace apl::sparse_test
