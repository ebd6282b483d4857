#include "aplc/sparse/dense_product.h"

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <utility>

#include "aplc/driver.h"
#include "aplc/explain_plan.h"
#include "aplc/sparse/estimate.h"
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

// At the memory stage.
apl::Result<apl::Module> compiled(apl::ScalarType type, apl::sparse::Operator op, const std::string& backend) {
  auto module = apl::compile({"dense.fut", text_of(type, op)}, {});
  if (!module) return apl::make_error(apl::Code::bug_internal, {}, "a dense product is refused");
  const auto pipeline = apl::parse_pipeline(pipeline_for(backend, {}), apl::PassRegistry::builtin());
  if (!pipeline) return pipeline.error();
  if (auto status = apl::run_pipeline(*module, *pipeline, {}); !status) return std::move(status).error();
  return *std::move(module);
}

}  // namespace

apl::Result<apl::Program> dense_product(apl::ScalarType type, apl::sparse::Operator op, apl::ProgramOptions options) {
  const auto module = compiled(type, op, options.backend);
  if (!module) return module.error();
  apl::CodegenOptions codegen;
  codegen.plans = plans_for(options.backend);
  return apl::load_program(*module, std::move(options), codegen);
}

double dense_microseconds(apl::ScalarType type, bool sddmm, std::int64_t rows, std::int64_t columns,
                          std::int64_t width) {
  // What the model of tiles does not know of 16 bits (bench/results/sparse-kinds-f16-h100-2026-11-25.json): results
  // that read an element of A, and rows that no access of 16 bytes takes.
  constexpr double kEachSample = 14e-6, kOddRows = 5;
  using apl::sparse::Operator;
  static std::mutex turn;
  static std::map<std::pair<apl::ScalarType, bool>, apl::Result<apl::Module>> known;
  const std::lock_guard one(turn);
  auto found = known.find({type, sddmm});
  if (found == known.end())
    found =
        known.emplace(std::pair{type, sddmm}, compiled(type, sddmm ? Operator::sddmm : Operator::spmm, "cuda")).first;
  const apl::Result<apl::Module>& module = found->second;
  const apl::Function* entry = module ? module->find_entry("product") : nullptr;
  double microseconds = 0;
  if (entry != nullptr)
    for (const ExplainedPlan& plan : explained_plans(
             *module, *entry, {{"n", rows}, {"m", columns}, {sddmm ? "k" : "b", width}}, modelled_device(), {}))
      microseconds += 1e6 * plan.seconds.value_or(0);
  if (microseconds == 0) return cublas_microseconds(type, sddmm, rows, columns, width);
  if (apl::byte_size(type) != 2) return microseconds;
  if (sddmm) return microseconds + kEachSample * static_cast<double>(rows) * static_cast<double>(columns);
  return columns % 8 != 0 ? kOddRows * microseconds : microseconds;
}

}  // namespace aplc::sparse
