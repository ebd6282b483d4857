// Sparse matrices as compressed rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace apl {

// Columns rise within a row, nothing stands twice. `Values` holds one number a non-zero: those of an element type
// (HostCsr), doubles (sparse::Csr), or none (CsrPattern).
template <class Values>
struct CompressedRows {
  std::int64_t rows = 0, columns = 0;         // both below 2^31
  std::vector<std::int64_t> row_start = {0};  // rows + 1 of them
  std::vector<std::int32_t> column;
  Values values;

  std::int64_t nonzeros() const { return static_cast<std::int64_t>(column.size()); }
  std::int64_t length(std::int64_t row) const {
    return row_start[static_cast<std::size_t>(row) + 1] - row_start[static_cast<std::size_t>(row)];
  }
  std::span<const std::int32_t> row(std::int64_t row) const {
    return {column.data() + row_start[static_cast<std::size_t>(row)], static_cast<std::size_t>(length(row))};
  }
  bool operator==(const CompressedRows&) const = default;
};

struct NoValues {
  bool operator==(const NoValues&) const = default;
};
using CsrPattern = CompressedRows<NoValues>;

}  // namespace apl
