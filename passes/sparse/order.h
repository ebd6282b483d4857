// Orders of the rows that bring rows with the same columns together. Columns need none: block tiles take any columns.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "passes/sparse/matrix.h"

namespace apl::sparse {

// The row at each position. Each is the same for the same matrix, whatever the number of threads.

// Longest rows first (primitive 1 of STile).
std::vector<std::int32_t> order_by_length(const Csr& matrix);
// Communities: rows and columns take the commonest label of those they meet, in turn, and rows are sorted by label.
// `go_on` (may be empty) is asked between rounds: empty if it says no.
std::vector<std::int32_t> order_by_labels(const Csr& matrix, int threads, const std::function<bool()>& go_on = {});
// Reverse Cuthill-McKee of the graph of the matrix, or of rows and columns if it is not square.
std::vector<std::int32_t> order_by_bandwidth(const Csr& matrix);

// Non-zeros for each distinct column of a window of 8 and of 32 rows, in a sample of the windows: what an order is good
// for. An empty order is the one of the matrix.
struct Sharing {
  double eight = 1, thirty_two = 1;
};
Sharing column_sharing(const Csr& matrix, const std::vector<std::int32_t>& order);

}  // namespace apl::sparse
