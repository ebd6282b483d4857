// Plans in programs: which is taken, what is said of it, and that the product is the same.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "codegen/codegen.h"
#include "frontend/frontend.h"
#include "ir/interpret.h"
#include "passes/pipeline.h"
#include "runtime/program/program.h"
#include "runtime/program/sparse_plans.h"
#include "runtime/sparse/csr_view.h"
#include "tests/testing.h"

namespace {

using apl::HostValue;
using apl::Module;
using Values = std::vector<HostValue>;

constexpr const char* kPlanned = R"(
#[sparse(A)]
entry spmm [n][m][b] (A: [n][m]f16) (B: [m][b]f16): [n][b]f16 =
  map (\row -> map (\col -> f16.f32 (f32.sum (map2 (\a x -> f32.f16 a * f32.f16 x) row col))) (transpose B)) A
)";

struct PlannedProgram {
  Module source;
  std::string host;
};

PlannedProgram planned_program() {
  auto source = apl::compile({"plan.fut", kPlanned}, {});
  REQUIRE(source);
  Module memory = *source;
  const auto pipeline = apl::parse_pipeline(apl::standard_pipeline(apl::Stage::memory), apl::PassRegistry::builtin());
  REQUIRE(apl::run_pipeline(memory, *pipeline, {}));
  auto text = apl::generate(memory, apl::cuda_target());
  REQUIRE(text);
  return {*std::move(source), text->host};
}

// Small, and a third of it is there.
Values planned_inputs(const Module& source) {
  auto values = apl::testing::random_arguments(*source.find_entry("spmm"), {{"n", 70}, {"m", 40}, {"b", 8}}, 5);
  REQUIRE(values);
  for (std::int64_t k = 0; k < values->front().element_count(); ++k)
    if (k % 3 != 0) values->front().set(k, apl::Scalar::zero(values->front().type));
  return *std::move(values);
}

std::string plan_text(const apl_sparse_csr& matrix, const std::string& op, const std::string& form) {
  return fmt::format("apl-sparse-plan 2\nmatrix {} {} {} {:016x}\noperator {}\ndense 8 part 8\n{}end\n", matrix.rows,
                     matrix.columns, matrix.nonzeros, apl_sparse_hash(&matrix), op, form);
}

constexpr const char* kWindows =
    "form tiles\norder natural\nell 1 2 4 elements 1024 segments 128\ngroups 2\n1 32@0>=2 8@5>=1 ell\n1 ell\n";

}  // namespace

TEST_CASE("a plan makes the form of a program's operand, whatever the size") {
  const PlannedProgram program = planned_program();
  const Values inputs = planned_inputs(program.source);
  const auto expected = apl::interpret(program.source, "spmm", inputs);
  REQUIRE(expected);
  const apl::HostCsr matrix = apl::to_csr(inputs.front());
  struct Case {
    const char *op, *form, *said;
  };
  for (const Case& one : {Case{"spmm", kWindows, "is used {of it=2 windows of 32 rows on tensor cores"},
                          Case{"sddmm", kWindows, "is not used {why=it is for operator sddmm"},
                          Case{"spmm", "form dense\n",
                               "is used {of it=the dense product of a copy with all zeros, by plain loops in cuBLAS's "
                               "place}"}}) {
    INFO(one.said);
    apl::ProgramOptions options;
    options.backend = "emulate";
    options.use_cublas = true;
    options.sparse_plans = {{"A", "a.plan", plan_text(apl::csr_view(matrix), one.op, one.form)}};
    std::vector<std::string> said;
    options.remarks = [&](const apl::Remark& remark) { said.push_back(render(remark, "")); };
    auto loaded = apl::Program::load(program.host, options);
    REQUIRE(loaded);
    for (int call = 0; call < 2; ++call) {
      const auto got = loaded->call("spmm", inputs);
      REQUIRE_MESSAGE(got, (got ? std::string() : got.error().message));
      CHECK(apl::testing::same_results(*got, *expected));
    }
    REQUIRE(said.size() == 1);  // not once a call
    CHECK(said.front().find(std::string("plan a.plan for `A` ") + one.said) != std::string::npos);
  }
}

