#include "passes/extract_kernels/nest.h"

#include <range/v3/view/zip.hpp>

#include <algorithm>
#include <set>

#include "ir/attributes.h"
#include "ir/walk.h"
#include "passes/analysis/cheap.h"
#include "passes/analysis/consumption.h"

namespace apl {

namespace {

struct Step {
  const Stm* stm = nullptr;          // the next level
  std::vector<std::size_t> results;  // result k of this level is result results[k] of the next
  std::string refused;
  std::string code;
};

// The one map inside a lambda, if the lambda does nothing else that would keep it from being a nest.
Step next_level(const Stm& at, const Screma& screma, const ValueTable& values) {
  const Body& body = *screma.map.body;
  Step step;
  for (const Stm& stm : body.stms) {
    const Screma* inner = get_if<Screma>(stm);
    if (inner == nullptr || !inner->reduces.empty()) continue;
    if (step.stm != nullptr) return {.refused = "there are several maps inside", .code = "imperfect-nest"};
    step.stm = &stm;
  }
  if (step.stm == nullptr) return step;
  const auto refuse = [](std::string code, std::string why) {
    return Step{.refused = std::move(why), .code = std::move(code)};
  };
  if (has_attribute(at.attributes, attribute::sequential_inner) ||
      has_attribute(step.stm->attributes, attribute::sequential)) {
    return refuse("sequential", "an attribute asks for it");
  }
  std::set<Value> local(screma.indices.begin(), screma.indices.end());
  local.insert(screma.map.params.begin(), screma.map.params.end());
  for (const Stm& stm : body.stms) {
    if (&stm != step.stm) local.insert(stm.pattern.begin(), stm.pattern.end());
  }
  const Screma& inner = std::get<Screma>(step.stm->op);
  bool regular = true;
  for (const Poly& width : inner.widths) {
    width.for_each_symbol([&](Value v) { regular = regular && !local.contains(v); });
  }
  if (!regular) return refuse("irregular", "the inner map's width depends on the outer index");
  for (const Operand& result : body.results) {
    const auto found =
        result.is_value() ? std::ranges::find(step.stm->pattern, result.value()) : step.stm->pattern.end();
    if (found == step.stm->pattern.end()) return refuse("imperfect-nest", "the outer map has a result of its own");
    step.results.push_back(static_cast<std::size_t>(found - step.stm->pattern.begin()));
  }
  Body rest;
  for (const Stm& stm : body.stms) {
    if (&stm == step.stm) continue;
    for (const Value v : free_values(stm.op, values)) {
      if (std::ranges::find(step.stm->pattern, v) != step.stm->pattern.end()) {
        return refuse("imperfect-nest", "the inner map's result is used before the outer map ends");
      }
    }
    rest.stms.push_back(stm);
  }
  if (can_fail(rest, values)) return refuse("can-fail-between", "a statement between the maps can fail");
  if (!is_cheap(rest, values))
    return refuse("imperfect-nest", "there is work between the maps that should not be repeated");
  for (const Value certificate : step.stm->certificates) {
    if (local.contains(certificate))
      return refuse("can-fail-between", "the inner map relies on a check between the maps");
  }
  return step;
}

void add_level(Nest& nest, const Stm& stm, const Screma& screma) {
  nest.levels.push_back({screma.widths, screma.indices, screma.inputs, screma.map.params, {}});
  nest.attributes.insert(nest.attributes.end(), stm.attributes.begin(), stm.attributes.end());
  nest.certificates.insert(nest.certificates.end(), stm.certificates.begin(), stm.certificates.end());
}

// Whether the statements overwrite the row that a lambda is given. A kernel reads its rows from arrays that are not its
// own: it overwrites a copy.
bool is_overwritten(Value row, const std::vector<Stm>& stms, const ValueTable& values) {
  if (!values.type(row).is_array()) return false;
  Function function;
  function.body = make_body(stms, {});
  bool any = false;
  for_each_stm(*function.body, [&](const Stm& stm) {
    any = any || std::holds_alternative<Update>(stm.op) || std::holds_alternative<Scatter>(stm.op) ||
          std::holds_alternative<Apply>(stm.op);
  });
  if (!any) return false;
  function.values = values;
  return Consumption(function, nullptr).consumed(row);
}

KernelResult returned() { return {.kind = KernelResult::Kind::returns, .extents = {}}; }

}  // namespace

bool asks_for_sequential(const Stm& stm) {
  return has_attribute(stm.attributes, attribute::sequential) || has_attribute(stm.attributes, attribute::sparse_sum);
}

Nest find_nest(const Stm& stm, const ValueTable& values) {
  Nest nest;
  const Stm* at = &stm;
  for (std::size_t k = 0; k < stm.pattern.size(); ++k) nest.results.push_back(k);
  for (;;) {
    const Screma& screma = std::get<Screma>(at->op);
    add_level(nest, *at, screma);
    const Step step = next_level(*at, screma, values);
    nest.stopped = step.refused;
    nest.stopped_code = step.code;
    if (step.stm == nullptr) {
      nest.body = screma.map.body;
      break;
    }
    for (const Stm& other : screma.map.body->stms) {
      if (&other != step.stm) nest.levels.back().before.push_back(other);
    }
    for (std::size_t& result : nest.results) result = step.results[result];
    at = step.stm;
  }
  for_each_stm(*nest.body, [&](const Stm& inner) {
    if (!std::holds_alternative<Screma>(inner.op)) return;
    nest.attributes.insert(nest.attributes.end(), inner.attributes.begin(), inner.attributes.end());
  });
  return nest;
}

void add_row(Value row, Index from, const std::vector<Stm>& uses, Location location, ValueTable& values,
             std::vector<Stm>& stms) {
  const bool copied = is_overwritten(row, uses, values);
  const Value read = copied ? values.add(values.type(row), values.name(row)) : row;
  stms.push_back({.pattern = {read}, .op = std::move(from), .location = location});
  if (copied) stms.push_back({.pattern = {row}, .op = Copy{read}, .location = location});
}

std::set<Value> scattered_params(const Loop& loop) {
  std::set<Value> targets;
  for (const Stm& stm : loop.body->stms)
    if (const Scatter* scatter = get_if<Scatter>(stm)) targets.insert(scatter->targets.begin(), scatter->targets.end());
  std::unordered_map<Value, int> uses;
  for_each_stm(*loop.body, [&](const Stm& stm) { for_each_use(stm.op, [&](Value v) { ++uses[v]; }); });
  for (const Operand& result : loop.body->results)
    if (result.is_value()) ++uses[result.value()];
  std::set<Value> found;
  for (const Value param : loop.params)
    if (targets.contains(param) && uses[param] == 1) found.insert(param);
  return found;
}

Stm flatten(const Stm& stm, const Nest& nest, ValueTable& values) {
  // What is read besides being streamed by the next level.
  std::set<Value> read = free_values(*nest.body, values);
  for (const Nest::Level& level : nest.levels) read.merge(free_values(Body{.stms = level.before}, values));

  std::vector<Stm> uses = nest.body->stms;
  for (const Nest::Level& level : nest.levels) uses.insert(uses.end(), level.before.begin(), level.before.end());

  Screma flat;
  std::vector<Stm> stms;
  struct Row {
    Value array;
    std::vector<DimIndex> dims;
  };
  std::unordered_map<Value, Row> rows;  // parameters, as what they are rows of
  for (const Nest::Level& level : nest.levels) {
    for (const auto& [width, index] : ranges::views::zip(level.widths, level.indices)) {
      if (const auto size = width.symbol()) values.set_name(index, "i_" + values.name(*size));
      flat.widths.push_back(width);
      flat.indices.push_back(index);
    }
    for (const auto& [input, param] : ranges::views::zip(level.inputs, level.params)) {
      const auto outer = rows.find(input);
      Row row = outer == rows.end() ? Row{input, {}} : outer->second;
      for (const Value index : level.indices) row.dims.push_back(DimIndex::fix(index));
      if (read.contains(param)) {
        add_row(param, Index{row.array, row.dims}, uses, stm.location, values, stms);
      }
      rows.emplace(param, std::move(row));
    }
    stms.insert(stms.end(), level.before.begin(), level.before.end());
  }
  stms.insert(stms.end(), nest.body->stms.begin(), nest.body->stms.end());
  std::vector<Operand> results;
  for (const std::size_t k : nest.results) results.push_back(nest.body->results[k]);
  flat.map.body = make_body(std::move(stms), std::move(results));

  Stm result{
      .pattern = stm.pattern, .op = std::move(flat), .location = stm.location, .certificates = nest.certificates};
  for (const Attribute& attribute : nest.attributes) {
    const bool there = std::ranges::any_of(result.attributes, [&](const Attribute& a) {
      return a.name == attribute.name && a.arguments == attribute.arguments;
    });
    // What asks for an inner statement to be sequential does not ask for the nest to be.
    const bool of_inner = attribute.name == attribute::sequential.name || attribute.name == attribute::sparse_sum.name;
    if (!there && !of_inner) result.attributes.push_back(attribute);
  }
  return result;
}

Stm make_kernel(Stm flat) {
  const Screma map = std::get<Screma>(std::move(flat.op));
  SegOp kernel{.level = SegLevel::thread, .body = map.map.body};
  for (const auto& [index, width] : ranges::views::zip(map.indices, map.widths)) kernel.space.push_back({index, width});
  kernel.results.assign(map.map.body->results.size(), returned());
  flat.op = std::move(kernel);
  return flat;
}

Stm only(const Stm& flat, const std::vector<Stm>& stms, const Stm& wanted, const ValueTable& values) {
  Stm alone = flat;
  Screma map = std::get<Screma>(flat.op);
  std::vector<Stm> needed;
  std::set<Value> roots(wanted.pattern.begin(), wanted.pattern.end());
  for (std::size_t k = stms.size(); k-- > 0;) {
    const Stm& stm = stms[k];
    if (std::ranges::none_of(stm.pattern, [&](Value v) { return roots.contains(v); })) continue;
    roots.merge(free_values(stm.op, values));
    roots.insert(stm.certificates.begin(), stm.certificates.end());
    needed.insert(needed.begin(), stm);
  }
  map.map.body = make_body(std::move(needed), {wanted.pattern.begin(), wanted.pattern.end()});
  alone.pattern = wanted.pattern;
  alone.op = std::move(map);
  return alone;
}

Stm make_serial_kernel(const Stm& stm, ValueTable& values) {
  Stm inner = stm;
  inner.certificates.clear();
  inner.attributes.clear();
  std::vector<Stm> stms;
  if (Scatter* scatter = std::get_if<Scatter>(&inner.op)) {
    // What comes from outside is not written by a thread: it writes a copy.
    for (Value& target : scatter->targets) {
      const Value copy = values.add(values.type(target), values.name(target));
      stms.push_back({.pattern = {copy}, .op = Copy{target}, .location = stm.location});
      target = copy;
    }
  }
  std::vector<Operand> results;
  for (Value& v : inner.pattern) {
    v = values.add(values.type(v), values.name(v));
    results.emplace_back(v);
  }
  SegOp kernel{.level = SegLevel::thread};
  kernel.results.assign(results.size(), returned());
  stms.push_back(std::move(inner));
  kernel.body = make_body(std::move(stms), std::move(results));
  return {.pattern = stm.pattern,
          .op = std::move(kernel),
          .location = stm.location,
          .certificates = stm.certificates,
          .attributes = stm.attributes};
}

std::optional<Stm> make_scatter_kernel(const Stm& stm, ValueTable& values) {
  Scatter scatter = std::get<Scatter>(stm.op);
  if (scatter.op) {
    // Threads fold element by element, and none may stop half way.
    for (const Operand& neutral : scatter.op->neutral)
      if (values.type(neutral).is_array()) return std::nullopt;
    if (can_fail(*scatter.op->op.body, values)) return std::nullopt;
  }
  std::vector<Stm> stms;
  std::vector<DimIndex> here;
  for (const Value index : scatter.indices) here.push_back(DimIndex::fix(index));
  for (const auto& [param, input] : ranges::views::zip(scatter.map.params, scatter.inputs))
    add_row(param, Index{input, here}, scatter.map.body->stms, stm.location, values, stms);
  stms.insert(stms.end(), scatter.map.body->stms.begin(), scatter.map.body->stms.end());
  scatter.inputs.clear();
  scatter.map.params.clear();
  scatter.map.body = make_body(std::move(stms), scatter.map.body->results);
  Stm result = stm;
  result.op = std::move(scatter);
  return result;
}

std::optional<Stm> make_producer_map(const Stm& stm, ValueTable& values) {
  const bool makes = std::holds_alternative<Replicate>(stm.op) || std::holds_alternative<Iota>(stm.op) ||
                     std::holds_alternative<Copy>(stm.op) || std::holds_alternative<Manifest>(stm.op);
  if (!makes || !values.type(stm.pattern.front()).is_array()) return std::nullopt;
  const Value result = stm.pattern.front();
  const Type type = values.type(result);
  Screma map;
  std::vector<Poly> at;
  for (const Poly& size : type.shape) {
    const std::optional<Value> symbol = size.symbol();
    const Value index =
        values.add(Type::scalar(ScalarType::i64), "i_" + (symbol ? values.name(*symbol) : std::string("x")));
    map.widths.push_back(size);
    map.indices.push_back(index);
    at.emplace_back(index);
  }
  std::vector<Stm> stms;
  const auto let = [&](Op op) {
    const Value v = values.add(Type::scalar(type.element), values.name(result));
    stms.push_back({.pattern = {v}, .op = std::move(op), .location = stm.location});
    return Operand(v);
  };
  const auto element = [&](Value array, const std::vector<Poly>& indices) {
    std::vector<DimIndex> dims;
    for (const Poly& index : indices) dims.push_back(DimIndex::fix(index));
    return let(Index{array, std::move(dims)});
  };
  Operand value;
  if (const auto* replicate = get_if<Replicate>(stm)) {
    value = replicate->value;
    const auto outer = static_cast<std::ptrdiff_t>(replicate->shape.size());
    if (at.size() > replicate->shape.size()) value = element(value.value(), {at.begin() + outer, at.end()});
  } else if (const auto* copy = get_if<Copy>(stm)) {
    value = element(copy->array, at);
  } else if (const auto* manifest = get_if<Manifest>(stm)) {
    std::vector<Poly> source(at.size());
    for (std::size_t k = 0; k < at.size(); ++k) source[static_cast<std::size_t>(manifest->permutation[k])] = at[k];
    value = element(manifest->array, source);
  } else {
    const Iota& iota = std::get<Iota>(stm.op);
    value = map.indices.front();
    if (iota.element != ScalarType::i64) value = let(Convert{iota.element, value});
    const bool plain_step =
        iota.stride.is_constant() && convert(iota.stride.constant(), ScalarType::f64).as_float() == 1;
    if (!plain_step) value = let(Binary{BinaryOp::mul, value, iota.stride});
    const bool from_zero = iota.start == Operand(Scalar::zero(iota.element));
    if (!from_zero) value = let(Binary{BinaryOp::add, iota.start, value});
  }
  map.map.body = make_body(std::move(stms), {value});
  return Stm{.pattern = stm.pattern,
             .op = std::move(map),
             .location = stm.location,
             .certificates = stm.certificates,
             .attributes = stm.attributes};
}

}  // namespace apl
