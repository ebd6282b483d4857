// Union-find over values; each operation says which of its results may share memory with which operand.
#include "passes/analysis/consumption.h"

#include <range/v3/view/zip.hpp>

#include <numeric>

#include "ir/node_info.h"
#include "ir/walk.h"

namespace apl {

Consumption::Consumption(const Function& function, const Module* module)
    : module_(module), values_(&function.values), parent_(function.values.size()) {
  std::iota(parent_.begin(), parent_.end(), std::uint32_t{0});
  enter(*function.body);
  for (const Value value : consumed_values_) consumed_.insert(find(value.id));
  for (const Value param : function.params) escaping_.insert(find(param.id));
  for (const Operand& result : function.body->results) {
    if (result.is_value()) escaping_.insert(find(result.value().id));
  }
  values_ = nullptr;
}

bool Consumption::consumed(Value value) const {
  // A value made since then may be a view of anything.
  return !consumed_.empty() && (value.id >= parent_.size() || consumed_.contains(find(value.id)));
}

bool Consumption::escapes(Value value) const {
  return value.id >= parent_.size() || escaping_.contains(find(value.id));
}

std::uint32_t Consumption::find(std::uint32_t id) const {
  while (parent_[id] != id) {
    parent_[id] = parent_[parent_[id]];
    id = parent_[id];
  }
  return id;
}

void Consumption::alias(Value a, const Operand& b) {
  if (!b.is_value() || !values_->type(a).is_array() || !values_->type(b.value()).is_array()) return;
  parent_[find(a.id)] = find(b.value().id);
}

void Consumption::enter(const Body& body) {
  for (const Stm& stm : body.stms) statement(stm);
}

void Consumption::statement(const Stm& stm) {
  for_each_body(stm.op, [&](const BodyPtr& body) { enter(*body); });
  if (stm.pattern.empty()) return;
  const Value first = stm.pattern.front();
  if (const std::optional<Value> source = viewed(stm.op)) {
    alias(first, *source);
  } else if (const Update* update = get_if<Update>(stm)) {
    alias(first, update->array);
    consumed_values_.push_back(update->array);
  } else if (const CopyTile* copy = get_if<CopyTile>(stm)) {
    alias(first, copy->target);
    consumed_values_.push_back(copy->target);
  } else if (is_branch(stm.op)) {
    for (const BodyPtr& branch : branches(stm.op))
      for (const auto& [made, result] : ranges::views::zip(stm.pattern, branch->results)) alias(made, result);
  } else if (const Loop* loop = get_if<Loop>(stm)) {
    for (const auto& [made, param, initial, next] :
         ranges::views::zip(stm.pattern, loop->params, loop->initial, loop->body->results)) {
      alias(param, initial);
      alias(param, next);
      alias(made, param);
    }
  } else if (const Screma* screma = get_if<Screma>(stm)) {
    for (const auto& [param, input] : ranges::views::zip(screma->map.params, screma->inputs)) alias(param, input);
    // An array accumulator may be the neutral element itself.
    std::size_t result = 0;
    for (const ReduceOp& reduce : screma->reduces) {
      for (const Operand& neutral : reduce.neutral) alias(stm.pattern[result++], neutral);
    }
  } else if (const Scatter* scatter = get_if<Scatter>(stm)) {
    for (const auto& [param, input] : ranges::views::zip(scatter->map.params, scatter->inputs)) alias(param, input);
    for (const auto& [made, target] : ranges::views::zip(stm.pattern, scatter->targets)) {
      alias(made, target);
      consumed_values_.push_back(target);
    }
  } else if (const Derivative* derivative = get_if<Derivative>(stm)) {
    for (const auto& [param, argument] : ranges::views::zip(derivative->function.params, derivative->arguments))
      alias(param, argument);
  } else if (const Apply* apply = get_if<Apply>(stm)) {
    const Function* callee = module_ != nullptr ? module_->find(apply->function) : nullptr;
    for (std::size_t k = 0; k < apply->arguments.size(); ++k) {
      const Operand& argument = apply->arguments[k];
      const std::size_t sizes = callee != nullptr ? callee->sizes.size() : 0;
      for (const Value value : stm.pattern) alias(value, argument);
      const bool consumes = callee == nullptr || (k >= sizes && callee->type(callee->params[k - sizes]).unique);
      if (consumes && argument.is_value()) consumed_values_.push_back(argument.value());
    }
  }
}

}  // namespace apl
