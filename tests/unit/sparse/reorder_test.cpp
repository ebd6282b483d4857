// Orders of rows that are made without a plan.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "passes/sparse/matrix.h"
#include "runtime/sparse/csr_view.h"
#include "runtime/sparse/device_kernel.h"
#include "tests/unit/sparse/matrices.h"

namespace {

using apl::sparse::Csr;
using apl::sparse_test::h200;

// Every 16 rows have `shared` columns in common, and each `own` more; rows may be shuffled.
Csr blocks(std::int64_t rows, int shared, int own, bool is_shuffled) {
  std::mt19937 random(5);
  std::vector<std::int64_t> place(static_cast<std::size_t>(rows));
  std::iota(place.begin(), place.end(), 0);
  if (is_shuffled) std::shuffle(place.begin(), place.end(), random);
  Csr matrix{rows, rows, {0}, {}, {}};
  for (std::int64_t row = 0; row < rows; ++row) {
    std::mt19937 group(static_cast<unsigned>(place[static_cast<std::size_t>(row)] / 16 + 1));
    std::set<std::int32_t> here;
    for (int k = 0; k < shared; ++k) here.insert(static_cast<std::int32_t>(group() % static_cast<unsigned>(rows)));
    for (int k = 0; k < own; ++k) here.insert(static_cast<std::int32_t>(random() % static_cast<unsigned>(rows)));
    matrix.column.insert(matrix.column.end(), here.begin(), here.end());
    matrix.row_start.push_back(static_cast<std::int64_t>(matrix.column.size()));
  }
  return matrix;
}

using Order = std::unique_ptr<std::int32_t, decltype(&std::free)>;
Order order_of(const Csr& matrix, std::int32_t type, std::int64_t width, apl_sparse_reordering& found) {
  const apl_sparse_csr csr = apl::csr_view(matrix);
  REQUIRE(apl_sparse_reorder(&csr, &h200(), type, width, &found) == APL_SPARSE_FINE);
  return {found.order, &std::free};
}

double predicted(const Csr& matrix, const std::int32_t* order, std::int32_t type, std::int64_t width) {
  const apl_sparse_csr csr = apl::csr_view(matrix);
  apl_sparse_options options{};
  options.row_order = order;
  apl_sparse_packed* packed = nullptr;
  REQUIRE(apl_sparse_packed_make(&csr, nullptr, &h200(), type, width, &options, &packed) == APL_SPARSE_FINE);
  const double time = apl_sparse_microseconds(packed, type, width);
  apl_sparse_packed_free(packed);
  return time;
}

}  // namespace

TEST_CASE("reordering: blocks whose rows are shuffled are found again, and the product takes less by the model") {
  for (const int own : {0, 4}) {
    CAPTURE(own);
    const Csr matrix = blocks(16384, 48, own, true);
    apl_sparse_reordering found{};
    const Order order = order_of(matrix, APL_F16, 128, found);
    REQUIRE(order != nullptr);
    CHECK(found.after <= 0.85 * found.before);
    std::vector<std::int32_t> rows(order.get(), order.get() + matrix.rows);
    std::sort(rows.begin(), rows.end());
    for (std::int64_t k = 0; k < matrix.rows; ++k) REQUIRE(rows[static_cast<std::size_t>(k)] == k);
    CHECK(predicted(matrix, order.get(), APL_F16, 128) < 0.85 * predicted(matrix, nullptr, APL_F16, 128));
  }
}

TEST_CASE("reordering: rows that are as good as they are, share nothing, or are few, stay") {
  apl_sparse_reordering found{};
  CHECK(order_of(blocks(16384, 48, 0, false), APL_F16, 128, found) == nullptr);
  CHECK(found.before > 0);
  CHECK(order_of(blocks(16384, 0, 16, false), APL_F16, 128, found) == nullptr);
  CHECK(found.before > 0);
  CHECK(order_of(blocks(512, 48, 0, true), APL_F16, 128, found) == nullptr);
  CHECK(found.before == 0);  // nobody looked
}

TEST_CASE("reordering: the same matrix has the same order") {
  const Csr matrix = blocks(8192, 48, 4, true);
  apl_sparse_reordering found{};
  const Order first = order_of(matrix, APL_F16, 512, found), second = order_of(matrix, APL_F16, 512, found);
  REQUIRE(first != nullptr);
  REQUIRE(second != nullptr);
  CHECK(std::equal(first.get(), first.get() + matrix.rows, second.get()));
}
