#include "passes/analysis/row_operators.h"

#include <range/v3/view/zip.hpp>

#include <algorithm>
#include <set>

#include "ir/walk.h"
#include "passes/analysis/cheap.h"

namespace apl {

namespace {

// So few columns stay together: rows are read once.
constexpr std::int64_t kFewColumns = 16;

// Whether all rows that the statement makes can be made element by element.
bool makes_elements(const Stm& stm, const std::vector<Poly>& width, const ValueTable& values) {
  if (const Screma* map = get_if<Screma>(stm)) return map->reduces.empty() && map->widths == width;
  if (const Replicate* repeated = get_if<Replicate>(stm)) return repeated->shape == width;
  const If* branch = get_if<If>(stm);
  if (branch == nullptr) return false;
  for (const BodyPtr& body : {branch->then_body, branch->else_body}) {
    if (!std::ranges::all_of(body->results, [&](const Operand& row) {
          const Type type = values.type(row);
          return type.rank() >= width.size() && std::equal(width.begin(), width.end(), type.shape.begin());
        }))
      return false;
    const std::optional<RowMakers> makers = row_makers(*body, width, values);
    if (!makers || !makers->cheap) return false;
  }
  return true;
}

}  // namespace

const Screma* row_map(const ReduceOp& reduce, const ValueTable& values) {
  const Body& body = *reduce.op.body;
  if (body.stms.size() != 1) return nullptr;
  const Stm& stm = body.stms.front();
  const Screma* map = get_if<Screma>(stm);
  if (map == nullptr || !map->reduces.empty() || body.results.size() != stm.pattern.size()) return nullptr;
  for (const auto& [result, made] : ranges::views::zip(body.results, stm.pattern))
    if (result != Operand(made)) return nullptr;
  const std::vector<Value>& params = reduce.op.params;
  const std::set<Value> inside = free_values(map->map, values);
  if (!std::ranges::is_permutation(map->inputs, params)) return nullptr;
  if (std::ranges::any_of(params, [&](Value param) { return inside.contains(param); })) return nullptr;
  // The dims of the rows are known outside, and the same for all.
  for (const Poly& width : map->widths) {
    bool known = true;
    width.for_each_symbol([&](Value v) { known = known && std::ranges::find(params, v) == params.end(); });
    if (!known) return nullptr;
  }
  return map;
}

std::optional<RowMakers> row_makers(const Body& body, const std::vector<Poly>& width, const ValueTable& values) {
  RowMakers result;
  std::set<Value> rows, other;
  for (const Stm& stm : body.stms) {
    const std::set<Value> read = free_values(Body{.stms = {stm}}, values);
    if (std::ranges::any_of(rows, [&](Value v) { return read.contains(v); })) return std::nullopt;
    const bool is_result = std::ranges::any_of(
        stm.pattern, [&](Value v) { return std::ranges::find(body.results, Operand(v)) != body.results.end(); });
    if (is_result && makes_elements(stm, width, values)) {
      result.makers.push_back(&stm);
      rows.insert(stm.pattern.begin(), stm.pattern.end());
    } else {
      result.others.stms.push_back(stm);
      other.insert(stm.pattern.begin(), stm.pattern.end());
    }
  }
  std::set<Value> needed;
  for (const Stm* stm : result.makers) needed.merge(free_values(Body{.stms = {*stm}}, values));
  for (const Operand& row : body.results)
    if (row.is_value()) needed.insert(row.value());
  std::ranges::set_intersection(needed, other, std::back_inserter(result.shared));
  result.cheap = is_cheap(result.others, values);
  if (!result.cheap && !std::ranges::all_of(result.shared, [&](Value v) { return values.type(v).is_scalar(); }))
    return std::nullopt;
  return result;
}

std::optional<RowMakers> row_makers(const Screma& reduction, const Screma& rows, const ValueTable& values) {
  const Body& body = *reduction.map.body;
  const std::optional<std::int64_t> few = product(rows.widths).constant();
  if (reduction.scans() || (few && *few <= kFewColumns) || can_fail(body, values)) return std::nullopt;
  return row_makers(body, rows.widths, values);
}

bool reduces_by_columns(const Screma& reduction, const ValueTable& values) {
  if (reduction.reduces.size() != 1 || reduction.map.body->results.size() != reduction.reduced_count()) return false;
  const Screma* rows = row_map(reduction.reduces.front(), values);
  return rows != nullptr && row_makers(reduction, *rows, values).has_value();
}

}  // namespace apl
