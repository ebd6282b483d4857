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
                          Case{"spmm", "form dense\n", "is not used {why=it says `form dense`"}}) {
    INFO(one.said);
    apl::ProgramOptions options;
    options.backend = "emulate";
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
