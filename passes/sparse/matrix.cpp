// Compressed rows from other forms. Sorting is by counting, so that the time is linear in the number of entries; rows
// whose columns rise already are left as they are.
#include "passes/sparse/matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "passes/sparse/parallel.h"

namespace apl::sparse {
namespace {

constexpr std::int64_t kRowPiece = 4096;

Diagnostic matrix_error(std::string message) { return make_error(Code::run_argument, {}, std::move(message)); }

Status check_sizes(std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (rows < 0 || columns < 0) return matrix_error(fmt::format("a matrix of {} by {}", rows, columns));
  if (rows > kMost || columns > kMost)
    return make_error(Code::unsupported_construct, {},
                      fmt::format("a matrix of {} by {}: indices have 32 bits", rows, columns));
  return Unit{};
}

bool strictly_rising(std::span<const std::int32_t> columns) {
  for (std::size_t k = 1; k < columns.size(); ++k)
    if (columns[k - 1] >= columns[k]) return false;
  return true;
}

// Sorts one row in place and adds up what stands at one position; the row's new length.
std::int64_t tidy_row(std::int32_t* columns, double* values, std::int64_t length,
                      std::vector<std::pair<std::int32_t, double>>& entries) {
  const auto count = static_cast<std::size_t>(length);
  if (strictly_rising({columns, count})) return length;
  if (!values) {
    std::sort(columns, columns + length);
    return std::unique(columns, columns + length) - columns;
  }
  entries.resize(count);
  for (std::size_t k = 0; k < count; ++k) entries[k] = {columns[k], values[k]};
  // Stable: the sum of several does not depend on the sort.
  std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::int64_t kept = 0;
  for (std::size_t k = 0; k < count; ++k) {
    if (kept > 0 && columns[kept - 1] == entries[k].first) {
      values[kept - 1] += entries[k].second;
    } else {
      columns[kept] = entries[k].first;
      values[kept++] = entries[k].second;
    }
  }
  return kept;
}

// Rows in order from rows whose entries are in any order and may stand twice.
void tidy(Csr& matrix) {
  std::vector<std::int64_t> kept(static_cast<std::size_t>(matrix.rows));
  const bool values = !matrix.values.empty();
  in_pieces(matrix.rows, kRowPiece, 0, [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::pair<std::int32_t, double>> entries;
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t start = matrix.row_start[static_cast<std::size_t>(row)];
      kept[static_cast<std::size_t>(row)] = tidy_row(
          matrix.column.data() + start, values ? matrix.values.data() + start : nullptr, matrix.length(row), entries);
    }
  });
  if (std::accumulate(kept.begin(), kept.end(), std::int64_t{0}) == matrix.nonzeros()) return;
  std::int64_t to = 0;
  for (std::size_t row = 0; row < kept.size(); ++row) {
    const std::int64_t from = matrix.row_start[row];
    matrix.row_start[row] = to;
    std::copy_n(matrix.column.begin() + from, kept[row], matrix.column.begin() + to);
    if (values) std::copy_n(matrix.values.begin() + from, kept[row], matrix.values.begin() + to);
    to += kept[row];
  }
  matrix.row_start.back() = to;
  matrix.column.resize(static_cast<std::size_t>(to));
  if (values) matrix.values.resize(static_cast<std::size_t>(to));
}

}  // namespace

Csr compress(std::int64_t rows, std::int64_t columns, std::vector<Coo> parts, bool values) {
  Csr matrix{rows, columns, std::vector<std::int64_t>(static_cast<std::size_t>(rows) + 1), {}, {}};
  for (const Coo& part : parts)
    for (const std::int32_t row : part.row) ++matrix.row_start[static_cast<std::size_t>(row) + 1];
  std::partial_sum(matrix.row_start.begin(), matrix.row_start.end(), matrix.row_start.begin());
  matrix.column.resize(static_cast<std::size_t>(matrix.row_start.back()));
  if (values) matrix.values.resize(matrix.column.size());
  std::vector<std::int64_t> next(matrix.row_start.begin(), matrix.row_start.end() - 1);
  for (Coo& part : parts) {
    for (std::size_t k = 0; k < part.row.size(); ++k) {
      const auto at = static_cast<std::size_t>(next[static_cast<std::size_t>(part.row[k])]++);
      matrix.column[at] = part.column[k];
      if (values) matrix.values[at] = part.value[k];
    }
    part = {};
  }
  tidy(matrix);
  return matrix;
}

Result<Csr> from_coo(const Coo& entries) {
  if (const Status sizes = check_sizes(entries.rows, entries.columns); !sizes) return sizes.error();
  if (entries.row.size() != entries.column.size() ||
      (!entries.value.empty() && entries.value.size() != entries.row.size()))
    return matrix_error(fmt::format("{} rows, {} columns and {} values of entries", entries.row.size(),
                                    entries.column.size(), entries.value.size()));
  for (std::size_t k = 0; k < entries.row.size(); ++k)
    if (entries.row[k] < 0 || entries.row[k] >= entries.rows || entries.column[k] < 0 ||
        entries.column[k] >= entries.columns)
      return matrix_error(fmt::format("entry {} is at ({}, {}) of a {} by {} matrix", k, entries.row[k],
                                      entries.column[k], entries.rows, entries.columns));
  return compress(entries.rows, entries.columns, {entries}, !entries.value.empty());
}

