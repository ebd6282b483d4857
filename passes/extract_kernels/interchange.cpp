// Reductions and scans whose operator is a map over rows:
//
//   let {r : [m]f32} = reduce(i < n, {xss}, \{a, b} -> { map(j < m, {a, b}, op) }, {zs})
// =>
//   let {t : [m][n]f32} = rearrange(xss, (1, 0))
//   let {r : [m]f32} = map(j < m, {t, zs}, \{col, z} -> { reduce(i < n, {col}, op, {z}) })
//
// A scan's result is rearranged back. Histograms with such operators, and scatters of rows, run over the rows' dims,
// too: index i, j folds one element.
#include "passes/extract_kernels/interchange.h"

#include <range/v3/view/zip.hpp>

#include <algorithm>
#include <numeric>

#include "ir/builder.h"
#include "ir/walk.h"
#include "passes/analysis/cheap.h"

namespace apl {

namespace {

// The map that an operator consists of: it streams both rows, and its results are the operator's.
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

// The operator on elements: parameters in the order of the rows'.
ReduceOp on_elements(const ReduceOp& reduce, const Screma& map, const std::vector<Value>& indices,
                     std::vector<Operand> neutral, ValueTable& values) {
  Lambda element = map.map;
  std::vector<Value> params;
  for (const Value row : reduce.op.params) {
    const auto at = std::ranges::find(map.inputs, row) - map.inputs.begin();
    params.push_back(element.params[static_cast<std::size_t>(at)]);
  }
  element.params = std::move(params);
  Substitution here;
  for (std::size_t d = 0; d < indices.size(); ++d) here.insert_or_assign(map.indices[d], Operand(indices[d]));
  return {copy_fresh(element, here, values, values), std::move(neutral), reduce.commutative, reduce.scan};
}

std::vector<Value> fresh_indices(const std::vector<Value>& like, ValueTable& values) {
  std::vector<Value> result;
  for (const Value v : like) result.push_back(values.add(Type::scalar(ScalarType::i64), values.name(v)));
  return result;
}

// Dims `from`.. of an array of rank `rank` first.
std::vector<int> rotation(std::size_t rank, std::size_t from, std::size_t count) {
  std::vector<int> result;
  for (std::size_t k = 0; k < count; ++k) result.push_back(static_cast<int>(from + k));
  for (std::size_t k = 0; k < rank; ++k)
    if (k < from || k >= from + count) result.push_back(static_cast<int>(k));
  return result;
}

std::optional<std::vector<Stm>> columns(const Stm& stm, const Screma& screma, const Replicated& replicated,
                                        ValueTable& values) {
  if (screma.reduces.size() != 1 || !is_identity(screma.map) || screma.map.params.size() != screma.reduced_count())
    return std::nullopt;
  const ReduceOp& reduce = screma.reduces.front();
  const Screma* rows = row_map(reduce, values);
  if (rows == nullptr) return std::nullopt;
  const std::size_t outer = screma.widths.size(), dims = rows->widths.size();
  Builder host(values);
  host.set_location(stm.location);
  Screma map{.widths = rows->widths, .indices = fresh_indices(rows->indices, values)};
  for (const Value input : screma.inputs)
    map.inputs.push_back(host.rearrange(input, rotation(values.type(input).rank(), outer, dims), values.name(input)));
  const std::size_t n = screma.inputs.size();
  for (const Operand& neutral : reduce.neutral) map.inputs.push_back(neutral.value());
  for (const Value input : map.inputs)
    map.map.params.push_back(values.add(values.type(input).row(dims), values.name(input)));
  map.map.body = host.body([&](Builder& thread) {
    Screma column{.widths = screma.widths, .indices = fresh_indices(screma.indices, values)};
    column.inputs.assign(map.map.params.begin(), map.map.params.begin() + static_cast<std::ptrdiff_t>(n));
    std::vector<Operand> neutral(map.map.params.begin() + static_cast<std::ptrdiff_t>(n), map.map.params.end());
    std::vector<Operand> elements;
    for (const Value input : column.inputs) {
      column.map.params.push_back(values.add(values.type(input).row(outer), values.name(input)));
      elements.emplace_back(column.map.params.back());
    }
    column.map.body = make_body({}, std::move(elements));
    column.reduces.push_back(on_elements(reduce, *rows, map.indices, std::move(neutral), values));
    std::vector<std::string> names;
    for (const Value v : stm.pattern) names.push_back(values.name(v));
    Stm inner{.op = column, .location = stm.location};
    for (const Type& type : result_types(inner.op, values, nullptr))
      inner.pattern.push_back(values.add(type, names[inner.pattern.size() % names.size()]));
    const std::vector<Value> results = inner.pattern;
    if (std::optional<std::vector<Stm>> apart = take_rows_apart(inner, replicated, values)) {
      thread.append_all(*apart);
    } else {
      thread.append(std::move(inner));
    }
    return std::vector<Operand>(results.begin(), results.end());
  });
  Stm made{.pattern = stm.pattern, .op = std::move(map), .location = stm.location, .attributes = stm.attributes};
  std::vector<Stm> back;
  if (reduce.scan) {
    for (Value& v : made.pattern) {
      const Type type = values.type(v);
      const std::vector<int> permutation = rotation(type.rank(), dims, outer);
      std::vector<Poly> shape = rows->widths;
      shape.insert(shape.end(), type.shape.begin(), type.shape.begin() + static_cast<std::ptrdiff_t>(outer));
      shape.insert(shape.end(), type.shape.begin() + static_cast<std::ptrdiff_t>(outer + dims), type.shape.end());
      const Value turned = values.add(Type::array(type.element, std::move(shape)), values.name(v));
      back.push_back({.pattern = {v}, .op = Rearrange{turned, permutation}, .location = stm.location});
      v = turned;
    }
  }
  std::vector<Stm> result = host.take();
  result.push_back(std::move(made));
  result.insert(result.end(), back.begin(), back.end());
  for (Stm& s : result) s.certificates = stm.certificates;
  return result;
}

std::optional<std::vector<Stm>> elements(const Stm& stm, const Scatter& scatter, const Replicated& replicated,
                                         ValueTable& values) {
  const Body& body = *scatter.map.body;
  std::vector<Poly> widths;
  const Screma* rows = nullptr;
  if (scatter.op) {
    rows = row_map(*scatter.op, values);
    if (rows == nullptr) return std::nullopt;
    widths = rows->widths;
  } else {
    const Type target = values.type(scatter.targets.front());
    for (const Value other : scatter.targets)
      if (values.type(other).shape != target.shape) return std::nullopt;
    widths = target.row(scatter.rank).shape;
  }
  // What comes before is done again for every element.
  if (widths.empty() || !is_cheap(body, values) || can_fail(body, values)) return std::nullopt;
  Scatter wide = scatter;
  wide.rank += widths.size();
  const std::vector<Value> at = rows != nullptr
                                    ? fresh_indices(rows->indices, values)
                                    : fresh_indices(std::vector<Value>(widths.size(), scatter.indices.front()), values);
  wide.widths.insert(wide.widths.end(), widths.begin(), widths.end());
  wide.indices.insert(wide.indices.end(), at.begin(), at.end());
  std::vector<DimIndex> outer;
  for (const Value index : scatter.indices) outer.push_back(DimIndex::fix(index));
  std::vector<DimIndex> inner;
  for (const Value index : at) inner.push_back(DimIndex::fix(index));
  std::vector<Stm> stms;
  // Inputs have no such dims: they are read by index.
  for (const auto& [param, input] : ranges::views::zip(scatter.map.params, scatter.inputs))
    stms.push_back({.pattern = {param}, .op = Index{input, outer}, .location = stm.location});
  wide.inputs.clear();
  wide.map.params.clear();
  stms.insert(stms.end(), body.stms.begin(), body.stms.end());
  std::vector<Operand> results(body.results.begin(), body.results.begin() + static_cast<std::ptrdiff_t>(scatter.rank));
  results.insert(results.end(), at.begin(), at.end());
  std::vector<Operand> neutral;
  for (std::size_t k = 0; k < scatter.targets.size(); ++k) {
    const Value row = body.results[scatter.rank + k].value();
    const Value element = values.add(values.type(row).row(widths.size()), values.name(row));
    stms.push_back({.pattern = {element}, .op = Index{row, inner}, .location = stm.location});
    results.emplace_back(element);
  }
  if (rows != nullptr) {
    for (const Operand& row : scatter.op->neutral) {
      const auto element = row.is_value() ? replicated.find(row.value()) : replicated.end();
      // What was replicated is the neutral element only if the operator's map goes down to scalars.
      if (element == replicated.end() || values.type(row).rank() != widths.size()) return std::nullopt;
      neutral.push_back(element->second);
    }
    wide.op = on_elements(*scatter.op, *rows, at, std::move(neutral), values);
  }
  wide.map.body = make_body(std::move(stms), std::move(results));
  Stm made = stm;
  made.op = std::move(wide);
  return std::vector<Stm>{std::move(made)};
}

}  // namespace

Replicated find_replicated(const Body& body, const ValueTable& values) {
  Replicated result;
  for_each_stm(body, [&](const Stm& stm) {
    const Replicate* replicate = get_if<Replicate>(stm);
    if (replicate != nullptr && values.type(replicate->value).is_scalar())
      result.insert_or_assign(stm.pattern.front(), replicate->value);
  });
  return result;
}

std::optional<std::vector<Stm>> take_rows_apart(const Stm& stm, const Replicated& replicated, ValueTable& values) {
  if (const Screma* screma = get_if<Screma>(stm)) return columns(stm, *screma, replicated, values);
  if (const Scatter* scatter = get_if<Scatter>(stm)) return elements(stm, *scatter, replicated, values);
  return std::nullopt;
}

}  // namespace apl
