#include "passes/place_memory/kernel_arrays.h"

#include "ir/walk.h"

namespace apl::memory {

KernelArrays::KernelArrays(const Stm& stm, const std::set<Value>& arrays, const ValueTable& values)
    : stm_(stm), values_(values) {
  const SegOp* kernel = get_if<SegOp>(stm);
  if (!kernel || kernel->level != SegLevel::thread) return;
  for (const Value v : arrays)
    if (binding(v)) ++mentioned_[binding(v)->block];
  for (std::size_t k = 0; k < stm.pattern.size(); ++k)
    if (const MemoryBinding* where = binding(stm.pattern[k])) results_[where->block].push_back(k);
  for (const Value v : free_values(stm.op, values)) {
    if (!binding(v)) continue;
    inputs_[binding(v)->block].push_back(v);
    candidates_[values.type(v).element].push_back(v);
  }
  const auto gives = [&](const Body& body) {
    for (const Operand& x : body.results)
      if (x.is_value()) elsewhere_.insert(x.value());
  };
  const auto own_index = [&](const Stm& inner) {
    const Index* index = get_if<Index>(inner);
    bool own = index && index->dims.size() == kernel->space.size();
    for (std::size_t d = 0; own && d < kernel->space.size(); ++d)
      own = !index->dims[d].is_slice() && index->dims[d].start == Poly(kernel->space[d].index);
    return own;
  };
  gives(*kernel->body);
  for_each_stm(*kernel->body, [&](const Stm& inner) {
    for_each_body(inner.op, [&](const BodyPtr& body) { gives(*body); });
    if (own_index(inner)) return;
    for_each_use(inner.op, [&](Value v) {
      if (binding(v)) elsewhere_.insert(v);
    });
  });
}

Value KernelArrays::only_result(Value block) const {
  const auto found = results_.find(block);
  if (found == results_.end() || found->second.size() != 1) return {};
  // A row is written while the thread may still read; a scalar is written last.
  const std::size_t k = found->second.front();
  const SegOp& kernel = std::get<SegOp>(stm_.op);
  const Value result = stm_.pattern[k];
  const bool scalar = values_.type(result).rank() == kernel.space.size();
  return scalar && kernel.results[k].kind == KernelResult::Kind::returns ? result : Value{};
}

const std::vector<Value>& KernelArrays::inputs_on(Value block) const {
  static const std::vector<Value> kNone;
  const auto found = inputs_.find(block);
  return found == inputs_.end() ? kNone : found->second;
}

bool KernelArrays::reads_own_index(Value array) const {
  const auto found = mentioned_.find(binding(array)->block);
  return found != mentioned_.end() && found->second == 1 && !elsewhere_.contains(array);
}

void KernelArrays::merge(Value from, Value to) {
  const auto move = [&](auto& by_block, const auto& add) {
    const auto old = by_block.extract(from);
    if (!old.empty()) add(by_block[to], old.mapped());
  };
  const auto append = [](auto& all, const auto& more) { all.insert(all.end(), more.begin(), more.end()); };
  move(mentioned_, [](std::size_t& all, std::size_t more) { all += more; });
  move(results_, append);
  move(inputs_, append);
}

}  // namespace apl::memory
