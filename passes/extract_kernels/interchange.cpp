// Reductions and scans whose operator is a map over rows:
//
//   let {r : [m]f32} = reduce(i < n, {xss}, \{a, b} -> { map(j < m, {a, b}, op) }, {zs})
// =>
//   let {t : [m][n]f32} = rearrange(xss, (1, 0))
//   let {r : [m]f32} = map(j < m, {t, zs}, \{col, z} -> { reduce(i < n, {col}, op, {z}) })
//
// What a map makes of each row before is made of the elements, where all else it does is cheap enough to be done again
// for each of them:
//
//   let {r : [m]f32} = redomap(i < n, {ws, xss}, \{w, xs} -> { map(j < m, {xs}, f w) }, \{a, b} -> { map(..) }, {zs})
// =>
//   let {r : [m]f32} = map(j < m, {zs}, \{z} -> { redomap(i < n, {ws, xss}, \{w, xs} -> { f w xs[j] }, op, {z}) })
//
// A scan's result is rearranged back. Histograms with such operators, and scatters of rows, run over the rows' dims,
// too: index i, j folds one element.
#include "passes/extract_kernels/interchange.h"

#include <range/v3/view/zip.hpp>

#include <algorithm>
#include <numeric>

#include "ir/attributes.h"
#include "ir/builder.h"
#include "ir/walk.h"
#include "passes/analysis/cheap.h"
#include "passes/analysis/row_operators.h"

namespace apl {

namespace {

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
  for (const auto& [old, index] : ranges::views::zip(map.indices, indices)) here.insert_or_assign(old, Operand(index));
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

// What a column begins with: the scalar that was replicated, or an element of the row, which becomes an input of the
// map over the rows' dims.
std::vector<Operand> neutral_of_column(const ReduceOp& reduce, std::size_t dims, Replicated& replicated, Screma& map,
                                       ValueTable& values) {
  std::vector<Operand> result;
  for (const Operand& row : reduce.neutral) {
    const auto scalar = replicated.find(row.value());
    if (scalar != replicated.end() && values.type(row).rank() == dims) {
      result.push_back(scalar->second);
      continue;
    }
    map.inputs.push_back(row.value());
    map.map.params.push_back(values.add(values.type(row).row(dims), values.name(row.value())));
    result.emplace_back(map.map.params.back());
    if (scalar != replicated.end()) replicated.insert_or_assign(map.map.params.back(), scalar->second);
  }
  return result;
}

// The statement inside of a map over the rows' dims that folds one column; its results.
std::vector<Operand> append_column(const Stm& rows, Screma column, const Replicated& replicated, Builder& thread) {
  ValueTable& values = thread.values();
  std::vector<std::string> names;
  for (const Value v : rows.pattern) names.push_back(values.name(v));
  Stm inner{.op = std::move(column), .location = rows.location};
  for (const Type& type : result_types(inner.op, values, nullptr))
    inner.pattern.push_back(values.add(type, names[inner.pattern.size() % names.size()]));
  std::vector<Operand> results(inner.pattern.begin(), inner.pattern.end());
  if (const std::optional<std::vector<Stm>> apart = take_rows_apart(inner, replicated, values)) {
    thread.append_all(*apart);
  } else {
    thread.append(std::move(inner));
  }
  return results;
}

// Makes the elements at `indices` of rows that a reduction's lambda makes.
class ElementsOfRows {
 public:
  ElementsOfRows(const Screma& reduction, const std::vector<Value>& indices, ValueTable& values)
      : reduction_(reduction), indices_(indices), values_(values) {}

  // Of the body's results, without its statements that make no rows.
  std::vector<Operand> operator()(const Body& body, const RowMakers& parted, Builder& out) {
    for (const Stm* stm : parted.makers) make(*stm, out);
    std::vector<Operand> results;
    for (const Operand& row : body.results) {
      const auto made = made_.find(row.value());
      results.push_back(made != made_.end() ? made->second : element(row.value(), out));
    }
    return results;
  }

