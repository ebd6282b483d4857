// What the runtime's kernels for GPUs are expected to take (runtime/sparse/device_cost.c) on an H200.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ir/scalar.h"
#include "machine/tiles/plan.h"
#include "passes/sparse/plan.h"
#include "runtime/sparse/sparse.h"

namespace aplc::sparse {

// Whose times they are.
const apl_device& modelled_device();
// In which types its figures were fitted, if this is none of them; empty if it is.
std::string_view fitted_in(apl::ScalarType element, bool sddmm);

struct Estimate {
  double sparse = 0, dense = 0;  // microseconds; dense as a plan runs it that says so
  bool says_dense() const { return dense < sparse; }
  // "yes: ..." or why not.
  std::string verdict() const;
};
// `plan` may be null. Nothing without memory.
// `cublas`: whose dense product is meant.
std::optional<Estimate> estimate(const apl_sparse_csr& matrix, const apl_sparse_plan* plan, bool sddmm,
                                 apl::ScalarType element, std::int64_t width, bool cublas);
// For searches: nanoseconds that the runtime's kernels for GPUs take with a plan, by their model, or the dense product
// for one that says so; 0 if there is no packed operand.
class KernelModel {
 public:
  KernelModel(const apl::sparse::Csr& matrix, apl::ScalarType element, bool cublas)
      : matrix_(matrix), element_(element), cublas_(cublas) {}
  double operator()(const apl::sparse::Plan& plan);

 private:
  const apl::sparse::Csr& matrix_;
  apl::ScalarType element_;
  bool cublas_;
  double least_ = 0;  // so far
};

}  // namespace aplc::sparse
