#include "runtime/program/sparse_plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace apl::program {
namespace {

template <class T>
std::vector<T> elements(const HostValue& value) {
  std::vector<T> result(value.data.size() / sizeof(T));
  if (!result.empty()) std::memcpy(result.data(), value.data.data(), result.size() * sizeof(T));
  return result;
}

}  // namespace

Result<std::vector<GivenPlan>> read_plans(const std::vector<SparsePlan>& texts) {
  std::vector<GivenPlan> plans;
  for (const SparsePlan& given : texts) {
    apl_sparse_plan* plan = nullptr;
    std::array<char, 200> message{};
    const int status =
        apl_sparse_plan_parse(given.text.data(), given.text.size(), &plan, message.data(), message.size());
    if (status != APL_SPARSE_FINE)
      return make_error(status == APL_SPARSE_OUT_OF_MEMORY ? Code::run_out_of_memory : Code::syntax_error, {},
                        fmt::format("{}: {}", given.source, message.data()));
    plans.push_back({given.operand, given.source, {plan, apl_sparse_plan_free}});
  }
  return plans;
}

Status check_followed(const std::vector<GivenPlan>& plans) {
  for (const GivenPlan& given : plans) {
    const auto has_tiles = [&](const GivenPlan& other) {
      return other.operand == given.operand && other.plan->dense == 0;
    };
    if (given.plan->dense != 0 && std::ranges::none_of(plans, has_tiles))
      return make_error(Code::run_argument, {},
                        fmt::format("sparse operand `{0}`: plan {1} says `form dense`: compile the program without "
                                    "#[sparse({0})]",
                                    given.operand, given.source));
  }
  return Unit{};
}

Result<std::vector<const GivenPlan*>> plans_for(const std::vector<GivenPlan>& plans, const std::string& operand,
                                                const apl_sparse_csr& matrix) {
  std::vector<const GivenPlan*> fitting;
  std::string differences;
  for (const GivenPlan& given : plans) {
    if (given.operand != operand) continue;
    std::array<char, 200> differs{};
    if (apl_sparse_plan_fits(given.plan.get(), &matrix, differs.data(), differs.size()) == APL_SPARSE_FINE) {
      fitting.push_back(&given);
    } else {
      differences += fmt::format("{}plan {} {}", differences.empty() ? "" : "; ", given.source, differs.data());
    }
  }
  if (fitting.empty() && !differences.empty())
    return make_error(Code::run_argument, {}, fmt::format("sparse operand `{}`: {}", operand, differences));
  return fitting;
}

std::optional<CsrPattern> rows_of_soa(const SparseSoa& soa, const std::vector<HostValue>& values) {
  const auto field = [&](SoaField wanted) -> const HostValue* {
    const auto at = std::ranges::find(soa.fields, wanted) - soa.fields.begin();
    const std::size_t k = soa.first + static_cast<std::size_t>(at);
    return at == std::ssize(soa.fields) || k >= values.size() ? nullptr : &values[k];
  };
  const HostValue *shape = field(SoaField::shape), *column = field(SoaField::column);
  const HostValue *starts = field(SoaField::row_start), *row = field(SoaField::row);
  const HostValue *column_start = field(SoaField::column_start), *by_column = field(SoaField::by_column);
  if (shape == nullptr || shape->rank() != 3) return std::nullopt;
  CsrPattern rows{shape->shape[1], shape->shape[2], {}, {}};
  if (starts != nullptr) {
    rows.row_start = elements<std::int64_t>(*starts);
  } else if (row != nullptr) {
    rows.row_start.assign(static_cast<std::size_t>(rows.rows) + 1, 0);
    for (const std::int32_t r : elements<std::int32_t>(*row)) ++rows.row_start.at(static_cast<std::size_t>(r) + 1);
    for (std::size_t r = 1; r < rows.row_start.size(); ++r) rows.row_start[r] += rows.row_start[r - 1];
  } else {
    return std::nullopt;
  }
  if (column != nullptr) {
    rows.column = elements<std::int32_t>(*column);
  } else if (column_start != nullptr && by_column != nullptr) {
    const auto first = elements<std::int64_t>(*column_start);
    const auto order = elements<std::int32_t>(*by_column);
    rows.column.resize(order.size());
    for (std::size_t c = 0; c + 1 < first.size(); ++c)
      for (std::int64_t k = first[c]; k < first[c + 1]; ++k)
        rows.column.at(static_cast<std::size_t>(order.at(static_cast<std::size_t>(k)))) = static_cast<std::int32_t>(c);
  } else {
    return std::nullopt;
  }
  return rows;
}

Remark plan_remark(const PlanUse& use, std::string_view entry, const std::string& otherwise) {
  Remark remark;
  remark.kind = use.used ? RemarkKind::applied : RemarkKind::missed;
  remark.pass = "sparse-plan";
  remark.code = use.used ? "used" : "not-used";
  remark.function = entry;
  remark.message =
      fmt::format("plan {} for `{}` is {}used", use.plan->source, use.plan->operand, use.used ? "" : "not ");
  remark.facts = {{use.used ? "of it" : "why", use.why.empty() ? otherwise : use.why}};
  return remark;
}

}  // namespace apl::program
