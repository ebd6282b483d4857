// The parts of fuse: the dependence graph of a body, and what makes one statement of two.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/module.h"
#include "passes/analysis/consumption.h"

namespace apl {

// Which statements of a body must come before which. Vertices are positions in the body; fusing merges two.
class DependenceGraph {
 public:
  DependenceGraph(const std::vector<Stm>& stms, const ValueTable& values, const Consumption& consumption);
  ~DependenceGraph();
  DependenceGraph(DependenceGraph&&) noexcept;
  DependenceGraph& operator=(DependenceGraph&&) = delete;

  bool depends(std::size_t later, std::size_t earlier) const;  // directly
  // Whether a path leads from one to the other through a third statement; those in `except` do not count.
  bool separated(std::size_t earlier, std::size_t later, const std::vector<std::size_t>& except) const;
  bool reaches(std::size_t earlier, std::size_t later) const;
  // `gone` becomes part of `kept`.
  void merge(std::size_t gone, std::size_t kept);
  void disconnect(std::size_t earlier, std::size_t later);
  void drop(std::size_t gone);
  // Every position once, dependences first, else in the old order.
  std::vector<std::size_t> order() const;

 private:
  struct Graph;
  std::unique_ptr<Graph> graph_;
};

// Why two statements stay apart.
struct NotFused {
  std::string code;
  std::string message;
  std::string suggestion;
};

// A row of the producer as the consumer sees it: input `input` of the consumer is result `result` of the producer,
// its dims behind the widths permuted by `rows` (empty: as they are).
struct Link {
  std::size_t input = 0;
  std::size_t result = 0;
  std::vector<int> rows;
};

// producer and consumer over the same widths as one Screma. `kept[k]`: result k of the producer is still needed.
Stm fuse_vertically(const Stm& producer, const Stm& consumer, const std::vector<Link>& links,
                    const std::vector<bool>& kept, ValueTable& values);

// Scremas over the same widths, none depending on another, as one. Results: those of all.
Stm fuse_horizontally(const std::vector<Stm>& parts, ValueTable& values);

// A reduction of reductions with one operator as one reduction over both lists of widths; nullopt if it is none.
std::optional<Stm> merge_nested_reduction(const Stm& stm, const ValueTable& values);

// A nest of maps, perfect for `count` dims, as one map over them; nullopt if it is none.
std::optional<Stm> collapse_nest(const Stm& stm, std::size_t count, ValueTable& values);
// A map over several widths as one over the first `count` with one over the others inside.
Stm split_nest(const Stm& stm, std::size_t count, ValueTable& values);
// Transposes and slices of element-wise nests become transposes and slices of their inputs, where a Screma or Scatter
// streams the view and nobody else needs the array: then the two can be fused. True if something changed.
struct ViewInTheWay {
  Stm view;
  std::string name;  // of the array
  std::string why;
};
bool lift_views(std::vector<Stm>& stms, const std::vector<Operand>& results, ValueTable& values,
                const Consumption& consumption, std::vector<ViewInTheWay>* refused = nullptr);
// Elements that Scremas read at their own index become rows that they stream, if a Screma of the same body makes the
// array. True if something changed.
bool stream_elements(std::vector<Stm>& stms, ValueTable& values, const Consumption& consumption);

// A loop that only accumulates as a reduction, and what puts before its results what it started from. With `reorder`
// also sums and products of floats that start anywhere, which that rounds otherwise.
struct LoopReduction {
  Stm reduction;
  std::vector<Stm> after;
};
std::optional<LoopReduction> loop_as_reduction(const Stm& stm, bool reorder, ValueTable& values);

// A map that makes what a scatter or histogram `at` streams; `why` it was not fused, if it was not.
struct ScatterFusion {
  std::string name;
  Stm at;
  std::optional<NotFused> why;
};
// Fuses such maps of one body, and tells of each.
std::vector<ScatterFusion> fuse_into_scatters(std::vector<Stm>& stms, const std::vector<Operand>& results,
                                              ValueTable& values, const Consumption& consumption);

// Computes the elements of cheap maps where Scremas and Scatters read them by index, if nobody else needs the arrays;
// tells of each array that is gone.
std::vector<ScatterFusion> compute_where_read(std::vector<Stm>& stms, const std::vector<Operand>& results,
                                              ValueTable& values, const Consumption& consumption);

// Where a Screma streams a transpose of rows that a nest makes of numbers which cost more than the rows do: the nest
// keeps the numbers, and the rows are made where they are streamed. Tells of each array of rows that is gone.
std::vector<ScatterFusion> split_rows(std::vector<Stm>& stms, const std::vector<Operand>& results, ValueTable& values,
                                      const Consumption& consumption);

// Makes one of scatters that write to the same positions, and says of each that was merged into another.
std::vector<ScatterFusion> fuse_scatter_pairs(std::vector<Stm>& stms, ValueTable& values,
                                              const Consumption& consumption);

// The parallel dims of a perfect nest of maps.
std::size_t parallel_depth(const Screma& screma);
// Only scalar code that cannot fail, on elements of arrays, in nests of maps: a tiled contraction can do it after its
// reduction.
bool is_element_code(const Body& body, const ValueTable& values);
bool holds_screma(const Body& body);
// Work that is worth a thread of its own: more than the elements of an element-wise map.
bool holds_heavy_work(const Body& body);
// Whether Scremas in the lambda run in parallel: not those in a branch that differs between indices.
bool parallel_inside(const Screma& screma);

}  // namespace apl
