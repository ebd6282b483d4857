// What the runtime's kernels for GPUs are expected to take (codegen/runtime/sparse/device_cost.c): f16 on an H200.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "codegen/runtime/sparse/sparse.h"

namespace aplc::sparse {

struct Estimate {
  double sparse = 0, dense = 0;  // microseconds
  bool says_dense() const;
  // "yes: ..." or why not.
  std::string verdict() const;
};
// `plan` may be null. Nothing without memory.
std::optional<Estimate> estimate(const apl_sparse_csr& matrix, const apl_sparse_plan* plan, bool sddmm,
                                 std::int64_t width);

}  // namespace aplc::sparse
