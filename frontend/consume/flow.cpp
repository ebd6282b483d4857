#include "frontend/consume/flow.h"

#include <algorithm>
#include <iterator>

namespace apl::frontend {

namespace {

// A type of more parts counts as one: those are no program's, they come from tuples that double with each step.
constexpr std::size_t kMaxParts = 400;
// The same for variables in one set.
constexpr std::size_t kMaxAliases = 256;

void collect(const FlowPtr& flow, bool functions, Aliases& out) {
  if (flow->kind == Flow::Kind::arrow && !functions) return;
  out.insert(out.end(), flow->aliases.begin(), flow->aliases.end());
  for (const auto& [name, field] : flow->fields) collect(field, functions, out);
}

}  // namespace

FlowPtr make_flow(Flow flow) { return std::make_shared<const Flow>(std::move(flow)); }

const FlowPtr* Flow::field(const std::string& name) const {
  for (const auto& [label, flow] : fields)
    if (label == name) return &flow;
  return nullptr;
}

Aliases joined(const Aliases& a, const Aliases& b) {
  if (a.empty()) return b;
  if (b.empty()) return a;
  Aliases result;
  result.reserve(a.size() + b.size());
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(result));
  // What is oldest is least likely to be consumed still.
  if (result.size() > kMaxAliases)
    result.erase(result.begin(), result.end() - static_cast<std::ptrdiff_t>(kMaxAliases));
  return result;
}

bool overlap(const Aliases& a, const Aliases& b) {
  for (auto x = a.begin(), y = b.begin(); x != a.end() && y != b.end();) {
    if (*x == *y) return true;
    if (*x < *y)
      ++x;
    else
      ++y;
  }
  return false;
}

void insert(Aliases& set, Alias alias) { set = joined(set, Aliases{alias}); }

