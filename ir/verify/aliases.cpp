#include "ir/verify/aliases.h"

#include <algorithm>

namespace apl::verifier {

Aliases::Aliases(std::size_t values) : nodes_(values) {
  for (std::size_t id = 0; id < values; ++id) nodes_[id].parent = static_cast<std::uint32_t>(id);
}

std::uint32_t Aliases::root(Value v) {
  std::uint32_t id = v.id;
  while (nodes_[id].parent != id) {
    nodes_[id].parent = nodes_[nodes_[id].parent].parent;
    id = nodes_[id].parent;
  }
  return id;
}

void Aliases::bind(Value v, const std::vector<Edge>& edges) {
  Node& node = nodes_[v.id];
  node.order = ++bound_;
  node.edges.insert(node.edges.end(), edges.begin(), edges.end());
  node.whole = 0;
  for (const Edge& edge : edges) {
    const std::uint32_t a = root(v), b = root(edge.to);
    nodes_[b].consumed_at = std::max(nodes_[a].consumed_at, nodes_[b].consumed_at);
    nodes_[a].parent = b;
  }
}

template <class Visit>
void Aliases::walk(Value v, Visit visit) {
  ++walks_;
  todo_.assign(1, Edge{v});
  while (!todo_.empty()) {
    const Edge edge = todo_.back();
    todo_.pop_back();
    Node& node = nodes_[edge.to.id];
    if (node.left == walks_ || (edge.alone && node.seen == walks_)) continue;
    node.seen = walks_;
    if (!edge.alone) node.left = walks_;
    if (visit(edge) && !edge.alone) todo_.insert(todo_.end(), node.edges.begin(), node.edges.end());
  }
}

std::vector<Value> Aliases::of(Value v) {
  std::vector<Value> all;
  walk(v, [&](Edge edge) {
    all.push_back(edge.to);
    return true;
  });
  std::ranges::sort(all);
  all.erase(std::ranges::unique(all).begin(), all.end());
  return all;
}

bool Aliases::overlap(Value a, Value b) {
  if (root(a) != root(b)) return false;
  const std::vector<Value> of_a = of(a), of_b = of(b);
  return std::ranges::any_of(of_a, [&](Value alias) { return std::ranges::binary_search(of_b, alias); });
}

void Aliases::outer(Value v, std::uint64_t outside, std::vector<Edge>& into) {
  // What is bound outside shares nothing that is bound inside.
  walk(v, [&](Edge edge) {
    const bool known = nodes_[edge.to.id].order <= outside;
    if (known) into.push_back(edge);
    return !known;
  });
}

void Aliases::consume(Value v) {
  if (!nodes_[v.id].consumed) consumed_.push_back(v);
  nodes_[v.id].consumed = true;
  nodes_[root(v)].consumed_at = ++time_;
}

std::optional<Value> Aliases::consumed_alias(Value v) {
  const std::uint64_t since = nodes_[root(v)].consumed_at;
  if (since == 0 || nodes_[v.id].whole > since) return std::nullopt;
  std::optional<Value> first;
  std::vector<Value> whole;
  walk(v, [&](Edge edge) {
    const Node& node = nodes_[edge.to.id];
    if (node.consumed) first = first ? std::min(*first, edge.to) : edge.to;
    if (node.whole > since) return false;
    if (!edge.alone) whole.push_back(edge.to);
    return true;
  });
  if (first) return first;
  ++time_;
  for (Value alias : whole) nodes_[alias.id].whole = time_;
  return std::nullopt;
}

void Aliases::drop_consumed(std::vector<Edge>& edges) {
  std::vector<Edge> kept;
  for (const Edge& edge : edges) {
    if (!edge.alone && !consumed_alias(edge.to)) {
      kept.push_back(edge);
    } else if (edge.alone) {
      if (!nodes_[edge.to.id].consumed) kept.push_back(edge);
    } else {
      for (Value alias : of(edge.to))
        if (!nodes_[alias.id].consumed) kept.push_back({alias, true});
    }
  }
  edges = std::move(kept);
}

std::vector<Value> Aliases::undo(std::size_t mark) {
  std::vector<Value> undone(consumed_.begin() + static_cast<std::ptrdiff_t>(mark), consumed_.end());
  for (Value v : undone) nodes_[v.id].consumed = false;
  consumed_.resize(mark);
  return undone;
}

}  // namespace apl::verifier
