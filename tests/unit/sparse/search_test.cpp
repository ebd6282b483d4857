// The search: its plans are right for every matrix and setting, cost what their tiles cost, and find what is there to
// be found.
#include "passes/sparse/search.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "passes/sparse/order.h"
#include "runtime/sparse/csr_view.h"
#include "runtime/sparse/device_operand.h"
#include "tests/unit/sparse/matrices.h"
#include "tests/unit/sparse/searches.h"
#include "tests/unit/sparse/tiles.h"

namespace apl::sparse_test {
namespace {

using namespace sparse;

// The tiles that the runtime makes of the plan's text.
TilesPointer tiles_of_plan(const Csr& matrix, const Plan& plan) {
  std::string message;
  const PlanPointer parsed = parse_plan(to_text(plan), &message);
  REQUIRE_MESSAGE(parsed, message);
  TilesPointer tiles = pack(matrix, *parsed);
  REQUIRE(tiles);
  return tiles;
}

TEST_CASE("plans are right for every kind of matrix and setting") {
  const Profile profile = tile_profile(4);
  for (const std::string& kind : kinds())
    for (int setting = 0; setting < 8; ++setting) {
      const Csr matrix = random_matrix(kind, 30 + 40 * setting, static_cast<std::uint64_t>(setting));
      SearchOptions options = options_for(setting % 2 == 0 ? Operator::spmm : Operator::sddmm, 32 << setting % 4);
      options.greedy = {1 + 0.2 * (setting % 3), setting % 3 != 1, setting == 4 ? 1 : 0};
      options.formats = {setting != 5, setting != 6, setting % 4 != 3};
      if (setting == 7) options.formats = {true, false, false};
      INFO(kind << ", setting " << setting);
      const Plan plan = search(matrix, profile, options);
      CHECK(plan.complete);
      CHECK_FALSE(plan.dense);
      CHECK(plan.cost == plan.considered.front().second);
      const TilesPointer tiles = tiles_of_plan(matrix, plan);
      check_tiles(matrix, *tiles);
      check_products(matrix, *tiles, 3, 2);
      if (!options.formats.block) CHECK(tiles->blocks == 0);
      if (setting == 7) CHECK(tiles->ell_elements + tiles->segment_elements == 0);
    }
}

TEST_CASE("the tiles that are priced are those that the runtime makes") {
  for (const std::string& kind : kinds()) {
    const Csr matrix = random_matrix(kind, 200, 4);
    SearchOptions options = options_for(Operator::spmm, 64);
    options.formats.segment = kind != "block";
    const Plan plan = search(matrix, tile_profile(4), options);
    INFO(kind << "\n" << to_text(plan));
    const TilesPointer tiles = tiles_of_plan(matrix, plan);
    std::vector<TileShape> shapes;
    RowGroup group;
    GroupTiles maker(plan.remainder, matrix.columns);
    for (std::size_t index = 0; index < plan.groups.size(); ++index) {
      GroupPlan copy = plan.groups[index];
      group.read(matrix, plan.row_order, static_cast<std::int64_t>(index));
      maker.append(group, copy.selections, copy.remainder, shapes);
    }
    std::int64_t steps = 0, elements = 0, ell_rows = 0, segments = 0, tile_count = 0;
    for (const TileShape& shape : shapes) {
      if (shape.kind == TileShape::Kind::block) steps += shape.elements;
      if (shape.kind == TileShape::Kind::ell)
        elements += shape.rows * shape.elements, ell_rows += shape.rows, ++tile_count;
      if (shape.kind == TileShape::Kind::segment) segments += shape.elements;
    }
    CHECK(steps == tiles->steps);
    CHECK(elements == tiles->ell_elements);
    CHECK(ell_rows == tiles->ell_rows);
    CHECK(tile_count == tiles->ell_tiles);
    CHECK(segments == tiles->segment_elements);
    CHECK(plan.cost == doctest::Approx(CostModel(tile_profile(4), options.problem, plan.part).total(shapes)));
  }
}

TEST_CASE("rows that share columns become blocks, others lists, a full matrix stays dense") {
  const SearchOptions options = options_for(Operator::spmm, 128);
  const Profile profile = tile_profile(4);
  const auto blocks_share = [&](const Csr& matrix) {
    const TilesPointer tiles = tiles_of_plan(matrix, search(matrix, profile, options));
    return 1 - static_cast<double>(std::count_if(tiles->ell_source, tiles->ell_source + tiles->ell_elements,
                                                 [](std::int32_t s) { return s >= 0; }) +
                                   tiles->segment_elements) /
                   static_cast<double>(matrix.nonzeros());
  };
  CHECK(blocks_share(random_matrix("block", 256, 1)) > 0.8);
  CHECK(blocks_share(random_matrix("full", 256, 1)) == 1);
  std::vector<std::pair<std::int32_t, std::int32_t>> scattered;
  for (std::int32_t row = 0; row < 256; ++row)
    for (std::int32_t k = 0; k < 5; ++k) scattered.emplace_back(row, (row * row * 37 + k * k * 91 + k * row) % 256);
  CHECK(blocks_share(pattern(256, 256, scattered)) < 0.3);
  const Plan dense = search(random_matrix("full", 256, 1), *builtin_profile("h200"), options);
  CHECK(dense.considered.size() > 4);
  Profile cheap = profile;
  cheap.dense_launch = 0;
  const Csr full = random_matrix("full", 256, 1);
  const Plan plan = search(full, cheap, options);
  CHECK(plan.dense);
  CHECK(parse_plan(to_text(plan))->dense);
  CHECK_FALSE(pack(full, *parse_plan(to_text(plan))));
}

TEST_CASE("more levels and more formats never cost more, and here less") {
  // Blocks of two sizes and single non-zeros: what one selection takes leaves a new pattern.
  Coo entries{256, 256, {}, {}, {}};
  for (std::int32_t i = 0; i < 256; ++i)
    for (std::int32_t j = 0; j < 256; ++j)
      if ((i / 32 * 5 + j / 32) % 8 == 0 || (i / 8 * 3 + j / 4) % 32 == 0 || (7 * i + 3 * j) % 61 == 0) {
        entries.row.push_back(i);
        entries.column.push_back(j);
      }
  const Csr matrix = *from_coo(entries);
  const auto cost = [&](int levels, CoverFormats formats, bool withdraw, double ratio) {
    SearchOptions options = options_for(Operator::spmm, 128);
    options.reorder = false;
    options.greedy = {ratio, withdraw, levels};
    options.formats = formats;
    return search(matrix, tile_profile(4), options).cost;
  };
  const double all = cost(0, {}, true, 1.2);
  CHECK(all < cost(1, {}, true, 1.2));
  CHECK(all <= cost(0, {true, false, false}, true, 1.2));
  CHECK(all < 0.8 * cost(0, {false, true, true}, true, 1.2));
  CHECK(all <= cost(0, {}, false, 1.2));
}

TEST_CASE(
    "compositions are of windows of one height and whole rows, each where it is cheaper, and kernels run them so") {
  // Full blocks of 32 by 32 for some halves of groups, for the others rows that share nothing.
  Coo entries{512, 4096, {}, {}, {}};
  std::int64_t in_blocks = 0;
  for (std::int32_t i = 0; i < 512; ++i) {
    const bool is_block = i / 32 % 3 != 1;
    in_blocks += is_block;
    for (std::int32_t k = 0; k < (is_block ? 32 : 6); ++k) {
      entries.row.push_back(i);
      entries.column.push_back(is_block ? i / 32 * 32 + k : (i * 1021 + k * 671) % 4096);
    }
  }
  const Csr matrix = *from_coo(entries);
  SearchOptions options = options_for(Operator::spmm, 128);
  options.reorder = false;
  // Whoever has the most windows, but not all rows in them, wins.
  int composed = 0;
  std::int32_t heights = 0;
  options.measure = [&](const Plan& plan) {
    if (plan.dense) return 1e9;
    const apl_sparse_csr csr = apl::csr_view(matrix);
    const PlanPointer parsed = parse_plan(to_text(plan));
    apl_sparse_packed* packed = nullptr;
    REQUIRE(apl_sparse_packed_make(&csr, parsed.get(), &h200(), APL_F16, 128, nullptr, &packed) == APL_SPARSE_FINE);
    std::int64_t selected = 0;
    for (const GroupPlan& group : plan.groups)
      for (const Selection& selection : group.selections) selected += selection.height;
    const bool is_composed = packed->windows > 0 && packed->records > 0;
    if (is_composed) {
      ++composed;
      heights |= 1 << packed->parts;
      CHECK(selected == in_blocks);
      CHECK(packed->windows * 8 * packed->parts == in_blocks);
      CHECK(packed->records == 512 - in_blocks);
    }
    apl_sparse_packed_free(packed);
    return is_composed ? 1.0 : 2.0;
  };
  options.greedy.levels = 0;
  options.formats.segment = false;
  const Plan plan = search(matrix, *builtin_profile("h200"), options);
  CHECK(composed >= 2);
  CHECK(heights != 0);
  CHECK(plan.measured.front().second == 1.0);
  const TilesPointer tiles = tiles_of_plan(matrix, plan);
  check_tiles(matrix, *tiles);
}

TEST_CASE("a search that is stopped leaves a plan that is right") {
  const Csr matrix = random_matrix("block", 1500, 1);
  SearchOptions options = options_for(Operator::spmm, 128);
  options.threads = 1;
  int calls = 0;
  options.progress = [&](const Progress& progress) {
    CHECK(progress.done >= 0);
    CHECK(progress.done <= 1);
    ++calls;
    return false;
  };
  const Plan plan = search(matrix, tile_profile(4), options);
  CHECK(calls == 1);
  CHECK_FALSE(plan.complete);
  CHECK(to_text(plan).find("stopped") != std::string::npos);
  check_tiles(matrix, *tiles_of_plan(matrix, plan));
}

TEST_CASE("where plans can be run the fastest wins, whatever the model says") {
  const Csr matrix = random_matrix("block", 300, 2);
  SearchOptions options = options_for(Operator::spmm, 128);
  const Plan by_model = search(matrix, tile_profile(4), options);
  CHECK(by_model.measured.empty());
  // Here runs are fast, and a dense product cannot be had.
  int calls = 0;
  options.measure = [&](const Plan& plan) {
    ++calls;
    if (plan.dense) return 0.0;
    const bool segments = std::all_of(plan.groups.begin(), plan.groups.end(), [](const GroupPlan& g) {
      return g.selections.empty() && g.remainder == Remainder::segment;
    });
    return segments ? 5.0 : 7.0 + calls;
  };
  Plan plan = search(matrix, tile_profile(4), options);
  CHECK(calls > 4);
  CHECK(plan.measured.size() == static_cast<std::size_t>(calls - 1));
  CHECK(plan.measured.front() == std::pair<std::string, double>("1d", 5.0));
  CHECK(plan.groups.front() == GroupPlan{{}, Remainder::segment});
  CHECK(plan.cost > by_model.cost);
  CHECK(to_text(plan).find("note 1d: 0.01 us measured") != std::string::npos);
  check_tiles(matrix, *tiles_of_plan(matrix, plan));
  // If nothing can be run the model decides.
  options.measure = [](const Plan&) { return 0.0; };
  plan = search(matrix, tile_profile(4), options);
  CHECK(plan.measured.empty());
  CHECK(plan.groups == by_model.groups);
  options.measure = [](const Plan& p) { return p.dense ? 1.0 : 2.0; };
  CHECK(search(matrix, tile_profile(4), options).dense);
}

TEST_CASE("the same matrix gives the same plan, whatever the threads") {
  const Csr matrix = random_matrix("power-law", 300, 3);
  SearchOptions options = options_for(Operator::spmm, 64);
  const std::string one = to_text(search(matrix, tile_profile(4), options));
  options.threads = 5;
  CHECK(to_text(search(matrix, tile_profile(4), options)) == one);
}

bool is_permutation(std::vector<std::int32_t> order, std::int64_t rows) {
  std::sort(order.begin(), order.end());
  std::vector<std::int32_t> all(static_cast<std::size_t>(rows));
  std::iota(all.begin(), all.end(), 0);
  return order == all;
}

Csr with_rows(const Csr& matrix, const std::vector<std::int32_t>& order) {
  Csr result{matrix.rows, matrix.columns, {0}, {}, {}};
  for (const std::int32_t row : order) {
    const auto columns = matrix.row(row);
    result.column.insert(result.column.end(), columns.begin(), columns.end());
    result.row_start.push_back(result.nonzeros());
  }
  return result;
}

TEST_CASE("every order has every row once") {
  for (const std::string& kind : kinds()) {
    const Csr matrix = random_matrix(kind, 130, 2);
    INFO(kind);
    CHECK(is_permutation(order_by_length(matrix), matrix.rows));
    CHECK(is_permutation(order_by_labels(matrix, 2), matrix.rows));
    CHECK(is_permutation(order_by_bandwidth(matrix), matrix.rows));
  }
}

TEST_CASE("labels find communities and bandwidth a band, after the rows were shuffled") {
  const auto shuffled = [](const Csr& matrix) {
    std::vector<std::int32_t> order(static_cast<std::size_t>(matrix.rows));
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937_64(9));
    return with_rows(matrix, order);
  };
  Coo entries{512, 512, {}, {}, {}};
  std::mt19937_64 random(4);
  for (std::int32_t i = 0; i < 512; ++i)
    for (std::int32_t j = 0; j < 512; ++j)
      if (i / 32 == j / 32 ? random() % 3 == 0 : random() % 300 == 0) {
        entries.row.push_back(i);
        entries.column.push_back(j);
      }
  const Csr communities = *from_coo(entries), mixed = shuffled(communities);
  const Sharing before = column_sharing(mixed, {}), after = column_sharing(mixed, order_by_labels(mixed, 2));
  CHECK(after.eight > 1.8 * before.eight);
  CHECK(after.eight > 0.9 * column_sharing(communities, {}).eight);

  const Csr band = random_matrix("banded", 512, 1), loose = shuffled(band);
  CHECK(column_sharing(loose, order_by_bandwidth(loose)).eight > 1.8 * column_sharing(loose, {}).eight);

  // The search takes what helps.
  const Plan plan = search(mixed, tile_profile(4), options_for(Operator::spmm, 128));
  CHECK(plan.order == "labels");
  SearchOptions as_is = options_for(Operator::spmm, 128);
  as_is.reorder = false;
  CHECK(plan.cost < search(mixed, tile_profile(4), as_is).cost);
}

}  // namespace
}  // namespace apl::sparse_test
