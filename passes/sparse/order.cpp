#include "passes/sparse/order.h"

#include <algorithm>
#include <numeric>

#include "passes/sparse/parallel.h"
#include "passes/sparse/row_group.h"

namespace apl::sparse {
namespace {

constexpr std::int64_t kPiece = 1024, kMostNeighbours = 96;
constexpr int kRounds = 8;

std::uint32_t scatter_bits(std::uint32_t x) {
  x = (x ^ (x >> 16)) * 0x7FEB352DU;
  x = (x ^ (x >> 15)) * 0x846CA68BU;
  return x ^ (x >> 16);
}

// Each line of the matrix takes the commonest label of at most 96 of its elements; of equals the smallest hash.
void take_labels(const Csr& lines, const std::vector<std::uint32_t>& from, std::vector<std::uint32_t>& to,
                 int threads) {
  in_pieces(lines.rows, kPiece, threads, [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::uint32_t> labels;
    for (std::int64_t line = begin; line < end; ++line) {
      const auto elements = lines.row(line);
      if (elements.empty()) continue;
      const std::size_t stride = elements.size() / kMostNeighbours + 1;
      labels.clear();
      for (std::size_t k = 0; k < elements.size(); k += stride)
        labels.push_back(from[static_cast<std::size_t>(elements[k])]);
      std::sort(labels.begin(), labels.end());
      std::size_t most = 0;
      for (std::size_t k = 0; k < labels.size();) {
        std::size_t stop = k;
        while (stop < labels.size() && labels[stop] == labels[k]) ++stop;
        if (stop - k > most) {
          most = stop - k;
          to[static_cast<std::size_t>(line)] = labels[k];
        }
        k = stop;
      }
    }
  });
}

}  // namespace

std::vector<std::int32_t> order_by_length(const Csr& matrix) {
  std::vector<std::int32_t> order(static_cast<std::size_t>(matrix.rows));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int32_t a, std::int32_t b) { return matrix.length(a) > matrix.length(b); });
  return order;
}

std::vector<std::int32_t> order_by_labels(const Csr& matrix, int threads, const std::function<bool()>& go_on) {
  const Csr turned = [&] {  // of the pattern alone
    const Csr lines{matrix.rows, matrix.columns, matrix.row_start, matrix.column, {}};
    return transpose(lines);
  }();
  // At first the column with the smallest hash: rows with many columns in common often have the same one.
  std::vector<std::uint32_t> rows(static_cast<std::size_t>(matrix.rows), ~0U);
  for (std::int64_t row = 0; row < matrix.rows; ++row)
    for (const std::int32_t column : matrix.row(row))
      rows[static_cast<std::size_t>(row)] =
          std::min(rows[static_cast<std::size_t>(row)], scatter_bits(static_cast<std::uint32_t>(column)));
  std::vector<std::uint32_t> columns(static_cast<std::size_t>(matrix.columns), ~0U);
  for (int round = 0; round < kRounds; ++round) {
    if (go_on && !go_on()) return {};
    take_labels(turned, rows, columns, threads);
    take_labels(matrix, columns, rows, threads);
  }
  std::vector<std::int32_t> order(rows.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return rows[static_cast<std::size_t>(a)] < rows[static_cast<std::size_t>(b)];
  });
  return order;
}

Sharing column_sharing(const Csr& matrix, const std::vector<std::int32_t>& order) {
  constexpr std::int64_t kLooks = 512;
  const std::int64_t groups = (matrix.rows + kGroupRows - 1) / kGroupRows;
  RowGroup group;
  double entries = 0, eight = 0, thirty_two = 0;
  for (std::int64_t index = 0; index < groups; index += groups / kLooks + 1) {
    group.read(matrix, order, index);
    entries += static_cast<double>(group.entries);
    for (const std::uint64_t rows : group.rows) {
      for (int window = 0; window < 8; ++window) eight += (rows >> (8 * window) & 0xFF) != 0;
      thirty_two += ((rows & 0xFFFFFFFFU) != 0) + ((rows >> 32) != 0);
    }
  }
  return entries == 0 ? Sharing() : Sharing{entries / eight, entries / thirty_two};
}

}  // namespace apl::sparse
