#include "aplc/sparse/dense_product.h"

#include <fmt/format.h>

#include "aplc/driver.h"
#include "codegen/emit/load.h"
#include "frontend/frontend.h"
#include "passes/pass.h"
#include "passes/pipeline.h"

namespace aplc::sparse {
namespace {

// bf16 is how a program keeps f32.
std::string text_of(apl::ScalarType type, apl::sparse::Operator op) {
  const bool is_half = type == apl::ScalarType::f16, is_kept = type == apl::ScalarType::bf16,
             is_spmm = op == apl::sparse::Operator::spmm;
  const std::string name(is_kept ? "f32" : to_text(type)), sum = is_half ? "f32" : name;
  const std::string take = is_half ? "f32.f16 " : "", give = is_half ? "f16.f32 " : "";
  const std::string dot = fmt::format("{}.sum (map2 (\\p q -> {}p * {}q) ", sum, take, take);
  const std::string kept = !is_kept ? "" : is_spmm ? "#[bf16(A, B)]\n" : "#[bf16(A, X, Y)]\n";
  if (is_spmm)
    return fmt::format(
        "{0}entry product [n][m][b] (A: [n][m]{1}) (B: [m][b]{1}): [n][b]{1} =\n"
        "  map (\\row -> map (\\col -> {2}({3}row col))) (transpose B)) A\n",
        kept, name, give, dot);
  return fmt::format(
      "{0}entry product [n][m][k] (A: [n][m]{1}) (X: [n][k]{1}) (Y: [m][k]{1}): [n][m]{1} =\n"
      "  map2 (\\row x -> map2 (\\a y -> {2}({4}a * {3}x y))) row Y) A X\n",
      kept, name, give, dot, take);
}

}  // namespace

apl::Result<apl::Program> dense_product(apl::ScalarType type, apl::sparse::Operator op, apl::ProgramOptions options) {
  auto module = apl::compile({"dense.fut", text_of(type, op)}, {});
  if (!module) return apl::make_error(apl::Code::bug_internal, {}, "a dense product is refused");
  const auto pipeline = apl::parse_pipeline(pipeline_for(options.backend, {}), apl::PassRegistry::builtin());
  if (!pipeline) return pipeline.error();
  if (auto status = apl::run_pipeline(*module, *pipeline, {}); !status) return std::move(status).error();
  apl::CodegenOptions codegen;
  codegen.plans = plans_for(options.backend);
  return apl::load_program(*module, std::move(options), codegen);
}

}  // namespace aplc::sparse
