// Tile lists for tests: made from texts of plans, and read back.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "passes/sparse/matrix.h"
#include "runtime/sparse/csr_view.h"
#include "runtime/sparse/sparse.h"

namespace apl::sparse_test {

struct FreePlan {
  void operator()(apl_sparse_plan* plan) const { apl_sparse_plan_free(plan); }
};
struct FreeTiles {
  void operator()(apl_sparse_tiles* tiles) const { apl_sparse_tiles_free(tiles); }
};
using PlanPointer = std::unique_ptr<apl_sparse_plan, FreePlan>;
using TilesPointer = std::unique_ptr<apl_sparse_tiles, FreeTiles>;

// Null with the message of the parser.
inline PlanPointer parse_plan(const std::string& text, std::string* message = nullptr) {
  apl_sparse_plan* plan = nullptr;
  std::array<char, 200> buffer{};
  apl_sparse_plan_parse(text.data(), text.size(), &plan, buffer.data(), buffer.size());
  if (message) *message = buffer.data();
  return PlanPointer(plan);
}

inline PlanPointer builtin_plan(const sparse::Csr& matrix) {
  const apl_sparse_csr csr = apl::csr_view(matrix);
  apl_sparse_plan* plan = nullptr;
  apl_sparse_plan_builtin(&csr, &plan);
  return PlanPointer(plan);
}

inline TilesPointer pack(const sparse::Csr& matrix, const apl_sparse_plan& plan) {
  const apl_sparse_csr csr = apl::csr_view(matrix);
  apl_sparse_tiles* tiles = nullptr;
  apl_sparse_pack(&csr, &plan, &tiles);
  return TilesPointer(tiles);
}

struct Place {
  std::int64_t row, column;
};

// Where each element of each tile says that it is; sources of -1 are left out.
template <class See>
void for_elements(const apl_sparse_tiles& t, const See& see) {
  for (std::int64_t k = 0; k < t.blocks; ++k) {
    const apl_sparse_block& b = t.block[k];
    for (std::int64_t step = 0; step < b.steps; ++step)
      for (std::int64_t i = 0; i < b.height; ++i)
        for (std::int64_t j = 0; j < APL_SPARSE_STEP; ++j) {
          const std::int32_t source = t.block_source[b.first_element + (step * b.height + i) * APL_SPARSE_STEP + j];
          const std::int32_t column = t.block_column[(b.first_step + step) * APL_SPARSE_STEP + j];
          CHECK(column >= 0);
          CHECK(column < t.columns);
          if (source >= 0) see(source, Place{t.row_order ? t.row_order[b.position + i] : b.position + i, column});
        }
  }
  for (std::int64_t k = 0; k < t.ell_tiles; ++k) {
    const apl_sparse_ell& l = t.ell_tile[k];
    for (std::int64_t n = 0; n < std::int64_t{l.ell_rows} * l.width; ++n)
      if (const std::int32_t source = t.ell_source[l.first_element + n]; source >= 0)
        see(source, Place{t.ell_row[l.first_ell_row + n / l.width], t.ell_column[l.first_element + n]});
  }
  std::int64_t in_segments = 0;
  for (std::int64_t k = 0; k < t.segments; ++k)
    for (std::int64_t n = t.segment[k].first; n < t.segment[k].first + t.segment[k].count; ++n, ++in_segments)
      see(t.segment_source[n], Place{t.segment_row[n], t.segment_column[n]});
  CHECK(in_segments == t.segment_elements);
}

inline void check_tiles(const sparse::Csr& m, const apl_sparse_tiles& tiles) {
  std::vector<int> seen(static_cast<std::size_t>(m.nonzeros()));
  bool right = true;
  for_elements(tiles, [&](std::int32_t source, Place place) {
    ++seen[static_cast<std::size_t>(source)];
    right = right && m.row_start[static_cast<std::size_t>(place.row)] <= source &&
            source < m.row_start[static_cast<std::size_t>(place.row) + 1] &&
            m.column[static_cast<std::size_t>(source)] == place.column;
  });
  CHECK(right);
  CHECK(seen == std::vector<int>(seen.size(), 1));
}

inline void check_products(const sparse::Csr& m, const apl_sparse_tiles& tiles, std::int64_t dense, std::int64_t part) {
  std::mt19937_64 random(3);
  const auto some = [&](std::int64_t count) {
    std::vector<double> values(static_cast<std::size_t>(count));
    for (double& value : values) value = static_cast<double>(random() % 9) - 4;
    return values;
  };
  const std::vector<double> b = some(m.columns * dense), x = some(m.rows * dense);
  std::vector<double> c(static_cast<std::size_t>(m.rows * dense), 777), wanted(c.size()), samples, sampled;
  for (std::int64_t row = 0, k = 0; row < m.rows; ++row)
    for (const std::int32_t column : m.row(row)) {
      const double value = m.values[static_cast<std::size_t>(k++)];
      double sum = 0;
      for (std::int64_t j = 0; j < dense; ++j) {
        wanted[static_cast<std::size_t>(row * dense + j)] += value * b[static_cast<std::size_t>(column * dense + j)];
        sum += x[static_cast<std::size_t>(row * dense + j)] * b[static_cast<std::size_t>(column * dense + j)];
      }
      samples.push_back(value * sum);
    }
  apl_sparse_spmm_f64(&tiles, m.values.data(), b.data(), dense, part, c.data());
  CHECK(c == wanted);
  sampled.assign(samples.size(), 777);
  apl_sparse_sddmm_f64(&tiles, m.values.data(), x.data(), b.data(), dense, sampled.data());
  CHECK(sampled == samples);
  const std::vector<float> values(m.values.begin(), m.values.end()), b32(b.begin(), b.end()), x32(x.begin(), x.end());
  std::vector<float> c32(c.size(), 777), sampled32(samples.size(), 777);
  apl_sparse_spmm_f32(&tiles, values.data(), b32.data(), dense, part, c32.data());
  apl_sparse_sddmm_f32(&tiles, values.data(), x32.data(), b32.data(), dense, sampled32.data());
  CHECK(std::equal(c.begin(), c.end(), c32.begin()));
  CHECK(std::equal(samples.begin(), samples.end(), sampled32.begin()));
}

}  // namespace apl::sparse_test