TEST_CASE("a plan that says `form dense` is refused, or not used beside others, where no library follows it") {
  const PlannedProgram program = planned_program();
  const Values inputs = planned_inputs(program.source);
  const apl::HostCsr matrix = apl::to_csr(inputs.front());
  const auto plan = [&](const char* name, const char* op, const char* form) {
    return apl::SparsePlan{"A", name, plan_text(apl::csr_view(matrix), op, form)};
  };
  apl::ProgramOptions options;
  options.backend = "emulate";
  options.sparse_plans = {plan("dense.plan", "spmm", "form dense\n")};
  const auto refused = apl::Program::load(program.host, options);
  REQUIRE(!refused);
  const std::string message =
      "sparse operand `A`: plan dense.plan says `form dense`: compile the program without #[sparse(A)]";
  CHECK(refused.error().message == message);
  std::string said;
  options.remarks = [&](const apl::Remark& remark) { said += render(remark, ""); };
  options.sparse_plans.push_back(plan("tiles.plan", "sddmm", kWindows));
  auto loaded = apl::Program::load(program.host, options);
  REQUIRE(loaded);
  REQUIRE(loaded->call("spmm", inputs));
  CHECK(said.find("plan dense.plan for `A` is not used {why=it says `form dense`") != std::string::npos);
  options.sparse_plans.pop_back();
  const apl::Status set = loaded->set_sparse_plans(options.sparse_plans);
  REQUIRE(!set);
  CHECK(set.error().message == message);
}

