#include "aplc/sparse/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

namespace aplc::sparse {
namespace {

constexpr std::int64_t kMostCells = 160;
constexpr int kSide = 640, kBar = 120, kShades = 8;
// Block, ELL, 1-D; a pattern without tiles is black.
constexpr std::array<const char*, 4> kColours = {"#1a7f37", "#0969da", "#bc4c00", "#000000"};
constexpr std::array<const char*, 3> kNames = {"block", "ell", "1d"};

struct Cells {
  std::int64_t rows, columns;  // cells
  std::int64_t height, width;  // of a cell, in rows and columns
  std::vector<std::array<std::int64_t, 4>> count;
  std::vector<std::int64_t> in_row;

  explicit Cells(const apl::sparse::Csr& m)
      : rows(std::clamp<std::int64_t>(m.rows, 1, kMostCells)),
        columns(std::clamp<std::int64_t>(m.columns, 1, kMostCells)),
        height(std::max<std::int64_t>(1, (m.rows + rows - 1) / rows)),
        width(std::max<std::int64_t>(1, (m.columns + columns - 1) / columns)),
        count(static_cast<std::size_t>(rows * columns)),
        in_row(static_cast<std::size_t>(rows)) {}

  void add(std::int64_t position, std::int64_t column, std::size_t kind) {
    ++count[static_cast<std::size_t>(position / height * columns + column / width)][kind];
    ++in_row[static_cast<std::size_t>(position / height)];
  }
};

// The format that has each non-zero.
std::vector<std::uint8_t> formats_of(const apl_sparse_tiles& t) {
  std::vector<std::uint8_t> format(static_cast<std::size_t>(t.nonzeros), 3);
  const auto mark = [&](const std::int32_t* sources, std::int64_t count, std::uint8_t kind) {
    for (std::int64_t k = 0; k < count; ++k)
      if (sources[k] >= 0) format[static_cast<std::size_t>(sources[k])] = kind;
  };
  mark(t.block_source, t.block_elements, 0);
  mark(t.list_source, t.list_elements, 1);
  mark(t.run_source, t.run_elements, 2);
  return format;
}

// Cells of one colour and darkness are one path, side by side in one rectangle.
std::map<std::pair<std::size_t, int>, std::string> shades_of(const Cells& cells) {
  const auto all = [](const std::array<std::int64_t, 4>& count) { return count[0] + count[1] + count[2] + count[3]; };
  std::int64_t most = 1;
  for (const auto& count : cells.count) most = std::max(most, all(count));
  std::map<std::pair<std::size_t, int>, std::string> paths;
  const auto shade = [&](std::int64_t i, std::int64_t j) {
    const auto& count = cells.count[static_cast<std::size_t>(i * cells.columns + j)];
    // The square root keeps single non-zeros visible beside full cells.
    const double dark = std::sqrt(static_cast<double>(all(count)) / static_cast<double>(most));
    return std::pair(static_cast<std::size_t>(std::max_element(count.begin(), count.end()) - count.begin()),
                     all(count) == 0 ? 0 : std::max(1, static_cast<int>(std::lround(dark * kShades))));
  };
  for (std::int64_t i = 0; i < cells.rows; ++i)
    for (std::int64_t j = 0; j < cells.columns;) {
      const auto here = shade(i, j);
      std::int64_t end = j + 1;
      while (end < cells.columns && shade(i, end) == here) ++end;
      if (here.second > 0) paths[here] += fmt::format("M{} {}h{}v1h-{}z", j, i, end - j, end - j);
      j = end;
    }
  return paths;
}

}  // namespace

std::string picture(const apl::sparse::Csr& matrix, const apl_sparse_tiles* tiles) {
  Cells cells(matrix);
  const std::vector<std::uint8_t> format = tiles ? formats_of(*tiles) : std::vector<std::uint8_t>();
  for (std::int64_t position = 0; position < matrix.rows; ++position) {
    const std::int64_t row = tiles && tiles->row_order ? tiles->row_order[position] : position;
    auto k = static_cast<std::size_t>(matrix.row_start[static_cast<std::size_t>(row)]);
    for (const std::int32_t column : matrix.row(row)) cells.add(position, column, format.empty() ? 3 : format[k++]);
  }
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"-10 -10 {} {}\" font-family=\"sans-serif\" "
      "font-size=\"14\">\n<rect width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#888\"/>\n",
      kSide + kBar + 40, kSide + 50, kSide, kSide);
  const double h = static_cast<double>(kSide) / static_cast<double>(cells.rows);
  svg += fmt::format("<g transform=\"scale({:.4f} {:.4f})\">\n",
                     static_cast<double>(kSide) / static_cast<double>(cells.columns), h);
  for (const auto& [shade, path] : shades_of(cells))
    fmt::format_to(std::back_inserter(svg), "<path fill=\"{}\" fill-opacity=\"{:.2f}\" d=\"{}\"/>\n",
                   kColours[shade.first], static_cast<double>(shade.second) / kShades, path);
  svg += "</g>\n";
  const std::int64_t longest = std::max<std::int64_t>(1, *std::max_element(cells.in_row.begin(), cells.in_row.end()));
  for (std::int64_t i = 0; i < cells.rows; ++i)
    fmt::format_to(
        std::back_inserter(svg), "<rect x=\"{}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"#888\"/>\n",
        kSide + 10, static_cast<double>(i) * h,
        kBar * static_cast<double>(cells.in_row[static_cast<std::size_t>(i)]) / static_cast<double>(longest), h);
  svg += fmt::format("<text x=\"0\" y=\"{}\">{} by {}, {} non-zeros</text>\n", kSide + 25, matrix.rows, matrix.columns,
                     matrix.nonzeros());
  for (std::size_t kind = 0; tiles && kind < kNames.size(); ++kind)
    svg += fmt::format("<text x=\"{}\" y=\"{}\" fill=\"{}\">{}</text>\n", kSide - 150 + 60 * static_cast<int>(kind),
                       kSide + 25, kColours[kind], kNames[kind]);
  return svg + "</svg>\n";
}

}  // namespace aplc::sparse
