// Definitions 1 to 8 of STile as checks, and what task partitions cost.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "passes/sparse/composition.h"

namespace apl::sparse {

// What tiles may look like on a device (section 3.1).
struct TileLimits {
  std::vector<std::pair<std::int64_t, std::int64_t>> blocks;  // heights and widths of the matrix instructions
  std::int64_t ell_elements = 0;                              // non-zeros and zeros of one ELL tile
};

// Blocks that matrix instructions take (fp16: 16 in the reduction, 8, 16 or 32 rows; tf32: 8), the sparse operand being
// on either side.
TileLimits tensor_core_limits();

// Definition 1: non-zeros of the matrix, each once, in a form that holds them; a shape that the device has.
// Nothing, or a bug.internal that says what is wrong; so below.
Status check_tile(const Csr& matrix, const Tile& tile, const TileLimits* limits = nullptr);
// Definitions 2 and 7: every non-zero is in exactly one tile (in two it would count twice in a product), and levels go
// from 1 up without a gap.
Status check_selection(const Csr& matrix, const std::vector<Tile>& tiles);
// Definition 7: the matrix of the non-zeros that no tile has, from which the next level is made.
Csr remaining(const Csr& matrix, const std::vector<Tile>& tiles);

// Definitions 3 and 5: a tile with a part of the dense loop.
struct SubTask {
  std::size_t tile = 0;
  std::int64_t begin = 0, end = 0;
};
// The task partition of a selection when the dense loop of `dense` iterations is cut into parts of `part`.
std::vector<SubTask> partition_tasks(const std::vector<Tile>& tiles, std::int64_t dense, std::int64_t part);
// Definition 4: together they cover every point of the iteration space that counts, and none twice.
Status check_partition(const Csr& matrix, const std::vector<Tile>& tiles, std::int64_t dense,
                       const std::vector<SubTask>& tasks);

// Definition 6 with the longest first, each to the worker that is free first: at most 4/3 of the best assignment.
double partition_cost(std::vector<double> costs, int workers);

}  // namespace apl::sparse
