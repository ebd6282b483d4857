// The dependence graph, on Boost.Graph. Edges run from what comes first to what comes later: from a definition to its
// uses, and in order through all statements that touch an array which is overwritten in place somewhere (their order
// is part of their meaning).
#include <boost/graph/adjacency_list.hpp>

#include <numeric>
#include <queue>
#include <set>

#include "ir/walk.h"
#include "passes/fuse/fuse.h"

namespace apl {

struct DependenceGraph::Graph {
  using Edges = boost::adjacency_list<boost::setS, boost::vecS, boost::bidirectionalS>;
  Edges edges;
  std::vector<bool> gone;
  std::vector<std::size_t> rank;  // along every edge it grows: a search ends where it has passed what it looks for

  explicit Graph(std::size_t count) : edges(count), gone(count, false), rank(count) {
    std::iota(rank.begin(), rank.end(), 0);
  }

  // Whether all that comes before `k` has a lower rank, and all that comes later a higher one.
  bool fits(std::size_t k, std::size_t its_rank) const {
    for (auto [edge, end] = boost::in_edges(k, edges); edge != end; ++edge)
      if (rank[boost::source(*edge, edges)] >= its_rank) return false;
    for (auto [edge, end] = boost::out_edges(k, edges); edge != end; ++edge)
      if (rank[boost::target(*edge, edges)] <= its_rank) return false;
    return true;
  }
};

DependenceGraph::DependenceGraph(const std::vector<Stm>& stms, const ValueTable& values, const Consumption& consumption)
    : graph_(std::make_unique<Graph>(stms.size())) {
  std::unordered_map<Value, std::size_t> definitions;
  std::optional<std::size_t> last_touching;
  for (std::size_t k = 0; k < stms.size(); ++k) {
    const Stm& stm = stms[k];
    bool touches = false;
    const auto read = [&](Value v) {
      touches = touches || (values.type(v).is_array() && consumption.consumed(v));
      const auto found = definitions.find(v);
      if (found != definitions.end() && found->second != k) boost::add_edge(found->second, k, graph_->edges);
    };
    for (const Value v : free_values(stm.op, values)) read(v);
    for (const Value v : stm.certificates) read(v);
    for (const Value v : stm.pattern) {
      for_each_use(values.type(v), read);
      touches = touches || (values.type(v).is_array() && consumption.consumed(v));
    }
    for (const Value v : stm.pattern) definitions.emplace(v, k);
    if (!touches) continue;
    if (last_touching) boost::add_edge(*last_touching, k, graph_->edges);
    last_touching = k;
  }
}

DependenceGraph::~DependenceGraph() = default;
DependenceGraph::DependenceGraph(DependenceGraph&&) noexcept = default;

bool DependenceGraph::depends(std::size_t later, std::size_t earlier) const {
  return boost::edge(earlier, later, graph_->edges).second;
}

bool DependenceGraph::separated(std::size_t earlier, std::size_t later, const std::vector<std::size_t>& except) const {
  // Backwards from `later`: what it needs is usually less than what needs `earlier`.
  std::set<std::size_t> seen(except.begin(), except.end());
  std::vector<std::size_t> pending;
  const auto visit_sources = [&](std::size_t at, bool is_later) {
    for (auto [edge, end] = boost::in_edges(at, graph_->edges); edge != end; ++edge) {
      const std::size_t source = boost::source(*edge, graph_->edges);
      if (source == earlier) {
        if (!is_later) return true;
        continue;
      }
      if (graph_->rank[source] > graph_->rank[earlier] && seen.insert(source).second) pending.push_back(source);
    }
    return false;
  };
  visit_sources(later, true);
  while (!pending.empty()) {
    const std::size_t at = pending.back();
    pending.pop_back();
    if (visit_sources(at, false)) return true;
  }
  // What is excepted may itself need something that needs `earlier`.
  for (const std::size_t at : except) {
    for (auto [edge, end] = boost::in_edges(at, graph_->edges); edge != end; ++edge) {
      const std::size_t source = boost::source(*edge, graph_->edges);
      if (source != earlier && reaches(earlier, source)) return true;
    }
  }
  return false;
}

bool DependenceGraph::reaches(std::size_t earlier, std::size_t later) const {
  return depends(later, earlier) || separated(earlier, later, {});
}

void DependenceGraph::merge(std::size_t gone, std::size_t kept) {
  auto& edges = graph_->edges;
  std::vector<std::size_t> sources;
  std::vector<std::size_t> targets;
  for (auto [edge, end] = boost::in_edges(gone, edges); edge != end; ++edge)
    sources.push_back(boost::source(*edge, edges));
  for (auto [edge, end] = boost::out_edges(gone, edges); edge != end; ++edge)
    targets.push_back(boost::target(*edge, edges));
  boost::clear_vertex(gone, edges);
  for (const std::size_t source : sources) {
    if (source != kept) boost::add_edge(source, kept, edges);
  }
  for (const std::size_t target : targets) {
    if (target != kept) boost::add_edge(kept, target, edges);
  }
  graph_->gone[gone] = true;
  if (graph_->fits(kept, graph_->rank[kept])) return;
  if (graph_->fits(kept, graph_->rank[gone])) {
    graph_->rank[kept] = graph_->rank[gone];
    return;
  }
  std::size_t next = 0;
  for (const std::size_t k : order()) graph_->rank[k] = next++;
}

void DependenceGraph::disconnect(std::size_t earlier, std::size_t later) {
  boost::remove_edge(earlier, later, graph_->edges);
}

void DependenceGraph::drop(std::size_t gone) {
  boost::clear_vertex(gone, graph_->edges);
  graph_->gone[gone] = true;
}

std::vector<std::size_t> DependenceGraph::order() const {
  const auto& edges = graph_->edges;
  const std::size_t count = boost::num_vertices(edges);
  std::vector<std::size_t> waiting(count);
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
  for (std::size_t k = 0; k < count; ++k) {
    waiting[k] = boost::in_degree(k, edges);
    if (waiting[k] == 0 && !graph_->gone[k]) ready.push(k);
  }
  std::vector<std::size_t> result;
  while (!ready.empty()) {
    const std::size_t at = ready.top();
    ready.pop();
    result.push_back(at);
    for (auto [edge, end] = boost::out_edges(at, edges); edge != end; ++edge) {
      const std::size_t target = boost::target(*edge, edges);
      if (--waiting[target] == 0) ready.push(target);
    }
  }
  return result;
}

}  // namespace apl
