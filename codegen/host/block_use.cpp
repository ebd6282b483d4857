#include "codegen/host/block_use.h"

#include <algorithm>
#include <utility>

#include "ir/walk.h"

namespace apl::lower {

BlockUse::BlockUse(const apl::Function& function) : function_(function), reads_(function) {
  for (std::uint32_t id = 0; id < function.values.size(); ++id)
    if (const auto& where = function.type(Value{id}).memory) arrays_[where->block].push_back(Value{id});
  for (const Stm& stm : function.body->stms) {
    statement(stm);
    ++top_;
  }
  for (const Value param : function.params) use_otherwise(param);
  for (const Operand& x : function.body->results)
    if (x.is_value()) use(x.value()), use_otherwise(x.value());
  ends_.resize(function.body->stms.size());
  for (const auto& [block, at] : last_mention_)
    if (at < ends_.size()) ends_[at].push_back(block);
}

void BlockUse::use(Value v) {
  const Type& type = function_.type(v);
  if (type.is_memory()) last_mention_[v] = top_;
  if (!type.memory) return;
  last_mention_[type.memory->block] = top_;
}

void BlockUse::use_otherwise(Value v) {
  const Type& type = function_.type(v);
  if (type.is_memory()) otherwise_used_.insert(v);
  if (type.memory) otherwise_used_.insert(type.memory->block);
}

void BlockUse::enter(const Body& body) {
  for (const Stm& stm : body.stms) statement(stm);
  for (const Operand& x : body.results)
    if (x.is_value()) use(x.value()), use_otherwise(x.value());
}

void BlockUse::statement(const Stm& stm) {
  if (const Alloc* alloc = get_if<Alloc>(stm)) bytes_[stm.pattern.front()] = alloc->bytes;
  // Elements and views are read by the host; a view's block is that of the array.
  const bool reads =
      !in_kernel_ && (get_if<Index>(stm) || get_if<Rearrange>(stm) || get_if<Reshape>(stm) || get_if<Alloc>(stm));
  const SegOp* kernel = get_if<SegOp>(stm);
  const bool writes = kernel && kernel->level == SegLevel::thread && !kernel->sparse;
  for_each_use(stm.op, [&](Value v) {
    use(v);
    if (!reads) use_otherwise(v);
  });
  for_each_binder(stm.op, [&](Value v) {
    use(v);
    use_otherwise(v);
  });
  const bool was_in_kernel = std::exchange(in_kernel_, in_kernel_ || kernel || get_if<Scatter>(stm));
  for_each_body(stm.op, [&](const BodyPtr& inner) { enter(*inner); });
  in_kernel_ = was_in_kernel;
  for (const Value v : stm.pattern) {
    use(v);
    if (!reads && !writes) use_otherwise(v);
  }
}

bool BlockUse::may_exchange(const Stm& stm, const Body& body, Value from, Value to) const {
  const auto mine = bytes_.find(from), theirs = bytes_.find(to);
  if (mine == bytes_.end() || theirs == bytes_.end() || mine->second != theirs->second) return false;
  const auto lies_there = [&](const Operand& x) {
    return x.is_value() && function_.type(x.value()).memory && function_.type(x.value()).memory->block == from;
  };
  if (std::ranges::count_if(body.results, lies_there) != 1) return false;
  const auto arrays = arrays_.find(from);
  if (arrays == arrays_.end()) return true;
  const Loop* loop = get_if<Loop>(stm);
  return std::ranges::none_of(arrays->second, [&](Value v) {
    if (loop == nullptr) return reads_.after(stm, v);
    const bool carried = std::ranges::find(loop->params, v) != loop->params.end();
    return carried || reads_.in_or_after(stm, v);
  });
}

}  // namespace apl::lower
