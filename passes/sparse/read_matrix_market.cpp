// Matrix Market files. The body is cut into pieces at line ends, which threads read on their own; line numbers are
// counted only for a message.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "passes/sparse/parallel.h"
#include "passes/sparse/read.h"
#include "passes/sparse/scan.h"

namespace apl::sparse {

Location location_in(std::string_view text, const char* at) {
  const std::string_view before = text.substr(0, static_cast<std::size_t>(at - text.data()));
  const std::size_t start = before.rfind('\n');
  const auto line = static_cast<std::uint32_t>(std::count(before.begin(), before.end(), '\n') + 1);
  const auto column = static_cast<std::uint32_t>(before.size() - (start == std::string_view::npos ? 0 : start + 1) + 1);
  return {line, column, line, column};
}

namespace {

enum class Field : std::uint8_t { real, integer, pattern };
enum class Symmetry : std::uint8_t { general, symmetric, skew };

struct Header {
  bool dense = false;
  Field field = Field::real;
  Symmetry symmetry = Symmetry::general;
  std::int64_t rows = 0, columns = 0, entries = 0;
  const char* size_line = nullptr;
  const char* body = nullptr;
};

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return result;
}

Diagnostic wrong_at(std::string_view text, const char* at, std::string message, Code code = Code::syntax_error) {
  return make_error(code, location_in(text, at), std::move(message));
}

std::optional<Diagnostic> read_banner(std::string_view text, Header& header, Scanner& scan) {
  std::array<std::string, 5> words;
  std::array<const char*, 5> starts{};
  for (std::size_t k = 0; k < words.size(); ++k) {
    scan.blanks();
    starts[k] = scan.at;
    while (scan.at != scan.end && std::string_view(" \t\r\n").find(*scan.at) == std::string_view::npos)
      words[k] += *scan.at++;
    words[k] = lower_case(words[k]);
  }
  if (words[0] != "%%matrixmarket" && words[0] != "%matrixmarket")
    return wrong_at(text, starts[0], "no Matrix Market file: its first word must be %%MatrixMarket");
  if (words[1] != "matrix") return wrong_at(text, starts[1], fmt::format("`{}` is not `matrix`", words[1]));
  if (words[2] != "coordinate" && words[2] != "array")
    return wrong_at(text, starts[2], fmt::format("`{}` is neither `coordinate` nor `array`", words[2]));
  header.dense = words[2] == "array";
  if (words[3] == "complex")
    return wrong_at(text, starts[3], "complex matrices are not supported", Code::unsupported_construct);
  if (words[3] != "real" && words[3] != "double" && words[3] != "integer" && words[3] != "pattern")
    return wrong_at(text, starts[3], fmt::format("`{}` is none of real, integer, pattern", words[3]));
  header.field = words[3] == "pattern" ? Field::pattern : words[3] == "integer" ? Field::integer : Field::real;
  if (words[4] == "hermitian")
    return wrong_at(text, starts[4], "complex matrices are not supported", Code::unsupported_construct);
  if (words[4] != "general" && words[4] != "symmetric" && words[4] != "skew-symmetric")
    return wrong_at(text, starts[4], fmt::format("`{}` is none of general, symmetric, skew-symmetric", words[4]));
  header.symmetry = words[4] == "symmetric"        ? Symmetry::symmetric
                    : words[4] == "skew-symmetric" ? Symmetry::skew
                                                   : Symmetry::general;
  if (header.dense && header.field == Field::pattern)
    return wrong_at(text, starts[3], "an array has values, so it is no pattern");
  if (header.dense && header.symmetry != Symmetry::general)
    return wrong_at(text, starts[4], "symmetric arrays are not supported", Code::unsupported_construct);
  if (!scan.line_ends()) return wrong_at(text, scan.at, "more than five words on the first line");
  return std::nullopt;
}

std::optional<Diagnostic> read_header(std::string_view text, Header& header) {
  Scanner scan{text.data(), text.data() + text.size()};
  if (auto error = read_banner(text, header, scan)) return error;
  while (scan.at != scan.end && (scan.line_ends() || *scan.at == '%')) {
    scan.at = std::find(scan.at, scan.end, '\n');
    if (scan.at != scan.end) ++scan.at;
  }
  header.size_line = scan.at;
  const bool sizes = scan.natural(header.rows) && scan.natural(header.columns);
  if (!sizes || (!header.dense && !scan.natural(header.entries)) || !scan.line_ends())
    return wrong_at(text, scan.at,
                    header.dense ? "expected rows and columns" : "expected rows, columns and the number of entries");
  if (header.symmetry != Symmetry::general && header.rows != header.columns)
    return wrong_at(text, header.size_line, fmt::format("a symmetric matrix of {} by {}", header.rows, header.columns));
  const std::int64_t most =
      std::min<std::int64_t>(std::numeric_limits<std::int32_t>::max(), believable_size(text.size()));
  if (header.rows > most || header.columns > most)
    return wrong_at(
        text, header.size_line,
        fmt::format("{} by {} is too large a matrix for a file of {} bytes", header.rows, header.columns, text.size()),
        Code::unsupported_construct);
  header.body = scan.at;
  return std::nullopt;
}

struct Piece {
  const char *begin, *end;
  Coo entries;
  std::int64_t count = 0;
  const char* error_at = nullptr;
  const char* error = nullptr;
};

void read_entries(Piece& piece, const Header& header, bool values) {
  Scanner scan{piece.begin, piece.end};
  const auto fail = [&](const char* message) {
    piece.error_at = scan.at;
    piece.error = message;
  };
  const auto bytes = static_cast<std::size_t>(piece.end - piece.begin);
  const std::size_t expected = std::min(static_cast<std::size_t>(header.entries), bytes / 4 + 1);
  piece.entries.row.reserve(expected);
  piece.entries.column.reserve(expected);
  if (values) piece.entries.value.reserve(expected);
  for (;;) {
    while (scan.at != scan.end && scan.line_ends() && scan.at != scan.end) ++scan.at;
    if (scan.at == scan.end) return;
    std::int64_t row = 0, column = 0;
    double value = 1;
    const char* line = scan.at;
    if (!scan.natural(row) || !scan.natural(column)) return fail("expected a row and a column");
    if (header.field == Field::integer) {
      scan.blanks();
      const char* first = scan.at;
      if (!scan.real(value)) return fail("expected a value");
      if (std::string_view(first, static_cast<std::size_t>(scan.at - first)).find_first_not_of("+-0123456789") !=
          std::string_view::npos) {
        scan.at = first;
        return fail("expected an integer");
      }
    } else if (header.field == Field::real && !scan.real(value)) {
      return fail("expected a value");
    }
    if (!scan.line_ends()) return fail("more on the line than an entry has");
    const char* after = scan.at;
    scan.at = line;
    if (row < 1 || row > header.rows) return fail("the row is not in the matrix");
    if (column < 1 || column > header.columns) return fail("the column is not in the matrix");
    if (header.symmetry != Symmetry::general && row < column)
      return fail("an entry above the diagonal of a symmetric matrix");
    if (header.symmetry == Symmetry::skew && row == column) return fail("an entry on a skew-symmetric diagonal");
    scan.at = after;
    ++piece.count;
    const auto add = [&](std::int64_t r, std::int64_t c, double v) {
      piece.entries.row.push_back(static_cast<std::int32_t>(r - 1));
      piece.entries.column.push_back(static_cast<std::int32_t>(c - 1));
      if (values) piece.entries.value.push_back(v);
    };
    add(row, column, value);
    if (header.symmetry != Symmetry::general && row != column)
      add(column, row, header.symmetry == Symmetry::skew ? -value : value);
  }
}

Result<Csr> read_coordinates(std::string_view text, const Header& header, const ReadOptions& options) {
  const char* const end = text.data() + text.size();
  // Small files are read in one piece.
  const auto count = std::clamp<std::int64_t>((end - header.body) >> 16, 1, 8L * thread_count(options.threads));
  std::vector<Piece> pieces;
  const char* begin = header.body;
  for (std::int64_t k = 1; k <= count; ++k) {
    const char* stop = std::max(begin, header.body + (end - header.body) / count * k);
    stop = k == count ? end : std::find(stop, end, '\n');
    pieces.push_back({begin, stop, {}, 0, nullptr, nullptr});
    begin = stop;
  }
  const bool values = options.values && header.field != Field::pattern;
  in_pieces(count, 1, options.threads,
            [&](std::int64_t k, std::int64_t) { read_entries(pieces[static_cast<std::size_t>(k)], header, values); });
  std::int64_t found = 0;
  std::vector<Coo> parts;
  for (Piece& piece : pieces) {
    if (piece.error) return wrong_at(text, piece.error_at, piece.error);
    found += piece.count;
    parts.push_back(std::move(piece.entries));
  }
  if (found != header.entries)
    return wrong_at(text, header.size_line, fmt::format("{} entries announced, {} found", header.entries, found));
  return compress(header.rows, header.columns, std::move(parts), values);
}

Result<Csr> read_array(std::string_view text, const Header& header, const ReadOptions& options) {
  Scanner scan{header.body, text.data() + text.size()};
  Coo entries;
  std::int64_t found = 0;
  for (;; ++found) {
    while (scan.at != scan.end && scan.line_ends() && scan.at != scan.end) ++scan.at;
    if (scan.at == scan.end) break;
    double value = 0;
    if (!scan.real(value)) return wrong_at(text, scan.at, "expected a value");
    if (found >= header.rows * header.columns) return wrong_at(text, scan.at, "more values than the matrix has");
    if (value == 0) continue;
    entries.row.push_back(static_cast<std::int32_t>(found % header.rows));
    entries.column.push_back(static_cast<std::int32_t>(found / header.rows));
    if (options.values) entries.value.push_back(value);
  }
  if (found != header.rows * header.columns)
    return wrong_at(text, header.size_line,
                    fmt::format("{} values announced, {} found", header.rows * header.columns, found));
  std::vector<Coo> parts;
  parts.push_back(std::move(entries));
  return compress(header.rows, header.columns, std::move(parts), options.values);
}

}  // namespace

Result<Csr> read_matrix_market(std::string_view text, const ReadOptions& options) {
  Header header;
  if (auto error = read_header(text, header)) return std::move(*error);
  return header.dense ? read_array(text, header, options) : read_coordinates(text, header, options);
}

Result<Csr> read_matrix(std::string_view text, const ReadOptions& options) {
  return text.starts_with('%') ? read_matrix_market(text, options) : read_smtx(text, options);
}

std::string to_matrix_market(const Csr& matrix) {
  const bool values = !matrix.values.empty();
  fmt::memory_buffer out;
  fmt::format_to(std::back_inserter(out), "%%MatrixMarket matrix coordinate {} general\n{} {} {}\n",
                 values ? "real" : "pattern", matrix.rows, matrix.columns, matrix.nonzeros());
  for (std::int64_t row = 0, k = 0; row < matrix.rows; ++row)
    for (const std::int32_t column : matrix.row(row)) {
      fmt::format_to(std::back_inserter(out), "{} {}", row + 1, column + 1);
      if (values) fmt::format_to(std::back_inserter(out), " {}", matrix.values[static_cast<std::size_t>(k)]);
      out.push_back('\n');
      ++k;
    }
  return fmt::to_string(out);
}

}  // namespace apl::sparse
