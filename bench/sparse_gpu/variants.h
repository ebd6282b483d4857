// Parameters that a sweep tries beside those of the rules.
#pragma once

#include <string>
#include <vector>

#include "passes/sparse/matrix.h"
#include "runtime/sparse/device_operand.h"

namespace apl::bench {

struct Variant {
  std::string name;
  apl_sparse_options options;
};
// Variants that share a packed operand.
struct PackedVariant {
  apl_sparse_options options;
  std::vector<Variant> variants;
};

std::vector<PackedVariant> spmm_variants(const sparse::Csr& matrix, int highest_window);
std::vector<Variant> sddmm_variants(bool has_windows);

}  // namespace apl::bench
