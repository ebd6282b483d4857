#include "ir/print/names.h"

#include <fmt/format.h>

#include "ir/print/words.h"
#include "ir/walk.h"

namespace apl {

namespace {

// The hint as a name: hints may be anything, such as an operator of the source.
std::string sanitised(const std::string& hint) {
  std::string name;
  for (char c : hint) name += is_name_rest(c) ? c : '_';
  if (name.empty()) return "x";
  return is_name_start(name.front()) ? name : "_" + name;
}

// `x` of `x_12`: a copy of `x_1` should become `x_2`, not `x_1_1`.
std::string without_suffix(const std::string& name) {
  std::size_t end = name.size();
  while (end > 0 && is_digit(name[end - 1])) --end;
  if (end == name.size() || end < 2 || name[end - 1] != '_') return name;
  return name.substr(0, end - 1);
}

}  // namespace

Names::Names(const Function& function)
    : values_(function.values), names_(function.values.size()), ranks_(function.values.size()) {
  bind(function.sizes);
  bind(function.result_sizes);
  bind(function.params);
  visit(function.body);
  // Values that no statement binds (yet): a message may still want to name them.
  for (std::uint32_t id = 0; id < names_.size(); ++id) bind(Value{id});
}

std::string Names::of(Value value) const {
  if (value.id < names_.size()) return names_[value.id];
  return value ? fmt::format("?{}", value.id) : "?";
}

std::string Names::of(const Poly& poly) const {
  if (const auto symbol = poly.symbol()) return of(*symbol);
  const Poly ranked = poly.substitute([&](Value symbol) -> std::optional<Poly> {
    if (symbol.id >= ranks_.size()) return std::nullopt;
    return Poly(Value{ranks_[symbol.id]});
  });
  return ranked.to_string([&](Value rank) { return of(rank.id < order_.size() ? order_[rank.id] : rank); });
}

void Names::bind(Value value) {
  if (value.id >= names_.size() || !names_[value.id].empty()) return;
  names_[value.id] = unique(sanitised(values_.name(value)));
  ranks_[value.id] = static_cast<std::uint32_t>(order_.size());
  order_.push_back(value);
}

void Names::bind(const std::vector<Value>& values) {
  for (Value value : values) bind(value);
}

std::string Names::unique(const std::string& hint) {
  std::string name = hint;
  const std::string base = without_suffix(hint);
  while (is_reserved(name) || !taken_.insert(name).second) name = fmt::format("{}_{}", base, ++last_suffix_[base]);
  return name;
}

void Names::visit(const BodyPtr& body) {
  if (!body) return;
  for (const Stm& stm : body->stms) {
    bind(stm.pattern);
    for_each_scope(stm.op, [&](const std::vector<Value>& bound, const BodyPtr& inner) {
      bind(bound);
      visit(inner);
    });
  }
}

}  // namespace apl
