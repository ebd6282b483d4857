// Tiles of plans as arguments: what the arrays are, which plan makes them, who refuses them.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "codegen/codegen.h"
#include "codegen/emit/library.h"
#include "frontend/frontend.h"
#include "ir/interpret.h"
#include "ir/parse.h"
#include "ir/verify.h"
#include "passes/pipeline.h"
#include "runtime/program/program.h"
#include "runtime/program/sparse_tiles.h"
#include "runtime/sparse/csr_view.h"
#include "tests/testing.h"

namespace {

using apl::HostCsr;
using apl::HostTiles;
using apl::HostValue;
using apl::Module;
using apl::SoaField;
namespace runtime = apl::program;

constexpr const char* kTiled = R"(
#[sparse(A)]
entry spmm [n][m][b] (A: [n][m]i32) (B: [m][b]i32): [n][b]i32 =
  map (\row -> map (\col -> i32.sum (map2 (*) row col)) (transpose B)) A

#[sparse(A)]
entry two_sums [n][m][q][b] (A: [n][m]i32) (B: [m][q][b]i32) (weight: [n]i32): [n][b]i32 =
  map2 (\row w -> map (\j -> i32.sum (map2 (\a Bk -> i32.sum (map (\x -> a * x * w) Bk[:, j])) row B)) (iota b))
       A weight

#[sparse(A)]
entry least [n][m][b] (A: [n][m]i32) (B: [m][b]i32): [n][b](i32, i64) =
  map (\row -> map (\col ->
         reduce_comm (\(x, i) (y, j) -> if x < y || (x == y && i < j) then (x, i) else (y, j))
                     (i32.highest, i64.highest)
                     (map3 (\a x k -> if a == 0 then (i32.highest, i64.highest) else (a + x, k)) row col (iota m)))
       (transpose B)) A
)";

// 70 rows, the last ones the fullest, so that groups end before their windows do.
HostCsr tiled_matrix() {
  HostValue dense = HostValue::zeros(apl::ScalarType::i32, {70, 40});
  for (std::int64_t i = 0; i < 70; ++i)
    for (std::int64_t j = 0; j < 40; ++j)
      if ((i * 7 + j * 3) % (i < 64 ? 5 : 2) == 0)
        dense.set(i * 40 + j, apl::Scalar::integer(apl::ScalarType::i32, i + j + 1));
  return apl::to_csr(dense);
}

apl::SparsePlan tiled_plan(const HostCsr& matrix, const std::string& op, const std::string& groups) {
  const apl_sparse_csr rows = apl::csr_view(matrix);
  std::string order;
  for (std::int64_t row = matrix.rows; row-- > 0;) order += fmt::format(" {}", row);
  return {"A", op + ".plan",
          fmt::format("apl-sparse-plan 2\nmatrix {} {} {} {:016x}\noperator {}\ndense 8 part 8\nform tiles\norder{}\n"
                      "ell 3 7 elements 1024 segments 5\ngroups 2\n{}end\n",
                      rows.rows, rows.columns, rows.nonzeros, apl_sparse_hash(&rows), op, order, groups)};
}

constexpr const char* kBlocks = "1 16@0>=4 segments\n1 32@0>=1 ell\n";
constexpr const char* kLists = "2 ell\n";

std::vector<runtime::GivenPlan> tiled_plans(const std::vector<apl::SparsePlan>& texts) {
  auto plans = runtime::read_plans(texts);
  REQUIRE(plans);
  return *std::move(plans);
}

Module tiled_module(apl::Stage until) {
  auto module = apl::compile({"tiles.fut", kTiled}, {});
  REQUIRE(module);
  std::string text = apl::standard_pipeline(until, apl::Machine::cpu);
  const std::string plain = "sparsify{few-threads}";
  text.replace(text.find(plain), plain.size(), "sparsify{few-threads tiles}");
  const auto pipeline = apl::parse_pipeline(text, apl::PassRegistry::builtin());
  REQUIRE(pipeline);
  REQUIRE(apl::run_pipeline(*module, *pipeline, {}));
  return *std::move(module);
}

