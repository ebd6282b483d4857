// Matrices from and to files' texts.
#pragma once

#include <string>
#include <string_view>

#include "passes/sparse/matrix.h"

namespace apl::sparse {

struct ReadOptions {
  bool values = true;  // false: the pattern alone, in half the memory
  int threads = 0;     // 0: one a processor
};

// Matrix Market: `coordinate` or `array`; real, integer or pattern; general, symmetric or skew-symmetric. What is
// malformed is syntax.error at its line, complex matrices are unsupported.construct. Memory is bounded by the text's
// length, whatever its size line says.
Result<Csr> read_matrix_market(std::string_view text, const ReadOptions& options = {});

// .smtx, the format of pruned weights: "rows, columns, non-zeros", the starts of rows, columns. Patterns only.
Result<Csr> read_smtx(std::string_view text, const ReadOptions& options = {});

// Either: Matrix Market has a banner.
Result<Csr> read_matrix(std::string_view text, const ReadOptions& options = {});

std::string to_matrix_market(const Csr& matrix);
std::string to_smtx(const Csr& matrix);

}  // namespace apl::sparse