Result<Csr> from_csr(std::int64_t rows, std::int64_t columns, std::vector<std::int64_t> row_start,
                     std::vector<std::int32_t> column, std::vector<double> value) {
  if (const Status sizes = check_sizes(rows, columns); !sizes) return sizes.error();
  if (static_cast<std::int64_t>(row_start.size()) != rows + 1 || row_start.front() != 0 ||
      row_start.back() != static_cast<std::int64_t>(column.size()))
    return matrix_error(
        fmt::format("the starts of {} rows must be {} numbers from 0 to {}", rows, rows + 1, column.size()));
  if (!value.empty() && value.size() != column.size())
    return matrix_error(fmt::format("{} values for {} non-zeros", value.size(), column.size()));
  for (std::size_t row = 0; row + 1 < row_start.size(); ++row)
    if (row_start[row] > row_start[row + 1]) return matrix_error(fmt::format("row {} ends before it starts", row));
  for (std::size_t k = 0; k < column.size(); ++k)
    if (column[k] < 0 || column[k] >= columns)
      return matrix_error(fmt::format("column {} of non-zero {} in a matrix of {} columns", column[k], k, columns));
  Csr matrix{rows, columns, std::move(row_start), std::move(column), std::move(value)};
  tidy(matrix);
  return matrix;
}

Result<Csr> from_csc(std::int64_t rows, std::int64_t columns, std::vector<std::int64_t> column_start,
                     std::vector<std::int32_t> row, std::vector<double> value) {
  auto other = from_csr(columns, rows, std::move(column_start), std::move(row), std::move(value));
  if (!other) {
    Diagnostic error = other.error();
    error.message = "transposed: " + error.message;
    return error;
  }
  return transpose(*other);
}

Result<Csr> from_dense(std::int64_t rows, std::int64_t columns, std::span<const double> elements) {
  if (const Status sizes = check_sizes(rows, columns); !sizes) return sizes.error();
  if (static_cast<std::int64_t>(elements.size()) != rows * columns)
    return matrix_error(fmt::format("{} elements of a {} by {} matrix", elements.size(), rows, columns));
  Csr matrix{rows, columns, {0}, {}, {}};
  for (std::int64_t row = 0, k = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column, ++k) {
      if (elements[static_cast<std::size_t>(k)] == 0) continue;
      matrix.column.push_back(static_cast<std::int32_t>(column));
      matrix.values.push_back(elements[static_cast<std::size_t>(k)]);
    }
    matrix.row_start.push_back(matrix.nonzeros());
  }
  return matrix;
}

Csr transpose(const Csr& matrix) {
  Csr other{
      matrix.columns, matrix.rows, std::vector<std::int64_t>(static_cast<std::size_t>(matrix.columns) + 1), {}, {}};
  for (const std::int32_t column : matrix.column) ++other.row_start[static_cast<std::size_t>(column) + 1];
  std::partial_sum(other.row_start.begin(), other.row_start.end(), other.row_start.begin());
  other.column.resize(matrix.column.size());
  other.values.resize(matrix.values.size());
  std::vector<std::int64_t> next(other.row_start.begin(), other.row_start.end() - 1);
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    for (std::int64_t k = matrix.row_start[static_cast<std::size_t>(row)];
         k < matrix.row_start[static_cast<std::size_t>(row) + 1]; ++k) {
      const auto from = static_cast<std::size_t>(k);
      const auto to = static_cast<std::size_t>(next[static_cast<std::size_t>(matrix.column[from])]++);
      other.column[to] = static_cast<std::int32_t>(row);
      if (!matrix.values.empty()) other.values[to] = matrix.values[from];
    }
  }
  return other;
}

namespace {

std::uint64_t mix_hash(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

}  // namespace

std::uint64_t pattern_hash(const Csr& matrix) {
  // A sum over rows: rows are hashed in any order.
  std::atomic<std::uint64_t> sum = 0;
  in_pieces(matrix.rows, kRowPiece, 0, [&](std::int64_t begin, std::int64_t end) {
    std::uint64_t part = 0;
    for (std::int64_t row = begin; row < end; ++row) {
      std::uint64_t hash = static_cast<std::uint64_t>(row) + 1;
      for (const std::int32_t column : matrix.row(row))
        hash = (hash ^ static_cast<std::uint32_t>(column)) * 0x9E3779B97F4A7C15U + (hash >> 29);
      part += mix_hash(hash);
    }
    sum += part;
  });
  return mix_hash(mix_hash(static_cast<std::uint64_t>(matrix.rows) + 1) +
                  3 * mix_hash(static_cast<std::uint64_t>(matrix.columns) + 2) + sum);
}

}  // namespace apl::sparse