// The row and column that each non-zero has by the tiles; padding is counted.
struct Found {
  std::vector<std::pair<std::int32_t, std::int32_t>> places;
  int padding = 0;
};
Found places_of(const HostTiles& tiles, std::size_t nonzeros) {
  Found found{std::vector<std::pair<std::int32_t, std::int32_t>>(nonzeros, {-1, -1})};
  const auto see = [&](std::int32_t source, std::int32_t row, std::int32_t column) {
    if (source < 0) {
      ++found.padding;
      return;
    }
    auto& place = found.places.at(static_cast<std::size_t>(source));
    CHECK(place.first == -1);  // in one tile
    place = {row, column};
  };
  for (std::size_t k = 0; k < tiles.block_source.size(); ++k) {
    const std::size_t row = k / apl::kBlockWidth;
    const auto step = static_cast<std::size_t>(tiles.block_step.at(row));
    see(tiles.block_source[k], tiles.block_row.at(row),
        tiles.block_column.at(apl::kBlockWidth * step + k % apl::kBlockWidth));
  }
  for (std::size_t k = 0; k < tiles.ell_row.size(); ++k)
    for (auto n = static_cast<std::size_t>(tiles.ell_start.at(k));
         n < static_cast<std::size_t>(tiles.ell_start.at(k + 1)); ++n)
      see(tiles.ell_source.at(n), tiles.ell_row[k], tiles.ell_column.at(n));
  for (std::size_t k = 0; k < tiles.segment_row.size(); ++k)
    for (auto n = static_cast<std::size_t>(tiles.segment_start.at(k));
         n < static_cast<std::size_t>(tiles.segment_start.at(k + 1)); ++n)
      see(tiles.segment_source.at(n), tiles.segment_row[k], tiles.segment_column.at(n));
  return found;
}

}  // namespace

TEST_CASE("the struct of arrays has each non-zero of the plan's tiles once, at its position") {
  const HostCsr matrix = tiled_matrix();
  for (const char* groups : {kBlocks, kLists, "2 segments\n"}) {
    INFO(groups);
    const auto plans = tiled_plans({tiled_plan(matrix, "spmm", groups)});
    const auto tiles = runtime::pack_tiles(matrix, plans.front().plan.get());
    REQUIRE(tiles);
    const Found found = places_of(*tiles, matrix.column.size());
    for (std::int64_t row = 0; row < matrix.rows; ++row)
      for (std::int64_t k = matrix.row_start[static_cast<std::size_t>(row)];
           k < matrix.row_start[static_cast<std::size_t>(row) + 1]; ++k)
        CHECK(found.places[static_cast<std::size_t>(k)] ==
              std::pair{static_cast<std::int32_t>(row), matrix.column[static_cast<std::size_t>(k)]});
    CHECK((found.padding > 0) == (groups != std::string("2 segments\n")));
    // The second group has 6 rows.
    CHECK((std::ranges::count(tiles->block_row, -1) > 0) == (groups == std::string(kBlocks)));
  }
}

TEST_CASE("the plan for the operator makes the tiles; the others are told of") {
  const HostCsr matrix = tiled_matrix();
  std::vector<std::string> said;
  const apl::TileMaker make = runtime::tile_maker(
      tiled_plans({tiled_plan(matrix, "sddmm", kBlocks), tiled_plan(matrix, "spmm", kLists)}),
      [&](const runtime::PlanUse& use) { said.push_back(render(runtime::plan_remark(use, "f", ""), "")); });
  const auto sums = make("A", matrix, {SoaField::block_row, SoaField::ell_row});
  REQUIRE(sums);
  CHECK(sums->block_row.empty());
  REQUIRE(said.size() == 2);
  CHECK(said[0].find("sddmm.plan for `A` is not used {why=it is for operator sddmm") != std::string::npos);
  CHECK(said[1].find("spmm.plan for `A` is used {of it=its tiles: 0 rows of blocks") != std::string::npos);
  const auto samples = make("A", matrix, {SoaField::block_row, SoaField::ell_element_row});
  REQUIRE(samples);
  CHECK(!samples->block_row.empty());
  HostCsr other = matrix;
  other.column.back() = 38;
  const auto wrong = make("A", other, {SoaField::ell_row});
  REQUIRE(!wrong);
  CHECK(wrong.error().code == apl::Code::run_argument);
}

