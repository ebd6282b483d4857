#include "aplc/sparse/plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "aplc/driver.h"
#include "aplc/sparse/files.h"
#include "ir/attributes.h"
#include "ir/sparse_soa.h"
#include "runtime/program/sparse_plans.h"
#include "runtime/sparse/csr_view.h"

namespace aplc::sparse {
namespace {

// The names of an entry's sparse operands.
std::vector<std::string> operands_of(const apl::Function& function) {
  std::vector<std::string> names;
  if (!function.entry) return names;
  if (const auto requests = apl::sparse_requests(function))
    for (const apl::SparseRequest& request : *requests) names.push_back(function.entry->params[request.param].name);
  return names;
}

bool is_dense(const apl::SparsePlan& given) {
  apl_sparse_plan* plan = nullptr;
  std::array<char, 200> message{};
  apl_sparse_plan_parse(given.text.data(), given.text.size(), &plan, message.data(), message.size());
  const PlanPointer owned(plan);
  return plan != nullptr && plan->dense != 0;
}

}  // namespace

apl::FunctionPtr without_request(const apl::Function& function, const std::string& operand) {
  apl::Function dense = function;
  std::erase_if(dense.attributes, [&](const apl::Attribute& attribute) {
    const auto request = apl::read_attribute(attribute, apl::attribute::sparse);
    return request && std::get<0>(*request) == operand;
  });
  return std::make_shared<const apl::Function>(std::move(dense));
}

bool has_its_result(const apl::Function& function, const std::string& operand) {
  return std::ranges::any_of(function.attributes, [&](const apl::Attribute& attribute) {
    const auto request = apl::read_attribute(attribute, apl::attribute::sparse);
    return request && std::get<0>(*request) == operand && std::get<1>(*request).has_value();
  });
}

std::optional<apl::HostCsr> at_nonzeros(const apl::HostValue& dense, const apl::HostCsr& pattern) {
  if (dense.shape != std::vector<std::int64_t>{pattern.rows, pattern.columns}) return std::nullopt;
  const auto is_zero = [](const apl::Scalar& x) {
    return apl::is_float(x.type()) ? x.as_float() == 0 : x.as_int() == 0;
  };
  apl::HostCsr matrix = pattern;
  matrix.values = apl::HostValue::zeros(dense.type, {pattern.nonzeros()});
  for (std::int64_t i = 0, k = 0; i < pattern.rows; ++i)
    for (std::int64_t j = 0; j < pattern.columns; ++j) {
      const apl::Scalar x = dense.at(i * pattern.columns + j);
      if (k < pattern.row_start[static_cast<std::size_t>(i) + 1] && pattern.column[static_cast<std::size_t>(k)] == j)
        matrix.values.set(k++, x);
      else if (!is_zero(x))
        return std::nullopt;
    }
  return matrix;
}

const char* const kPlanHelp =
    "a plan of `aplc sparse search` for a sparse operand, as A=M.plan; several may be given, also for one operand";

const char* const kCublasHelp =
    "for operands whose plan says `form dense` run cuBLAS, looked for at run time, instead of this compiler's product "
    "(cuda; emulate has plain loops in its place)";

apl::Result<std::vector<apl::SparsePlan>> read_plans(const std::vector<std::string>& texts, const apl::Module& module) {
  std::set<std::string> operands;
  for (const apl::FunctionPtr& function : module.functions)
    for (std::string& name : operands_of(*function)) operands.insert(std::move(name));
  std::vector<apl::SparsePlan> plans;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
      return apl::make_error(apl::Code::command_bad_argument, {},
                             fmt::format("--plan {}: expected OPERAND=FILE", text));
    apl::SparsePlan plan{text.substr(0, equals), text.substr(equals + 1), {}};
    if (!operands.contains(plan.operand))
      return apl::make_error(
          apl::Code::command_bad_argument, {},
          fmt::format("--plan {}: no entry has a sparse operand `{}`; {}", text, plan.operand,
                      operands.empty() ? "none has any" : fmt::format("there is {}", fmt::join(operands, ", "))));
    auto contents = read_file(plan.source);
    if (!contents) {
      apl::Diagnostic error = std::move(contents).error();
      error.message = fmt::format("--plan {}: {}", text, error.message);
      return error;
    }
    plan.text = std::move(*contents);
    plans.push_back(std::move(plan));
  }
  return plans;
}

