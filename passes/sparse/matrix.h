// Sparse matrices of doubles, made from other forms.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/csr.h"
#include "ir/diagnostic.h"

namespace apl::sparse {

using Csr = CompressedRows<std::vector<double>>;  // values may be missing: the pattern alone

// Entries in any order; of several at one position the sum counts. Explicit zeros are non-zeros like others.
struct Coo {
  std::int64_t rows = 0, columns = 0;
  std::vector<std::int32_t> row, column;
  std::vector<double> value;  // as many, or none: the pattern alone
};

// Each checks all that it is given: sizes, indices, lengths that do not fit together (run.argument).
Result<Csr> from_coo(const Coo& entries);
Result<Csr> from_csr(std::int64_t rows, std::int64_t columns, std::vector<std::int64_t> row_start,
                     std::vector<std::int32_t> column, std::vector<double> value);
Result<Csr> from_csc(std::int64_t rows, std::int64_t columns, std::vector<std::int64_t> column_start,
                     std::vector<std::int32_t> row, std::vector<double> value);
// Row-major; what is 0 is left out.
Result<Csr> from_dense(std::int64_t rows, std::int64_t columns, std::span<const double> elements);

// The entries of all parts together, whose indices are known to be right. Parts are emptied on the way: large matrices
// are not held twice.
Csr compress(std::int64_t rows, std::int64_t columns, std::vector<Coo> parts, bool values);

Csr transpose(const Csr& matrix);

// The key of a plan: sizes and positions of the non-zeros. runtime/sparse computes the same number.
std::uint64_t pattern_hash(const Csr& matrix);

}  // namespace apl::sparse
