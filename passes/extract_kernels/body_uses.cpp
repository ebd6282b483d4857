#include "passes/extract_kernels/body_uses.h"

#include <algorithm>

#include "ir/walk.h"

namespace apl {

BodyUses::BodyUses(const Body& body, const ValueTable& values) : overwrites_{0} {
  for (std::size_t k = 0; k < body.stms.size(); ++k) {
    const Stm& stm = body.stms[k];
    for (const Value v : free_values(stm.op, values)) readers_[v].push_back(k);
    for (const Value v : stm.pattern) definers_.emplace(v, k);
    overwrites_.push_back(overwrites_.back() + (may_overwrite(stm, body) ? 1 : 0));
  }
  for (const Operand& x : body.results)
    if (x.is_value()) results_.insert(x.value());
}

const std::vector<std::size_t>& BodyUses::readers(Value v) const {
  static const std::vector<std::size_t> none;
  const auto found = readers_.find(v);
  return found == readers_.end() ? none : found->second;
}

std::set<std::size_t> BodyUses::readers(const std::vector<Value>& some) const {
  std::set<std::size_t> all;
  for (const Value v : some) all.insert(readers(v).begin(), readers(v).end());
  return all;
}

std::optional<std::size_t> BodyUses::definer(Value v) const {
  const auto found = definers_.find(v);
  return found == definers_.end() ? std::nullopt : std::optional(found->second);
}

bool BodyUses::may_overwrite(const Stm& stm, const Body& body) const {
  if (const Scatter* scatter = get_if<Scatter>(stm))
    return !std::ranges::all_of(scatter->targets, [&](Value target) {
      const std::optional<std::size_t> made = definer(target);
      return made && get_if<Scratch>(body.stms[*made]) != nullptr;
    });
  bool found = get_if<Update>(stm) || get_if<Loop>(stm) || get_if<Apply>(stm);
  for_each_body(stm.op, [&](const BodyPtr& inner) {
    for_each_stm(*inner, [&](const Stm& other) {
      found = found || get_if<Update>(other) || get_if<Scatter>(other) || get_if<Loop>(other) || get_if<Apply>(other);
    });
  });
  return found;
}

}  // namespace apl
