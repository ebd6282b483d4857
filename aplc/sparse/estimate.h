// What the runtime's kernels for GPUs are expected to take (runtime/sparse/device_cost.c) on an H200.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ir/scalar.h"
#include "machine/tiles/plan.h"
#include "passes/sparse/plan.h"
#include "runtime/sparse/sparse.h"

namespace aplc::sparse {

// Whose times they are.
const apl_device& modelled_device();

struct Estimate {
  double sparse = 0, dense = 0;  // microseconds
  bool says_dense() const;
  // "yes: ..." or why not.
  std::string verdict() const;
};
// `plan` may be null. Nothing without memory.
std::optional<Estimate> estimate(const apl_sparse_csr& matrix, const apl_sparse_plan* plan, bool sddmm,
                                 apl::ScalarType element, std::int64_t width);

// What the runtime's kernels for GPUs take with a plan of a search, by their model, or the dense product for one that
// says so; 0 if there is no packed operand.
double kernel_nanoseconds(const apl::sparse::Csr& matrix, const apl::sparse::Plan& plan, apl::ScalarType element);

}  // namespace aplc::sparse
