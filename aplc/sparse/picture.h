// Pictures of patterns and plans as SVG.
#pragma once

#include <string>

#include "passes/sparse/matrix.h"
#include "runtime/sparse/sparse.h"

namespace aplc::sparse {

// Where the non-zeros are, in at most 160 by 160 cells, darker where there are more; beside it how long the rows are.
// With tiles (may be null) rows are in the plan's order, and colours say which format has most of a cell.
std::string picture(const apl::sparse::Csr& matrix, const apl_sparse_tiles* tiles);

}  // namespace aplc::sparse
