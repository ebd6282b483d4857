// .smtx files: three lines of numbers. A number takes two bytes at least, so what the first line says of lengths is
// checked against the text's before anything is allocated.
#include <fmt/format.h>

#include <algorithm>

#include "passes/sparse/read.h"
#include "passes/sparse/scan.h"

namespace apl::sparse {
namespace {

Diagnostic wrong_smtx(std::string_view text, const char* at, std::string message) {
  return make_error(Code::syntax_error, location_in(text, at), std::move(message));
}

void skip_separators(Scanner& scan) {
  while (scan.at != scan.end && std::string_view(" \t\r\n,").find(*scan.at) != std::string_view::npos) ++scan.at;
}

bool next_number(Scanner& scan, std::int64_t& number) {
  skip_separators(scan);
  return scan.natural(number);
}

}  // namespace

Result<Csr> read_smtx(std::string_view text, const ReadOptions&) {
  Scanner scan{text.data(), text.data() + text.size()};
  std::int64_t rows = 0, columns = 0, nonzeros = 0;
  if (!next_number(scan, rows) || !next_number(scan, columns) || !next_number(scan, nonzeros))
    return wrong_smtx(text, scan.at, "expected rows, columns and the number of non-zeros");
  if (!scan.line_ends()) return wrong_smtx(text, scan.at, "more than three numbers on the first line");
  const std::int64_t capacity = (scan.end - scan.at) / 2;
  if (rows + 1 > capacity || nonzeros > capacity - rows - 1)
    return wrong_smtx(text, text.data(),
                      fmt::format("{} rows and {} non-zeros do not fit in {} bytes", rows, nonzeros, text.size()));
  if (columns > believable_size(text.size()))
    return make_error(Code::unsupported_construct, location_in(text, text.data()),
                      fmt::format("{} columns are too many for a file of {} bytes", columns, text.size()));
  std::vector<std::int64_t> row_start(static_cast<std::size_t>(rows) + 1);
  for (std::size_t row = 0; row < row_start.size(); ++row) {
    if (!next_number(scan, row_start[row])) return wrong_smtx(text, scan.at, "expected the start of a row");
    if (row_start[row] > nonzeros || row_start[row] < (row == 0 ? 0 : row_start[row - 1]))
      return wrong_smtx(text, scan.at, "a row ends before it starts, or after the last non-zero");
  }
  if (row_start.front() != 0 || row_start.back() != nonzeros)
    return wrong_smtx(text, scan.at,
                      fmt::format("the starts of rows go from {} to {}, not from 0 to {}", row_start.front(),
                                  row_start.back(), nonzeros));
  std::vector<std::int32_t> column(static_cast<std::size_t>(nonzeros));
  for (std::int32_t& index : column) {
    std::int64_t number = 0;
    if (!next_number(scan, number)) return wrong_smtx(text, scan.at, "expected a column");
    if (number >= columns) return wrong_smtx(text, scan.at, "the column is not in the matrix");
    index = static_cast<std::int32_t>(number);
  }
  skip_separators(scan);
  if (scan.at != scan.end) return wrong_smtx(text, scan.at, "more columns than non-zeros");
  return from_csr(rows, columns, std::move(row_start), std::move(column), {});
}

std::string to_smtx(const Csr& matrix) {
  return fmt::format("{}, {}, {}\n{}\n{}\n", matrix.rows, matrix.columns, matrix.nonzeros(),
                     fmt::join(matrix.row_start, " "), fmt::join(matrix.column, " "));
}

}  // namespace apl::sparse
