// What both forms of a histogram in two levels consist of.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/builder.h"
#include "ir/walk.h"
#include "passes/extract_kernels/histograms.h"

namespace apl {

// Indices of a segment; below, more kernels cost more than they save.
constexpr std::int64_t kHistogramFrom = 2048;

// How a histogram falls apart.
class HistogramParts {
 public:
  using Operands = std::vector<Operand>;

  // Borrows `kernel`, a histogram of make_scatter_kernel. What it makes goes to `values`.
  HistogramParts(const Stm& kernel, ValueTable& values);

  const Scatter& op;
  std::size_t leading = 0;                   // segment dims
  std::vector<Poly> segments, widths, bins;  // of all; of one segment
  std::vector<std::string> names;            // of the targets

  std::size_t count() const { return op.targets.size(); }
  ScalarType element(std::size_t k) const { return values_.type(op.targets[k]).element; }
  Value fresh_index(const std::string& name) const { return values_.add(Type::scalar(ScalarType::i64), name); }
  ReduceOp fresh_operator() const;

  // The space of a kernel over the segments; what stands in it for their indices goes to `here`.
  std::vector<SegDim> space(Substitution& here) const;

  // What index `flat` of a segment gives: the indices of a bin among the segment's, and the values.
  Operands row(Value flat, const Substitution& segment, Builder& out) const;

  // The same with one index for the bin: where `place` says that its row-major position lies, or -1 if there is no bin.
  using BinPosition = std::function<Poly(const Poly& bin)>;
  Operands placed_row(Value flat, const Substitution& segment, Builder& out, const BinPosition& position) const;

  // How many of a segment's indices part `c` has, of `per` each at most.
  Poly indices_of(Value c, const Poly& per) const {
    return poly_max(0, poly_min(per, product(widths) - Poly(c) * per));
  }

  // What blocks or threads have is folded, and then into the targets, which the results are. `copies`: an array a
  // target, whose dims are the segments', `parts` and one segment's bins, flat.
  Operands merged(const std::vector<Value>& copies, const std::vector<Poly>& parts,
                  const std::function<Chunks()>& chunks, Builder& host) const;

  // The statements of a branch: `then` if it pays, else the histogram as it is.
  std::vector<Stm> either(const std::string& prefix, const std::string& name, Value pays, const BodyPtr& then,
                          Builder& host) const;

 private:
  bool is_segment(std::size_t d) const;
  Operand bin_of(const Operands& row, Builder& out, const BinPosition& position) const;
  Operands into_targets(const std::vector<Value>& sums, Builder& host) const;

  ValueTable& values_;
  const Stm& kernel_;
};

}  // namespace apl