Aliases all_aliases(const FlowPtr& flow, bool functions) {
  Aliases result;
  collect(flow, functions, result);
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

bool any_unique(const FlowPtr& flow) {
  if (flow->kind == Flow::Kind::leaf) return flow->unique;
  return std::any_of(flow->fields.begin(), flow->fields.end(), [](const auto& f) { return any_unique(f.second); });
}

FlowPtr with_aliases(const FlowPtr& flow, const std::function<Aliases(const Flow&)>& aliases) {
  if (flow->kind == Flow::Kind::scalar) return flow;
  Flow copy = *flow;
  if (copy.kind == Flow::Kind::record) {
    for (auto& [name, field] : copy.fields) field = with_aliases(field, aliases);
  } else {
    copy.aliases = aliases(*flow);
  }
  return make_flow(std::move(copy));
}

FlowPtr with_aliases(const FlowPtr& flow, const Aliases& aliases) {
  return with_aliases(flow, [&](const Flow&) { return aliases; });
}

FlowPtr with_uniqueness(const FlowPtr& flow, bool unique) {
  if (flow->kind == Flow::Kind::scalar || flow->kind == Flow::Kind::arrow) return flow;
  Flow copy = *flow;
  copy.unique = flow->kind == Flow::Kind::leaf && unique;
  for (auto& [name, field] : copy.fields) field = with_uniqueness(field, unique);
  return make_flow(std::move(copy));
}

FlowPtr joined(const FlowPtr& a, const FlowPtr& b) {
  if (a == b || a->kind == Flow::Kind::scalar) return a;
  Flow copy = *a;
  if (a->kind == Flow::Kind::record) {
    for (auto& [name, field] : copy.fields)
      if (const FlowPtr* other = b->field(name)) field = joined(field, *other);
  } else {
    copy.aliases = joined(a->aliases, all_aliases(b));
  }
  return make_flow(std::move(copy));
}

void pairwise(const FlowPtr& a, const FlowPtr& b, const std::function<void(const FlowPtr&, const FlowPtr&)>& visit) {
  if (a->kind != Flow::Kind::record || b->kind != Flow::Kind::record) {
    visit(a, b);
    return;
  }
  for (const auto& [name, field] : a->fields)
    if (const FlowPtr* other = b->field(name)) pairwise(field, *other, visit);
}

std::uint32_t Paths::of(std::uint32_t parent, const std::string& field) {
  const auto next = static_cast<std::uint32_t>(numbers_.size() + 1);
  return numbers_.emplace(std::to_string(parent) + "." + field, next).first->second;
}

namespace {

FlowPtr self_at(const FlowPtr& flow, Alias self, Paths& paths) {
  if (flow->kind == Flow::Kind::scalar) return flow;
  Flow copy = *flow;
  if (copy.kind != Flow::Kind::record) insert(copy.aliases, self);
  for (auto& [name, field] : copy.fields)
    field = self_at(field, {self.variable, paths.of(self.path, name), self.bound}, paths);
  return make_flow(std::move(copy));
}

}  // namespace

FlowPtr with_self(const FlowPtr& flow, VarId variable, Paths& paths) {
  return self_at(flow, {.variable = variable}, paths);
}

FlowPtr Outlines::of(Ty type) {
  type = store_.find(type);
  if (const auto found = done_.find(type.id); found != done_.end()) return found->second;
  FlowPtr flow = store_.tree_size(type) > kMaxParts ? make_flow({.kind = Flow::Kind::leaf}) : make(type);
  done_.emplace(type.id, flow);
  return flow;
}

// What is abstract still is a parameter of a parametric module, whose applications are checked with what it is.
FlowPtr Outlines::make(Ty type) {
  const TyNode& node = store_.node(type);
  Flow flow;
  if (std::holds_alternative<TyArray>(node)) {
    flow.kind = Flow::Kind::leaf;
  } else if (std::holds_alternative<TyParam>(node)) {
    flow.kind = Flow::Kind::leaf;
    flow.parameter = true;
  } else if (std::holds_alternative<TySum>(node)) {
    bool shares = false;
    store_.walk(
        type,
        [&](Ty, const TyNode& part) {
          shares = shares || std::holds_alternative<TyArray>(part) || std::holds_alternative<TyParam>(part);
        },
        [](Size, const SizeNode&) {});
    flow.kind = shares ? Flow::Kind::leaf : Flow::Kind::scalar;
  } else if (const auto* record = std::get_if<TyRecord>(&node)) {
    flow.kind = Flow::Kind::record;
    for (const auto& [name, field] : record->fields) flow.fields.emplace_back(name, make(field));
  } else if (const auto* arrow = std::get_if<TyArrow>(&node)) {
    flow.kind = Flow::Kind::arrow;
    flow.from = make(arrow->from);
    flow.to = make(arrow->to);
  }
  return make_flow(std::move(flow));
}

FlowPtr Outlines::adapted(const FlowPtr& flow, Ty type) {
  const TyNode& node = store_.node(type);
  if (flow->kind == Flow::Kind::arrow) {
    const auto* arrow = std::get_if<TyArrow>(&node);
    if (arrow == nullptr) return flow;
    Flow copy = *flow;
    if (copy.from) copy.from = adapted(copy.from, arrow->from);
    copy.to = adapted(copy.to, arrow->to);
    return make_flow(std::move(copy));
  }
  if (flow->kind == Flow::Kind::record) {
    const auto* record = std::get_if<TyRecord>(&node);
    if (record == nullptr) return flow;
    Flow copy = *flow;
    for (auto& [name, field] : copy.fields)
      for (const auto& [label, field_type] : record->fields)
        if (label == name) field = adapted(field, field_type);
    return make_flow(std::move(copy));
  }
  const FlowPtr whole = of(type);
  const bool same = whole->kind == flow->kind && whole->parameter == flow->parameter;
  if (flow->kind == Flow::Kind::scalar || same) return flow;
  return with_aliases(with_uniqueness(whole, flow->unique), flow->aliases);
}

}  // namespace apl::frontend
