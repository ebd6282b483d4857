// Matrices that the tests of the sparse library share.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "machine/target/records.h"
#include "passes/sparse/matrix.h"

namespace apl::sparse_test {

inline const apl_device& h200() {
  static const apl_device device = *find_device("h200");
  return device;
}

inline sparse::Csr pattern(std::int64_t rows, std::int64_t columns,
                           const std::vector<std::pair<std::int32_t, std::int32_t>>& points) {
  sparse::Coo entries{rows, columns, {}, {}, {}};
  for (const auto& [row, column] : points) {
    entries.row.push_back(row);
    entries.column.push_back(column);
  }
  return *sparse::from_coo(entries);
}

// The 8 by 8 matrix of STile's figures 1 to 3: two full 2 by 2 blocks, of which one lies across the grid, and two
// single non-zeros.
inline sparse::Csr figure_matrix() {
  return pattern(8, 8, {{2, 2}, {2, 3}, {3, 2}, {3, 3}, {1, 6}, {4, 1}, {5, 5}, {5, 6}, {6, 5}, {6, 6}});
}

inline const std::vector<std::string>& kinds() {
  static const std::vector<std::string> kAll = {"uniform", "banded",  "block",      "power-law", "full",
                                                "empty",   "one row", "one column", "no rows",   "dense rows"};
  return kAll;
}

// A matrix of a kind, about `size` by `size`, with values; the same for the same seed.
inline sparse::Csr random_matrix(const std::string& kind, std::int64_t size, std::uint64_t seed) {
  std::mt19937_64 random(seed * 977 + size);
  std::uniform_real_distribution<double> unit(0, 1);
  std::int64_t rows = size, columns = size + static_cast<std::int64_t>(random() % 5);
  if (kind == "one row") rows = 1;
  if (kind == "one column") columns = 1;
  if (kind == "no rows") rows = 0;
  const auto density = [&](std::int64_t i, std::int64_t j) {
    if (kind == "uniform") return 0.1;
    if (kind == "banded") return std::abs(i - j) <= 2 ? 0.9 : 0.0;
    if (kind == "block") return (i / 8 * 7 + j / 8 * 3) % 5 == 0 ? 0.95 : 0.01;
    if (kind == "power-law") return std::min(1.0, 3.0 / static_cast<double>(1 + i) + 1.0 / static_cast<double>(1 + j));
    if (kind == "full") return 1.0;
    if (kind == "empty") return 0.0;
    if (kind == "dense rows") return i % 17 == 3 ? 0.9 : 0.03;
    return 0.5;
  };
  sparse::Coo entries{rows, columns, {}, {}, {}};
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) {
      if (unit(random) >= density(i, j)) continue;
      entries.row.push_back(static_cast<std::int32_t>(i));
      entries.column.push_back(static_cast<std::int32_t>(j));
      entries.value.push_back(static_cast<double>(static_cast<std::int64_t>(random() % 17) - 8));
    }
  return *sparse::from_coo(entries);
}

}  // namespace apl::sparse_test
