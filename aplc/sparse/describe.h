// Facts about sparse operands for `aplc explain`: the matrix, the tiles of a plan, the runtime's kernels.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ir/poly.h"
#include "ir/scalar.h"
#include "runtime/sparse/sparse.h"

namespace aplc::sparse {

using Facts = std::vector<std::pair<std::string, std::string>>;

// A product of the program, as far as explaining needs it.
struct Explained {
  std::string operand;
  bool sddmm = false, fits = false;  // a kernel of the runtime
  bool tiles = false;                // over the tiles of a plan, by a kernel of the program
  std::string why_not;
  apl::ScalarType type{};
  apl::Poly width = 1;
  bool has_width = false;
  std::size_t batches = 0, epilogue = 0;
};

// In the order of the plan's rows, or as they are (null).
void describe_matrix(const std::string& file, const apl_sparse_csr& csr, const std::int32_t* order, Facts& facts);
// Which formats have the non-zeros, and what they store for them.
void describe_tiles(const apl_sparse_tiles& tiles, Facts& facts);
// The runtime's kernels for this matrix, what they store, and how long they take by their model.
void describe_kernels(const Explained& product, const apl_sparse_csr& csr, const apl_sparse_plan* plan,
                      std::int64_t width, Facts& facts);

}  // namespace aplc::sparse
