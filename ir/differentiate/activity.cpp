#include "ir/differentiate/activity.h"

#include <range/v3/view/zip.hpp>

#include <algorithm>

#include "ir/differentiate/partials.h"
#include "ir/walk.h"

namespace apl::differentiation {

bool Activity::add(Value v) { return has_tangents(values_.type(v)) && active_.insert(v).second; }

bool Activity::any(const std::vector<Operand>& operands) const {
  return std::ranges::any_of(operands, [&](const Operand& x) { return contains(x); });
}

bool Activity::contains(const Poly& poly) const {
  bool found = false;
  poly.for_each_symbol([&](Value v) { found = found || contains(v); });
  return found;
}

void Activity::mark(const std::vector<Value>& pattern, std::size_t k, bool varies) {
  if (varies && k < pattern.size()) add(pattern[k]);
}

void Activity::learn(const Body& body) {
  for (const Stm& stm : body.stms) learn(stm);
}

void Activity::learn(const Stm& stm) {
  if (const Loop* loop = get_if<Loop>(stm)) return learn(stm, *loop);
  if (const Screma* screma = get_if<Screma>(stm)) return learn(stm, *screma);
  if (const Scatter* scatter = get_if<Scatter>(stm)) return learn(stm, *scatter);
  if (const If* branch = get_if<If>(stm)) {
    learn(*branch->then_body);
    learn(*branch->else_body);
    for (std::size_t k = 0; k < stm.pattern.size(); ++k)
      mark(stm.pattern, k, contains(branch->then_body->results[k]) || contains(branch->else_body->results[k]));
    return;
  }
  bool varies = false;
  if (const Unary* unary = get_if<Unary>(stm)) {
    varies = contains(unary->x) && has_derivative(unary->op, values_.type(unary->x).element);
  } else if (const Binary* binary = get_if<Binary>(stm)) {
    varies =
        (contains(binary->x) || contains(binary->y)) && has_derivative(binary->op, values_.type(binary->x).element);
  } else if (const Convert* convert = get_if<Convert>(stm)) {
    varies = contains(convert->x);
  } else if (const SizeExpr* size = get_if<SizeExpr>(stm)) {
    varies = contains(size->value);
  } else if (const Index* index = get_if<Index>(stm)) {
    varies = contains(index->array);
  } else if (const Update* update = get_if<Update>(stm)) {
    varies = contains(update->array) || contains(update->value);
  } else if (const Replicate* replicate = get_if<Replicate>(stm)) {
    varies = contains(replicate->value);
  } else if (const Iota* iota = get_if<Iota>(stm)) {
    varies = contains(iota->start) || contains(iota->stride) || contains(iota->count);
  } else if (!get_if<Compare>(stm) && !get_if<Scratch>(stm) && !get_if<Assert>(stm) && !get_if<GetSize>(stm)) {
    for_each_use(stm.op, [&](Value v) { varies = varies || contains(v); });
  }
  for (std::size_t k = 0; k < stm.pattern.size(); ++k) mark(stm.pattern, k, varies);
}

void Activity::learn(const Stm& stm, const Loop& op) {
  for (const auto& [param, initial] : ranges::views::zip(op.params, op.initial))
    if (contains(initial)) add(param);
  for (bool changed = true; changed;) {
    changed = false;
    learn(*op.body);
    for (const auto& [param, result] : ranges::views::zip(op.params, op.body->results))
      if (contains(result) && add(param)) changed = true;
  }
  for (std::size_t k = 0; k < op.params.size(); ++k) mark(stm.pattern, k, contains(op.params[k]));
}

// What varies of an operator's results, and so of its operands, given which of what it folds do.
std::vector<bool> Activity::learn(const ReduceOp& op, std::vector<bool> varies) {
  const std::size_t n = op.neutral.size();
  for (std::size_t k = 0; k < n; ++k) varies[k] = varies[k] || contains(op.neutral[k]);
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t k = 0; k < n; ++k) {
      if (!varies[k]) continue;
      add(op.op.params[k]);
      add(op.op.params[n + k]);
    }
    learn(*op.op.body);
    for (std::size_t k = 0; k < n; ++k) {
      if (varies[k] || !contains(op.op.body->results[k])) continue;
      varies[k] = changed = true;
    }
  }
  return varies;
}

void Activity::learn(const Stm& stm, const Screma& op) {
  for (const auto& [input, param] : ranges::views::zip(op.inputs, op.map.params))
    if (contains(input)) add(param);
  learn(*op.map.body);
  std::size_t first = 0;
  for (const ReduceOp& reduce : op.reduces) {
    std::vector<bool> varies;
    for (std::size_t k = 0; k < reduce.neutral.size(); ++k) varies.push_back(contains(op.map.body->results[first + k]));
    varies = learn(reduce, std::move(varies));
    for (std::size_t k = 0; k < varies.size(); ++k) mark(stm.pattern, first + k, varies[k]);
    first += varies.size();
  }
  for (std::size_t k = first; k < stm.pattern.size(); ++k) mark(stm.pattern, k, contains(op.map.body->results[k]));
}

void Activity::learn(const Stm& stm, const Scatter& op) {
  for (const auto& [input, param] : ranges::views::zip(op.inputs, op.map.params))
    if (contains(input)) add(param);
  learn(*op.map.body);
  std::vector<bool> varies;
  for (std::size_t k = 0; k < op.targets.size(); ++k)
    varies.push_back(contains(op.targets[k]) || contains(op.map.body->results[op.rank + k]));
  if (op.op) varies = learn(*op.op, std::move(varies));
  for (std::size_t k = 0; k < varies.size(); ++k) mark(stm.pattern, k, varies[k]);
}

}  // namespace apl::differentiation
