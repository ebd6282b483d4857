// Nests: one Screma over several widths is the same as Scremas inside each other, if nothing else is between them.
#include <range/v3/view/zip.hpp>

#include <algorithm>
#include <set>

#include "ir/walk.h"
#include "passes/analysis/cheap.h"
#include "passes/analysis/structure.h"
#include "passes/fuse/fuse.h"

namespace apl {

namespace {

// The statements of a lambda before its last, which is the next level: they would run once for every inner index, so
// they must be views and cheap scalars that cannot fail, and must not decide how far the inner level runs.
std::optional<Body> statements_between(const Screma& outer, const ValueTable& values) {
  const Body& body = *outer.map.body;
  if (body.stms.empty()) return std::nullopt;
  const Stm& last = body.stms.back();
  const Screma* inner = get_if<Screma>(last);
  if (inner == nullptr || !last.certificates.empty()) return std::nullopt;
  Body before{.stms = {body.stms.begin(), body.stms.end() - 1}};
  if (!is_cheap(before, values)) return std::nullopt;
  std::set<Value> local(outer.indices.begin(), outer.indices.end());
  local.insert(outer.map.params.begin(), outer.map.params.end());
  for (const Stm& stm : before.stms) local.insert(stm.pattern.begin(), stm.pattern.end());
  bool regular = true;
  for (const Poly& width : inner->widths) {
    width.for_each_symbol([&](Value v) { regular = regular && !local.contains(v); });
  }
  return regular ? std::optional(std::move(before)) : std::nullopt;
}

// Both levels as one, without operators; results are those of the inner lambda.
Screma merge_levels(const Screma& outer, const Body& before, const Stm& last, const ValueTable& values) {
  const Screma& inner = std::get<Screma>(last.op);
  Screma merged{.widths = outer.widths, .indices = outer.indices};
  merged.widths.insert(merged.widths.end(), inner.widths.begin(), inner.widths.end());
  merged.indices.insert(merged.indices.end(), inner.indices.begin(), inner.indices.end());
  std::vector<Stm> stms;
  const auto row = [&](Value param, Value array, const std::vector<Value>& indices) {
    std::vector<DimIndex> dims;
    for (const Value index : indices) dims.push_back(DimIndex::fix(index));
    stms.push_back({.pattern = {param}, .op = Index{array, std::move(dims)}, .location = last.location});
  };
  // A row that only the inner level streams is streamed over both lists of widths; others are read by index.
  std::set<Value> read = free_values(before, values);
  read.merge(free_values(inner.map, values));
  for (const ReduceOp& reduce : inner.reduces) read.merge(free_values(reduce.op, values));
  for (const Value v : free_values(last.op, values)) {
    if (std::ranges::find(inner.inputs, v) == inner.inputs.end()) read.insert(v);
  }
  std::vector<bool> streamed(inner.inputs.size(), false);
  for (std::size_t k = 0; k < outer.inputs.size(); ++k) {
    const Value param = outer.map.params[k];
    if (read.contains(param)) {
      row(param, outer.inputs[k], outer.indices);
      continue;
    }
    for (auto&& [input, its, is_streamed] : ranges::views::zip(inner.inputs, inner.map.params, streamed)) {
      if (input != param) continue;
      merged.inputs.push_back(outer.inputs[k]);
      merged.map.params.push_back(its);
      is_streamed = true;
    }
  }
  stms.insert(stms.end(), before.stms.begin(), before.stms.end());
  for (const auto& [input, its, is_streamed] : ranges::views::zip(inner.inputs, inner.map.params, streamed)) {
    if (!is_streamed) row(its, input, inner.indices);
  }
  stms.insert(stms.end(), inner.map.body->stms.begin(), inner.map.body->stms.end());
  merged.map.body = make_body(std::move(stms), inner.map.body->results);
  return merged;
}

// Whether the lambda's parameters, indices or statements are what makes the value.
bool made_inside(const Screma& screma, Value v) {
  return std::ranges::find(screma.indices, v) != screma.indices.end() ||
         std::ranges::find(screma.map.params, v) != screma.map.params.end() ||
         defining_stm(*screma.map.body, v) != nullptr;
}

bool has_dims(const Type& type, const std::vector<Poly>& dims) {
  return type.rank() >= dims.size() && std::equal(dims.begin(), dims.end(), type.shape.begin());
}

bool is_map(const Stm& stm) {
  const Screma* screma = get_if<Screma>(stm);
  return screma != nullptr && screma->reduces.empty();
}

}  // namespace

std::optional<Stm> merge_nested_reduction(const Stm& stm, const ValueTable& values) {
  const Screma* outer = get_if<Screma>(stm);
  if (outer == nullptr || outer->reduces.empty() || outer->scans()) return std::nullopt;
  const std::optional<Body> before = statements_between(*outer, values);
  if (!before || outer->map.body->results.size() != outer->reduced_count()) return std::nullopt;
  const Stm& last = outer->map.body->stms.back();
  const Screma& inner = std::get<Screma>(last.op);
  if (inner.scans() || inner.reduces.size() != outer->reduces.size() ||
      inner.map.body->results.size() != inner.reduced_count()) {
    return std::nullopt;
  }
  // The inner results, in order and nothing else, are what the outer reduces.
  const std::vector<Operand>& results = outer->map.body->results;
  for (std::size_t k = 0; k < results.size(); ++k) {
    if (k >= last.pattern.size() || results[k] != Operand(last.pattern[k])) return std::nullopt;
  }
  for (const auto& [own, other] : ranges::views::zip(inner.reduces, outer->reduces)) {
    if (own.neutral != other.neutral) return std::nullopt;
    if (structural_key(own.op, values) != structural_key(other.op, values)) return std::nullopt;
  }
  Screma merged = merge_levels(*outer, *before, last, values);
  merged.reduces = outer->reduces;
  for (auto&& [both, own] : ranges::views::zip(merged.reduces, inner.reduces)) {
    both.commutative = both.commutative || own.commutative;
  }
  Stm result = stm;
  result.op = std::move(merged);
  result.attributes.insert(result.attributes.end(), last.attributes.begin(), last.attributes.end());
  return result;
}

std::optional<Stm> collapse_nest(const Stm& stm, std::size_t count, ValueTable& values) {
  if (!is_map(stm)) return std::nullopt;
  Stm result = stm;
  for (;;) {
    const Screma& outer = std::get<Screma>(result.op);
    if (outer.widths.size() == count) return result;
    const std::optional<Body> before = statements_between(outer, values);
    if (outer.widths.size() > count || !before || !is_map(outer.map.body->stms.back())) return std::nullopt;
    const Stm& last = outer.map.body->stms.back();
    const Screma& inner = std::get<Screma>(last.op);
    // Result k of the nest is one of the inner level, or a row that all of the nest has: the inner level's index says
    // which element.
    std::vector<std::optional<std::size_t>> sources;
    for (const Operand& operand : outer.map.body->results) {
      const auto at = operand.is_value() ? std::ranges::find(last.pattern, operand.value()) : last.pattern.end();
      if (at != last.pattern.end()) {
        sources.emplace_back(static_cast<std::size_t>(at - last.pattern.begin()));
        continue;
      }
      if (!operand.is_value() || made_inside(outer, operand.value()) ||
          !has_dims(values.type(operand.value()), inner.widths))
        return std::nullopt;
      sources.emplace_back();
    }
    Screma merged = merge_levels(outer, *before, last, values);
    std::vector<Stm> stms = merged.map.body->stms;
    std::vector<Operand> results;
    for (std::size_t k = 0; k < sources.size(); ++k) {
      if (sources[k]) {
        results.push_back(merged.map.body->results[*sources[k]]);
        continue;
      }
      const Value array = outer.map.body->results[k].value();
      std::vector<DimIndex> here;
      for (const Value index : inner.indices) here.push_back(DimIndex::fix(index));
      const Value element = values.add(values.type(array).row(inner.widths.size()), values.name(array));
      stms.push_back({.pattern = {element}, .op = Index{array, std::move(here)}, .location = last.location});
      results.emplace_back(element);
    }
    merged.map.body = make_body(std::move(stms), std::move(results));
    result.attributes.insert(result.attributes.end(), last.attributes.begin(), last.attributes.end());
    result.op = std::move(merged);
  }
}

Stm split_nest(const Stm& stm, std::size_t count, ValueTable& values) {
  const Screma& both = std::get<Screma>(stm.op);
  const auto at = static_cast<std::ptrdiff_t>(count);
  Screma outer{.widths = {both.widths.begin(), both.widths.begin() + at},
               .indices = {both.indices.begin(), both.indices.begin() + at},
               .inputs = both.inputs};
  Screma inner{.widths = {both.widths.begin() + at, both.widths.end()},
               .indices = {both.indices.begin() + at, both.indices.end()},
               .map = both.map};
  for (const Value input : both.inputs) {
    outer.map.params.push_back(values.add(values.type(input).row(count), values.name(input)));
  }
  inner.inputs = outer.map.params;
  Stm last = stm;
  last.certificates.clear();
  std::vector<Operand> results;
  for (Value& v : last.pattern) {
    v = values.add(values.type(v).row(count), values.name(v));
    results.emplace_back(v);
  }
  last.op = std::move(inner);
  std::vector<Stm> stms;
  stms.push_back(std::move(last));
  outer.map.body = make_body(std::move(stms), std::move(results));
  Stm result = stm;
  result.op = std::move(outer);
  return result;
}

std::size_t parallel_depth(const Screma& screma) {
  if (!screma.reduces.empty()) return 0;
  const Body& body = *screma.map.body;
  std::size_t depth = screma.widths.size();
  const Screma* inner = nullptr;
  std::size_t count = 0;
  for (const Stm& stm : body.stms) {
    if (const Screma* found = get_if<Screma>(stm)) inner = found, ++count;
  }
  if (count == 1 && get_if<Screma>(body.stms.back()) == inner) depth += parallel_depth(*inner);
  return depth;
}

bool holds_heavy_work(const Body& body) {
  bool found = false;
  for_each_stm(body, [&](const Stm& stm) {
    const Screma* screma = get_if<Screma>(stm);
    found = found || std::holds_alternative<Loop>(stm.op) || (screma != nullptr && !screma->reduces.empty());
  });
  return found;
}

bool is_element_code(const Body& body, const ValueTable& values) {
  return std::ranges::all_of(body.stms, [&](const Stm& stm) {
    if (!stm.certificates.empty() || can_fail(stm.op, values)) return false;
    if (const Screma* screma = get_if<Screma>(stm))
      return screma->reduces.empty() && is_element_code(*screma->map.body, values);
    const bool view = std::holds_alternative<Index>(stm.op) || std::holds_alternative<Rearrange>(stm.op);
    const bool arrays = std::ranges::any_of(stm.pattern, [&](Value v) { return values.type(v).is_array(); });
    bool nested = false;
    for_each_body(stm.op, [&](const BodyPtr& inner) { nested = nested || !is_element_code(*inner, values); });
    return (view || !arrays) && !nested;
  });
}

bool parallel_inside(const Screma& screma) {
  const Lambda& lambda = screma.map;
  std::set<Value> local(lambda.params.begin(), lambda.params.end());
  local.insert(screma.indices.begin(), screma.indices.end());
  for (const Stm& stm : lambda.body->stms) local.insert(stm.pattern.begin(), stm.pattern.end());
  return std::ranges::any_of(lambda.body->stms, [&](const Stm& stm) {
    if (std::holds_alternative<Screma>(stm.op)) return true;
    const If* branch = get_if<If>(stm);
    if (branch != nullptr && branch->condition.is_value() && local.contains(branch->condition.value())) return false;
    bool found = false;
    for_each_body(stm.op, [&](const BodyPtr& body) { found = found || holds_screma(*body); });
    return found;
  });
}

bool holds_screma(const Body& body) {
  bool found = false;
  for_each_stm(body, [&](const Stm& stm) { found = found || std::holds_alternative<Screma>(stm.op); });
  return found;
}

}  // namespace apl