 private:
  void make(const Stm& stm, Builder& out) {
    std::vector<Operand> elements;
    if (const Screma* map = get_if<Screma>(stm)) {
      Substitution here;
      for (const auto& [index, outer] : ranges::views::zip(map->indices, indices_))
        here.insert_or_assign(index, Operand(outer));
      for (const auto& [param, input] : ranges::views::zip(map->map.params, map->inputs))
        here.insert_or_assign(param, element(input, out));
      const BodyPtr copy = copy_fresh(map->map.body, here, values_, values_);
      out.append_all(copy->stms);
      elements = copy->results;
    } else if (const Replicate* repeated = get_if<Replicate>(stm)) {
      elements.push_back(repeated->value);
    } else {
      const If& branch = std::get<If>(stm.op);
      const auto side = [&](const BodyPtr& body) {
        return [&, body](Builder& inner) {
          const std::optional<RowMakers> parted = row_makers(*body, widths_of(stm), values_);
          inner.append_all(parted->others.stms);
          return (*this)(*body, *parted, inner);
        };
      };
      for (const Value v : out.if_else_many({values_.name(stm.pattern.front())}, branch.condition,
                                            side(branch.then_body), side(branch.else_body)))
        elements.emplace_back(v);
    }
    for (const auto& [row, made] : ranges::views::zip(stm.pattern, elements)) made_.emplace(row, made);
  }

  std::vector<Poly> widths_of(const Stm& stm) const {
    const std::vector<Poly>& shape = values_.type(stm.pattern.front()).shape;
    return {shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(indices_.size())};
  }

  Operand element(Value row, Builder& out) const {
    Value array = row;
    std::vector<DimIndex> at;
    const auto param = std::ranges::find(reduction_.map.params, row);
    if (param != reduction_.map.params.end()) {
      array = reduction_.inputs[static_cast<std::size_t>(param - reduction_.map.params.begin())];
      for (const Value index : reduction_.indices) at.push_back(DimIndex::fix(index));
    }
    for (const Value index : indices_) at.push_back(DimIndex::fix(index));
    return out.let(values_.name(row), Index{array, at});
  }

