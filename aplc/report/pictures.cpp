// The flow of kernels.
#include <fmt/format.h>
#include <range/v3/view/zip.hpp>

#include <algorithm>
#include <functional>
#include <set>

#include "aplc/report/report.h"
#include "ir/walk.h"

namespace aplc::report_page {
namespace {

using apl::Value;

// Which kernels each value on the host comes from.
class Flow {
 public:
  Flow(const apl::Function& function, const std::vector<KernelCost>& kernels) : function_(function) {
    for (std::size_t k = 0; k < kernels.size(); ++k) nodes_[kernels[k].statement] = k;
    edges.resize(kernels.size());
    body(*function.body);
  }

  std::vector<std::set<std::size_t>> edges;  // to each kernel, from others

 private:
  using Sources = std::set<std::size_t>;

  Sources sources(const apl::Op& op) const {
    Sources all;
    for (const Value v : apl::free_values(op, function_.values)) {
      const apl::Type& type = function_.type(v);
      if (type.is_memory()) continue;
      if (const auto found = made_by_.find(v); found != made_by_.end())
        all.insert(found->second.begin(), found->second.end());
    }
    return all;
  }
  void set(Value v, const Sources& from) { made_by_[v].insert(from.begin(), from.end()); }
  Sources of(const apl::Operand& operand) const {
    if (operand.is_constant()) return {};
    const auto found = made_by_.find(operand.value());
    return found == made_by_.end() ? Sources{} : found->second;
  }

  void body(const apl::Body& body) {
    for (const apl::Stm& stm : body.stms) {
      if (const auto node = nodes_.find(&stm); node != nodes_.end()) {
        const Sources from = sources(stm.op);
        edges[node->second].insert(from.begin(), from.end());
        for (const Value v : stm.pattern) made_by_[v] = {node->second};
        continue;
      }
      if (const auto* loop = apl::get_if<apl::Loop>(stm)) {
        for (const auto& [param, initial] : ranges::views::zip(loop->params, loop->initial)) set(param, of(initial));
        this->body(*loop->body);
        for (const auto& [made, result] : ranges::views::zip(stm.pattern, loop->body->results)) set(made, of(result));
      } else if (apl::is_branch(stm.op)) {
        for (const apl::BodyPtr& side : apl::branches(stm.op)) {
          this->body(*side);
          for (std::size_t k = 0; k < stm.pattern.size() && k < side->results.size(); ++k)
            set(stm.pattern[k], of(side->results[k]));
        }
      } else {
        const Sources from = sources(stm.op);
        for (const Value v : stm.pattern) set(v, from);
      }
    }
  }

  const apl::Function& function_;
  std::map<const apl::Stm*, std::size_t> nodes_;
  std::map<Value, Sources> made_by_;
};

}  // namespace

std::string flow_graph(const apl::Function& function, const std::vector<KernelCost>& kernels,
                       const std::vector<std::string>& labels) {
  constexpr std::size_t kMost = 40;
  constexpr int kWidth = 220, kHeight = 46, kGapX = 20, kGapY = 34;
  if (kernels.empty() || kernels.size() > kMost) return {};
  const Flow flow(function, kernels);
  // A kernel is below all that it reads from; what comes later in a loop is not above what is before it.
  std::vector<int> layer(kernels.size()), column(kernels.size());
  std::map<int, int> filled;
  int columns = 1, layers = 1;
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    for (const std::size_t from : flow.edges[k])
      if (from < k) layer[k] = std::max(layer[k], layer[from] + 1);
    column[k] = filled[layer[k]]++;
    columns = std::max(columns, filled[layer[k]]);
    layers = std::max(layers, layer[k] + 1);
  }
  const auto x = [&](std::size_t k) { return column[k] * (kWidth + kGapX) + 2; };
  const auto y = [&](std::size_t k) { return layer[k] * (kHeight + kGapY) + 2; };
  const int width = columns * (kWidth + kGapX), height = layers * (kHeight + kGapY);
  std::string svg = fmt::format(
      "<svg role=img aria-label=\"kernels and the arrays between them\" viewBox=\"0 0 {} {}\" width={}>\n"
      "<title>Kernels of {}, from top to bottom, with an edge from what makes an array to what reads it</title>\n",
      width, height, width, escaped(function.name));
  for (std::size_t k = 0; k < kernels.size(); ++k)
    for (const std::size_t from : flow.edges[k]) {
      if (from == k) continue;
      const int x1 = x(from) + kWidth / 2, y1 = y(from) + kHeight, x2 = x(k) + kWidth / 2, y2 = y(k);
      svg += fmt::format("<path class=edge d=\"M{} {}C{} {} {} {} {} {}\"/>\n", x1, y1, x1, y1 + kGapY, x2, y2 - kGapY,
                         x2, y2);
    }
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    const std::string time = kernels[k].seconds ? microseconds_text(*kernels[k].seconds * 1e6) : "time unknown";
    const std::string times = kernels[k].launches > 1 ? fmt::format(", {:.0f} launches", kernels[k].launches) : "";
    svg += fmt::format(
        "<rect class=node x={} y={} width={} height={} rx=4 /><text x={} y={}>{}</text><text x={} y={}>{}{}</text>\n",
        x(k), y(k), kWidth, kHeight, x(k) + 8, y(k) + 18, escaped(labels[k]), x(k) + 8, y(k) + 37, time, times);
  }
  return svg + "</svg>\n";
}

}  // namespace aplc::report_page
