// Which arrays may share elements, and which of them were consumed, for one function.
// A value has an edge to each value whose elements it may share; what those share it shares, too. Nothing is copied
// along a chain of views, and a value that was found whole is looked at again only after something was consumed that
// it is connected with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/value.h"

namespace apl::verifier {

class Aliases {
 public:
  // `alone`: the elements of `to` are shared, but not what `to` shares in turn.
  struct Edge {
    Value to;
    bool alone = false;
  };
  static constexpr std::uint64_t kUnbound = 0;

  explicit Aliases(std::size_t values);

  void bind(Value v, const std::vector<Edge>& edges);
  std::uint64_t bound() const { return bound_; }                     // how many were
  std::uint64_t order(Value v) const { return nodes_[v.id].order; }  // as which one, from 1

  // What shares elements with the value, itself included; sorted.
  std::vector<Value> of(Value v);
  bool overlap(Value a, Value b);
  // Edges to those aliases that were bound as number `outside` at the latest; those that are reached through them are
  // left out.
  void outer(Value v, std::uint64_t outside, std::vector<Edge>& into);

  void consume(Value v);
  bool is_consumed(Value v) const { return nodes_[v.id].consumed; }
  // The first alias that was consumed.
  std::optional<Value> consumed_alias(Value v);
  // Edges to the same aliases but those that were consumed.
  void drop_consumed(std::vector<Edge>& edges);

  // Forgets what was consumed since the mark, and gives it.
  std::size_t mark() const { return consumed_.size(); }
  std::vector<Value> undo(std::size_t mark);

 private:
  struct Node {
    std::vector<Edge> edges;
    std::uint64_t order = kUnbound;
    std::uint64_t whole = 0;           // when no alias was consumed
    std::uint64_t consumed_at = 0;     // of a root: when one of those that are connected was consumed last
    std::uint64_t seen = 0, left = 0;  // the last walk that met it, and that went on from it
    std::uint32_t parent;
    bool consumed = false;
  };

  std::uint32_t root(Value v);
  // Each alias, once by itself and once with what it shares; `visit` says whether to go on from it.
  template <class Visit>
  void walk(Value v, Visit visit);

  std::vector<Node> nodes_;
  std::vector<Value> consumed_;  // in order
  std::vector<Edge> todo_;
  std::uint64_t bound_ = 0, time_ = 0, walks_ = 0;
};

}  // namespace apl::verifier