  const Screma& reduction_;
  const std::vector<Value>& indices_;
  ValueTable& values_;
  std::map<Value, Operand> made_;
};

// #[sequential_inner] of a reduction is about its operator's map over a row, which is outermost now.
std::vector<Attribute> attributes_of_columns(const Stm& stm) {
  std::vector<Attribute> result = stm.attributes;
  std::erase_if(result, [](const Attribute& a) { return a.name == attribute::sequential_inner.name; });
  return result;
}

// What all columns share and is not cheap, in a map of its own: the arrays of what the elements need.
std::vector<Value> shared_by_columns(const Screma& reduction, const RowMakers& parted, Location location,
                                     Builder& host) {
  ValueTable& values = host.values();
  Screma map{.widths = reduction.widths, .indices = reduction.indices, .inputs = reduction.inputs};
  map.map.params = reduction.map.params;
  map.map.body = make_body(parted.others.stms, {parted.shared.begin(), parted.shared.end()});
  Stm stm{.op = std::move(map), .location = location};
  std::vector<std::string> names;
  for (const Value v : parted.shared) {
    names.push_back(values.name(v));
    stm.pattern.push_back(values.add(Type::array(values.type(v).element, reduction.widths), names.back()));
  }
  Substitution none;
  const BodyPtr copy = copy_fresh(make_body({stm}, {stm.pattern.begin(), stm.pattern.end()}), none, values, values);
  host.append_all(copy->stms);
  return copy->stms.back().pattern;
}

// A reduction of rows that a map makes.
std::optional<std::vector<Stm>> mapped_columns(const Stm& stm, const Screma& screma, const Screma& rows,
                                               Replicated replicated, ValueTable& values) {
  const std::optional<RowMakers> parted = row_makers(screma, rows, values);
  if (!parted) return std::nullopt;
  const ReduceOp& reduce = screma.reduces.front();
  Builder host(values);
  host.set_location(stm.location);
  std::vector<Value> params = screma.map.params, inputs = screma.inputs;
  if (!parted->cheap) {
    params.insert(params.end(), parted->shared.begin(), parted->shared.end());
    std::ranges::copy(shared_by_columns(screma, *parted, stm.location, host), std::back_inserter(inputs));
  }
  Screma map{.widths = rows.widths, .indices = fresh_indices(rows.indices, values)};
  const std::vector<Operand> neutral = neutral_of_column(reduce, rows.widths.size(), replicated, map, values);
  map.map.body = host.body([&](Builder& thread) {
    Screma column{.widths = screma.widths, .indices = fresh_indices(screma.indices, values)};
    Builder out(values);
    out.set_location(stm.location);
    if (parted->cheap) out.append_all(parted->others.stms);
    std::vector<Operand> elements = ElementsOfRows(screma, map.indices, values)(*screma.map.body, *parted, out);
    Lambda each{{}, out.finish(std::move(elements))};
    const std::set<Value> read = free_values(*each.body, values);
    for (const auto& [param, input] : ranges::views::zip(params, inputs)) {
      if (!read.contains(param)) continue;
      each.params.push_back(param);
      column.inputs.push_back(input);
    }
    Substitution here;
    for (const auto& [index, fresh] : ranges::views::zip(screma.indices, column.indices))
      here.insert_or_assign(index, Operand(fresh));
    column.map = copy_fresh(each, here, values, values);
    column.reduces.push_back(on_elements(reduce, rows, map.indices, neutral, values));
    return append_column(stm, std::move(column), replicated, thread);
  });
  Stm made = stm;
  made.op = std::move(map);
  made.attributes = attributes_of_columns(stm);
  std::vector<Stm> result = host.take();
  for (Stm& s : result) s.certificates = stm.certificates;
  result.push_back(std::move(made));
  return result;
}

std::optional<std::vector<Stm>> columns(const Stm& stm, const Screma& screma, Replicated replicated,
                                        ValueTable& values) {
  if (screma.reduces.size() != 1 || screma.map.body->results.size() != screma.reduced_count()) return std::nullopt;
  const ReduceOp& reduce = screma.reduces.front();
  const Screma* rows = row_map(reduce, values);
  if (rows == nullptr) return std::nullopt;
  if (!is_identity(screma.map)) return mapped_columns(stm, screma, *rows, replicated, values);
  const std::size_t outer = screma.widths.size(), dims = rows->widths.size();
  Builder host(values);
  host.set_location(stm.location);
  Screma map{.widths = rows->widths, .indices = fresh_indices(rows->indices, values)};
  for (const Value input : screma.inputs)
    map.inputs.push_back(host.rearrange(input, rotation(values.type(input).rank(), outer, dims), values.name(input)));
  const std::size_t n = screma.inputs.size();
  for (const Value input : map.inputs)
    map.map.params.push_back(values.add(values.type(input).row(dims), values.name(input)));
  const std::vector<Operand> neutral = neutral_of_column(reduce, dims, replicated, map, values);
  map.map.body = host.body([&](Builder& thread) {
    Screma column{.widths = screma.widths, .indices = fresh_indices(screma.indices, values)};
    column.inputs.assign(map.map.params.begin(), map.map.params.begin() + static_cast<std::ptrdiff_t>(n));
    std::vector<Operand> elements;
    for (const Value input : column.inputs) {
      column.map.params.push_back(values.add(values.type(input).row(outer), values.name(input)));
      elements.emplace_back(column.map.params.back());
    }
    column.map.body = make_body({}, std::move(elements));
    column.reduces.push_back(on_elements(reduce, *rows, map.indices, neutral, values));
    return append_column(stm, std::move(column), replicated, thread);
  });
  Stm made{
      .pattern = stm.pattern, .op = std::move(map), .location = stm.location, .attributes = attributes_of_columns(stm)};
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
    if (replicate == nullptr) return;
    if (values.type(replicate->value).is_scalar()) {
      result.insert_or_assign(stm.pattern.front(), replicate->value);
    } else if (const auto row = result.find(replicate->value.value()); row != result.end()) {
      const Operand scalar = row->second;
      result.insert_or_assign(stm.pattern.front(), scalar);
    }
  });
  return result;
}

std::optional<std::vector<Stm>> take_rows_apart(const Stm& stm, const Replicated& replicated, ValueTable& values) {
  if (const Screma* screma = get_if<Screma>(stm)) return columns(stm, *screma, replicated, values);
  if (const Scatter* scatter = get_if<Scatter>(stm)) return elements(stm, *scatter, replicated, values);
  return std::nullopt;
}

}  // namespace apl