PlacedPlans apply_dense_plans(apl::Module& module, std::vector<apl::SparsePlan> plans, const apl::RemarkSink& remarks) {
  std::set<std::string> dense, other;
  for (const apl::SparsePlan& plan : plans) (is_dense(plan) ? dense : other).insert(plan.operand);
  for (apl::FunctionPtr& function : module.functions) {
    for (const std::string& operand : operands_of(*function)) {
      if (!dense.contains(operand) || other.contains(operand)) continue;
      apl::Remark remark;
      remark.pass = "sparse-plan";
      remark.function = function->entry->name;
      remark.kind = apl::RemarkKind::applied;
      remark.code = "dense";
      remark.message = fmt::format("the plan for `{}` says `form dense`: the dense product is compiled", operand);
      if (remarks) remarks(remark);
      function = without_request(*function, operand);
    }
  }
  PlacedPlans placed;
  for (apl::SparsePlan& plan : plans) {
    const bool followed = dense.contains(plan.operand) && !other.contains(plan.operand);
    (followed ? placed.dense : placed.tiles).push_back(std::move(plan));
  }
  return placed;
}

apl::Result<PlacedPlans> place_plans(apl::Module& module, std::vector<apl::SparsePlan> plans, bool use_cublas,
                                     const std::string& backend, const apl::RemarkSink& remarks) {
  if (!use_cublas) return apply_dense_plans(module, std::move(plans), remarks);
  if (backend != "cuda" && backend != "emulate")
    return apl::make_error(apl::Code::command_bad_argument, {},
                           fmt::format("--use-cublas is for --backend=cuda, not {}", backend));
  if (std::ranges::none_of(plans, is_dense))
    return apl::make_error(apl::Code::command_bad_argument, {},
                           "--use-cublas is for plans that say `form dense`; none that is given does");
  return PlacedPlans{std::move(plans), {}};
}

namespace {

// The plans for an operand of these arguments, which are those of the function before the passes: nothing where the
// operand has none, or is not among them.
using Fitting = std::map<std::string, std::vector<const apl::program::GivenPlan*>>;
apl::Result<Fitting> fitting_plans(const apl::Function& function, const std::vector<apl::program::GivenPlan>& plans,
                                   const std::vector<apl::HostValue>& values, const GivenMatrices& matrices) {
  Fitting all;
  for (std::size_t k = 0; k < function.entry->params.size(); ++k) {
    const std::string& name = function.entry->params[k].name;
    if (std::ranges::find(plans, name, &apl::program::GivenPlan::operand) == plans.end()) continue;
    std::size_t value = 0;
    for (std::size_t before = 0; before < k; ++before) value += function.entry->param_values[before];
    const auto given = matrices.find(value);
    if (given == matrices.end() && (value >= values.size() || values[value].rank() != 2)) continue;
    const apl::HostCsr matrix = given != matrices.end() ? given->second : apl::to_csr(values[value]);
    const apl_sparse_csr rows = apl::csr_view(matrix);
    auto fits = apl::program::plans_for(plans, name, rows);
    if (!fits) return std::move(fits).error();
    all.emplace(name, *std::move(fits));
  }
  return all;
}

}  // namespace

apl::Result<std::vector<apl::SparsePlan>> plans_of_call(const apl::Function& function,
                                                        const std::vector<apl::SparsePlan>& texts,
                                                        const std::vector<apl::HostValue>& values,
                                                        const GivenMatrices& matrices) {
  const auto plans = apl::program::read_plans(texts);
  if (!plans) return plans.error();
  const auto fitting = fitting_plans(function, *plans, values, matrices);
  if (!fitting) return fitting.error();
  std::vector<apl::SparsePlan> kept;
  for (std::size_t k = 0; k < texts.size(); ++k) {
    const auto of_operand = fitting->find(texts[k].operand);
    if (of_operand == fitting->end() || std::ranges::find(of_operand->second, &(*plans)[k]) != of_operand->second.end())
      kept.push_back(texts[k]);
  }
  return kept;
}

apl::Status check_dense_plans(const apl::Function& function, const std::vector<apl::SparsePlan>& dense,
                              const std::vector<apl::HostValue>& values, const GivenMatrices& matrices) {
  const auto plans = apl::program::read_plans(dense);
  if (!plans) return plans.error();
  auto fitting = fitting_plans(function, *plans, values, matrices);
  return fitting ? apl::Status(apl::Unit{}) : apl::Status(std::move(fitting).error());
}

void print_plan_remark(const apl::Remark& remark) { print_error("{}\n", apl::render(remark, "")); }

}  // namespace aplc::sparse