// The program multiplies by a library what it else goes through by its non-zeros.
TEST_CASE("dense products of a library: types, batches, what is done after the sum, samples") {
  struct Case {
    const char *entry, *op, *text;
  };
  for (const Case& one : {Case{"relu", "spmm", R"(#[sparse(A)]
entry relu [n][m][b] (A: [n][m]f16) (B: [m][b]f16) (bias: [b]f32): [n][b]f32 =
  map (\row -> map2 (\col z -> f32.max 0 (z + f32.sum (map2 (\a x -> f32.f16 a * f32.f16 x) row col)))
       (transpose B) bias) A)"},
                          Case{"wide", "spmm", R"(#[sparse(A)]
entry wide [n][m][b] (A: [n][m]f16) (B: [m][b]f16): [n][b]f32 =
  map (\row -> map (\col -> f32.sum (map2 (\a x -> f32.f16 a * f32.f16 x) row col)) (transpose B)) A)"},
                          Case{"batches", "spmm", R"(#[sparse(A)]
entry batches [n][m][b] (A: [n][m]f64) (B: [b][m][n]f64): [b][n][n]f64 =
  map (\X -> map (\row -> map (\col -> f64.sum (map2 (*) row col)) (transpose X)) A) B)"},
                          Case{"samples", "sddmm", R"(#[sparse(A, result)]
entry samples [n][m][b] (A: [n][m]f32) (X: [n][b]f32) (Y: [m][b]f32): [n][m]f32 =
  map2 (\row x -> map2 (\a y -> a * f32.sum (map2 (*) x y)) row Y) A X)"},
                          Case{"scores", "sddmm", R"(#[sparse(A)]
entry scores [n][m][b] (A: [n][m]f16) (X: [n][b]f16) (Y: [m][b]f16): [n][m]f32 =
  map2 (\row x -> map2 (\a y -> f32.f16 a * f32.sum (map2 (\p q -> f32.f16 p * f32.f16 q) x y)) row Y) A X)"}}) {
    INFO(one.entry);
    auto source = apl::compile({"dense.fut", one.text}, {});
    REQUIRE(source);
    Module memory = *source;
    const auto pipeline = apl::parse_pipeline(apl::standard_pipeline(apl::Stage::memory), apl::PassRegistry::builtin());
    REQUIRE(apl::run_pipeline(memory, *pipeline, {}));
    const auto text = apl::generate(memory, apl::cuda_target());
    REQUIRE(text);
    auto inputs = apl::testing::random_arguments(*source->find_entry(one.entry), {{"n", 37}, {"m", 29}, {"b", 12}}, 7);
    REQUIRE(inputs);
    HostValue& a = inputs->front();
    for (std::int64_t k = 0; k < a.element_count(); ++k)
      if (k % 3 != 0) a.set(k, apl::Scalar::zero(a.type));
    const auto expected = apl::interpret(*source, one.entry, *inputs);
    REQUIRE(expected);
    apl::ProgramOptions options;
    options.backend = "emulate";
    options.use_cublas = true;
    options.sparse_plans = {{"A", "a.plan", plan_text(apl::csr_view(apl::to_csr(a)), one.op, "form dense\n")}};
    std::string said;
    options.remarks = [&](const apl::Remark& remark) { said += render(remark, ""); };
    auto loaded = apl::Program::load(text->host, options);
    REQUIRE(loaded);
    const auto got = loaded->call(one.entry, *inputs);
    REQUIRE_MESSAGE(got, (got ? std::string() : got.error().message));
    CHECK(apl::testing::same_results(*got, *expected));
    CHECK(said.find("is used {of it=the dense product") != std::string::npos);
  }
}

TEST_CASE("a plan for another matrix is an error that says what differs") {
  const PlannedProgram program = planned_program();
  Values inputs = planned_inputs(program.source);
  const apl::HostCsr matrix = apl::to_csr(inputs.front());
  apl::ProgramOptions options;
  options.backend = "emulate";
  options.sparse_plans = {{"A", "a.plan", plan_text(apl::csr_view(matrix), "spmm", kWindows)}};
  auto loaded = apl::Program::load(program.host, options);
  REQUIRE(loaded);
  const auto message = [&] {
    const auto got = loaded->call("spmm", inputs);
    return got ? std::string() : got.error().message;
  };
  CHECK(message().empty());
  // One non-zero less, then it is somewhere else.
  std::int64_t at = 0;
  while (inputs.front().at(at) == apl::Scalar::zero(inputs.front().type)) ++at;
  const apl::Scalar one = inputs.front().at(at);
  inputs.front().set(at, apl::Scalar::zero(one.type()));
  CHECK(message() == fmt::format("sparse operand `A`: plan a.plan is for {} non-zeros, the operand has {}",
                                 matrix.nonzeros(), matrix.nonzeros() - 1));
  inputs.front().set(at % 3 == 0 ? at + 1 : at - 1, one);
  CHECK(message().starts_with("sparse operand `A`: plan a.plan is for another pattern: its key is "));
  inputs.front().shape = {40, 70};
  inputs.back() = HostValue::zeros(inputs.back().type, {70, 8});
  CHECK(message() == "sparse operand `A`: plan a.plan is for a matrix of 70 by 40, the operand has 40 by 70");
}

TEST_CASE("of several plans for an operand those for its matrix are taken") {
  const std::vector<std::int64_t> start = {0, 1, 2};
  const std::vector<std::int32_t> column = {0, 1}, other = {1, 0};
  const apl_sparse_csr one{2, 2, 2, start.data(), column.data()}, two{2, 2, 2, start.data(), other.data()};
  const auto plans = apl::program::read_plans({{"A", "one", plan_text(one, "spmm", "form dense\n")},
                                               {"A", "two", plan_text(two, "spmm", "form dense\n")},
                                               {"A", "both", plan_text(two, "sddmm", "form dense\n")},
                                               {"B", "other", plan_text(one, "spmm", "form dense\n")}});
  REQUIRE(plans);
  const auto fitting = apl::program::plans_for(*plans, "A", two);
  REQUIRE(fitting);
  REQUIRE(fitting->size() == 2);
  CHECK((*fitting)[0]->source == "two");
  CHECK((*fitting)[1]->source == "both");
  CHECK(apl::program::plans_for(*plans, "C", two)->empty());
  CHECK(!apl::program::plans_for(*plans, "B", two));
  CHECK(!apl::program::read_plans({{"A", "bad.plan", "nonsense"}}));
}
