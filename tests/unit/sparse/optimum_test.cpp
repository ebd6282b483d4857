// The search beside the best plan there is, found by trying all: one group of rows, small matrices.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <random>
#include <vector>

#include "passes/sparse/search.h"
#include "tests/unit/sparse/matrices.h"
#include "tests/unit/sparse/searches.h"

namespace apl::sparse_test {
namespace {

using namespace sparse;

// One worker and nothing but tiles: a plan costs what its tiles cost together.
Profile summing_profile() {
  Profile profile = tile_profile(1);
  profile.widths = {1, 2, 4};
  profile.blocks = {{Operator::spmm, 8, 32, 100}, {Operator::spmm, 16, 32, 160}};
  return profile;
}

// All plans with up to two selections in the first 16 rows: blocks alone leave nothing else to find there.
struct AllPlans {
  const Csr& matrix;
  const Profile& profile;
  CostModel model{profile, {Operator::spmm, 32, 2}, 32};
  RemainderShape remainder{profile.widths, profile.ell_elements, profile.segment_length};
  RowGroup group{};
  double least = std::numeric_limits<double>::infinity();
  std::size_t least_selections = 0;

  void look(const std::vector<Selection>& selections) {
    for (const Remainder format : {Remainder::ell, Remainder::segment}) {
      std::vector<Selection> copy = selections;
      std::vector<TileShape> shapes;
      GroupTiles(remainder, matrix.columns).append(group, copy, format, shapes);
      const double cost = model.total(shapes);
      if (cost >= least) continue;
      least = cost;
      least_selections = copy.size();
    }
  }

  void run() {
    std::vector<Selection> all;
    for (int height : {8, 16})
      for (int window = 0; window < 16 / height; ++window)
        for (int threshold = 1; threshold <= height; ++threshold)
          all.push_back({static_cast<std::uint8_t>(height), static_cast<std::uint8_t>(window),
                         static_cast<std::uint8_t>(threshold)});
    group.read(matrix, {}, 0);
    look({});
    for (const Selection& first : all) {
      look({first});
      for (const Selection& second : all) look({first, second});
    }
  }
};

// Full, half empty and nearly empty columns, in any order: blocks are worth it for some of them.
Csr mixed_columns(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Coo entries{16, 64, {}, {}, {}};
  for (std::int32_t column = 0; column < entries.columns; ++column) {
    const std::uint64_t percent = std::array<std::uint64_t, 3>{95, 35, 6}[random() % 3];
    for (std::int32_t row = 0; row < entries.rows; ++row) {
      if (random() % 100 >= percent) continue;
      entries.row.push_back(row);
      entries.column.push_back(column);
    }
  }
  return *from_coo(entries);
}

TEST_CASE("plans of a group cost at most r H(|U|) times the best, and mostly what the best costs") {
  const Profile profile = summing_profile();
  int cases = 0, best_found = 0, with_blocks = 0;
  double worst = 0;
  const auto look = [&](const Csr& matrix) {
    AllPlans plans{matrix, profile};
    plans.run();
    SearchOptions options = options_for(Operator::spmm, 32);
    options.reorder = false;
    const double found = search(matrix, profile, options).cost;
    double harmonic = 0;
    for (std::int64_t k = 1; k <= matrix.nonzeros(); ++k) harmonic += 1.0 / static_cast<double>(k);
    CHECK(found <= options.greedy.ratio * harmonic * plans.least + 1e-9);
    worst = std::max(worst, found / plans.least);
    ++cases;
    best_found += found <= plans.least * (1 + 1e-9);
    with_blocks += plans.least_selections > 0;
  };
  for (const std::string& kind : kinds())
    if (const Csr matrix = random_matrix(kind, 16, 1); matrix.nonzeros() > 0) {
      INFO(kind);
      look(matrix);
    }
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    INFO("seed " << seed);
    look(mixed_columns(seed));
  }
  CHECK(cases > 25);
  CHECK(with_blocks > 2);
  CHECK(worst < 1.1);
  CHECK(best_found > cases * 4 / 5);
}

TEST_CASE("definition 8: of all cuts of the dense loop a plan has the cheapest") {
  const Profile& profile = *builtin_profile("h200");
  for (const std::string& kind : kinds())
    for (const std::int64_t dense : {32, 100, 300, 512}) {
      const Csr matrix = random_matrix(kind, 300, 3);
      const SearchOptions options = options_for(Operator::spmm, dense);
      const Plan plan = search(matrix, profile, options);
      INFO(kind << ", " << dense);
      const std::vector<std::int64_t> ways = {32, 64, 128, 256, 512};
      CHECK((plan.part == dense || std::find(ways.begin(), ways.end(), plan.part) != ways.end()));
      std::vector<TileShape> shapes;
      RowGroup group;
      GroupTiles maker(plan.remainder, matrix.columns);
      for (std::size_t index = 0; index < plan.groups.size(); ++index) {
        GroupPlan copy = plan.groups[index];
        group.read(matrix, plan.row_order, static_cast<std::int64_t>(index));
        maker.append(group, copy.selections, copy.remainder, shapes);
      }
      const double cost = CostModel(profile, options.problem, plan.part).total(shapes);
      for (const std::int64_t part : ways)
        if (part < dense) CHECK(CostModel(profile, options.problem, part).total(shapes) >= cost);
      CHECK(CostModel(profile, options.problem, dense).total(shapes) >= cost);
    }
}

}  // namespace
}  // namespace apl::sparse_test