TEST_CASE("programs make tiles of dense arguments; where nobody does, they are refused") {
  const Module module = tiled_module(apl::Stage::memory);
  auto source = apl::compile({"tiles.fut", kTiled}, {});
  auto inputs = apl::testing::random_arguments(*source->find_entry("spmm"), {{"n", 70}, {"m", 40}, {"b", 5}}, 3);
  REQUIRE(inputs);
  const HostCsr matrix = tiled_matrix();
  inputs->front() = apl::to_dense(matrix);
  const auto expected = apl::interpret(*source, "spmm", *inputs);
  REQUIRE(expected);
  const auto text = apl::generate(module, apl::c_target());
  REQUIRE(text);
  apl::ProgramOptions options;
  options.backend = "c";
  options.sparse_plans = {tiled_plan(matrix, "spmm", kBlocks)};
  std::vector<std::string> said;
  options.remarks = [&](const apl::Remark& remark) { said.push_back(render(remark, "")); };
  auto loaded = apl::Program::load(text->host, options);
  REQUIRE(loaded);
  const auto got = loaded->call("spmm", *inputs);
  REQUIRE(got);
  CHECK(apl::testing::same_results(*got, *expected));
  REQUIRE(said.size() == 1);
  CHECK(said[0].find("is used {of it=its tiles") != std::string::npos);

  // A row's weight is not read where a block ends beyond the matrix; operators on two values.
  for (const char* entry : {"two_sums", "least"}) {
    INFO(entry);
    apl::testing::Sizes sizes = {{"n", 70}, {"m", 40}, {"b", 5}};
    if (entry == std::string("two_sums")) sizes["q"] = 3;
    auto others = apl::testing::random_arguments(*source->find_entry(entry), sizes, 3);
    REQUIRE(others);
    others->front() = inputs->front();
    const auto wanted = apl::interpret(*source, entry, *others);
    REQUIRE(wanted);
    const auto result = loaded->call(entry, *others);
    REQUIRE(result);
    CHECK(apl::testing::same_results(*result, *wanted));
  }

  const auto nobody = apl::interpret(module, "spmm", *inputs);
  REQUIRE(!nobody);
  CHECK(nobody.error().code == apl::Code::unsupported_construct);
  const auto library = apl::generate_library(module, apl::c_target(), {}, {});
  REQUIRE(!library);
  CHECK(library.error().code == apl::Code::unsupported_construct);
  CHECK(library.error().message.find("`A` of the entry `spmm`") != std::string::npos);
}

TEST_CASE("the verifier holds the arrays of tiles against each other") {
  const auto verdict = [](const std::string& fields, const std::string& params) {
    const auto module = apl::parse_module(
        fmt::format("stage kernel\n\nentry f (A : sparse(shape, values, {}) \"[n][m]f32\", xs : \"[s]i32\", ys : "
                    "\"[c]i32\") "
                    ": {{\"[n]f32\"}}\n"
                    "fun f [n, m, k, s, c] (A_shape : [0][n][m]f32, A_values : [k]f32, {}, xs : [s]i32, ys : [c]i32) "
                    ": {{[n]f32}} = {{\n  let {{x : [n]f32}} = replicate([n], 0.0f32)\n  in {{x}}\n}}\n",
                    fields, params),
        "f.aplir");
    REQUIRE(module);
    std::string text;
    for (const apl::Diagnostic& broken : apl::verify(*module)) text += broken.message + "\n";
    return text;
  };
  const std::string wrong = "has another type";
  CHECK(verdict("block_row, block_source", "a : [s]i32, b : [16*s]i32").find(wrong) == std::string::npos);
  CHECK(verdict("block_row, block_source", "a : [s]i32, b : [8*s]i32").find(wrong) != std::string::npos);
  CHECK(verdict("block_column, block_source", "a : [c]i32, b : [16*c]i32").find(wrong) != std::string::npos);
  CHECK(verdict("ell_start, ell_row", "a : [s + 1]i64, b : [s]i32").find("not in their order") != std::string::npos);
  CHECK(verdict("ell_row", "a : [s]i32, b : [s + 1]i64").find("values, but the function has") != std::string::npos);
  CHECK(verdict("ell_row, ell_start", "a : [s]i32, b : [s + 1]i64").find(wrong) == std::string::npos);
  CHECK(verdict("ell_row, ell_start", "a : [s]i32, b : [s]i64").find(wrong) != std::string::npos);
  CHECK(verdict("ell_column, ell_source", "a : [s]i32, b : [c]i32").find(wrong) != std::string::npos);
  CHECK(verdict("ell_column, ell_source", "a : [s]i32, b : [s]i64").find(wrong) != std::string::npos);
}
