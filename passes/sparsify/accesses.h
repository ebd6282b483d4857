// Which elements of sparse arrays values are, through indices, slices and transposes, wherever they are made.
#pragma once

#include "passes/sparsify/sparsify.h"

namespace apl::sparsify {

// An element of a sparse array, or a view of it. Each dim of the array is at `start`, or runs with `stride` along a dim
// of the view.
struct Access {
  struct Dim {
    Poly start = 0, stride = 1;
    std::optional<std::size_t> axis{};  // of the view
  };
  Value base;                         // the array, as if it were dense
  std::vector<Dim> dims;              // of its batches, rows and columns
  std::vector<Value> certificates{};  // of all indices on the way

  bool is_element() const;
  const Poly& row() const { return dims[dims.size() - 2].start; }
  const Poly& column() const { return dims.back().start; }
  std::vector<Poly> batches() const;
};

class Accesses {
 public:
  Accesses(const SparseArrays& arrays, const ValueTable& values) : arrays_(arrays), values_(values) {}

  // Notes what the statement and those of its bodies make.
  void enter(const Stm& stm);
  void enter(const Body& body);
  // Of an array that is sparse itself, too.
  std::optional<Access> find(Value value) const;

 private:
  const SparseArrays& arrays_;
  const ValueTable& values_;
  std::unordered_map<Value, Access> accesses_;
};

}  // namespace apl::sparsify
