#include "suite/sparse/dense_product.h"

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <utility>

#include "codegen/contraction/planned.h"
#include "codegen/emit/load.h"
#include "frontend/frontend.h"
#include "passes/pass.h"
#include "passes/pipeline.h"
#include "runtime/sparse/device_operand.h"

namespace apl::sparse {
namespace {

constexpr int kKernels =
    12;  // of a contraction: what programs for GPUs have, of which the one that is chosen is compiled

// bf16 is how a program keeps f32.
std::string text_of(ScalarType type, Operator op) {
  const bool is_half = type == ScalarType::f16, is_kept = type == ScalarType::bf16, is_spmm = op == Operator::spmm;
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
Result<Module> compiled(ScalarType type, Operator op, Machine machine) {
  auto module = compile({"dense.fut", text_of(type, op)}, {});
  if (!module) return make_error(Code::bug_internal, {}, "a dense product is refused");
  const auto pipeline = parse_pipeline(standard_pipeline(Stage::memory, machine, true), PassRegistry::builtin());
  if (!pipeline) return pipeline.error();
  if (auto status = run_pipeline(*module, *pipeline, {}); !status) return std::move(status).error();
  return *std::move(module);
}

// By the model of tiles; 0 where it knows nothing of the type.
double tiled_microseconds(const apl_device& device, ScalarType type, Operator op, std::int64_t rows,
                          std::int64_t columns, std::int64_t width) {
  static std::mutex turn;
  static std::map<std::pair<ScalarType, Operator>, Result<Module>> known;
  const std::lock_guard one(turn);
  auto found = known.find({type, op});
  if (found == known.end()) found = known.emplace(std::pair{type, op}, compiled(type, op, Machine::gpu)).first;
  const Result<Module>& module = found->second;
  const Function* entry = module ? module->find_entry("product") : nullptr;
  if (entry == nullptr) return 0;
  double seconds = 0;
  const char* dense = op == Operator::sddmm ? "k" : "b";
  for (const PlannedContraction& planned :
       find_planned(*module, "product", {{"n", rows}, {"m", columns}, {dense, width}}, {}))
    if (planned.contraction) seconds += choose_kernel(planned, *entry, device, kKernels).seconds.value_or(0);
  return 1e6 * seconds;
}

}  // namespace

Result<Program> dense_product(ScalarType type, Operator op, ProgramOptions options) {
  const bool on_device = options.backend != "c";
  const auto module = compiled(type, op, on_device ? Machine::gpu : Machine::cpu);
  if (!module) return module.error();
  CodegenOptions codegen;
  if (on_device) codegen.plans = kKernels;
  return load_program(*module, std::move(options), codegen);
}

double dense_microseconds(const apl_device& device, ScalarType type, Operator op, std::int64_t rows,
                          std::int64_t columns, std::int64_t width) {
  const double tiled = tiled_microseconds(device, type, op, rows, columns, width);
  if (tiled == 0) return library_microseconds(device, type, op, rows, columns, width);
  // What the model of tiles does not know of 16 bits: results that read an element of A, and rows that no access of 16
  // bytes takes.
  if (byte_size(type) != 2) return tiled;
  if (op == Operator::sddmm)
    return tiled + 1e-6 * device.dense_samples * static_cast<double>(rows) * static_cast<double>(columns);
  return columns % 8 != 0 ? device.dense_odd_rows * tiled : tiled;
}

double library_microseconds(const apl_device& device, ScalarType type, Operator op, std::int64_t rows,
                            std::int64_t columns, std::int64_t width) {
  const bool sddmm = op == Operator::sddmm;
  return apl_sparse_dense_microseconds(&device, static_cast<std::int32_t>(type), rows, sddmm ? width : columns,
                                       sddmm ? columns : width);
}

}  // namespace apl::sparse
