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
// The longer side, and the shorter one at least; bars of the rows' lengths.
constexpr int kSide = 640, kLeastSide = 40, kBar = 120, kShades = 8;
constexpr double kPalest = 0.2;
// Block, ELL, 1-D; a pattern without tiles is black.
constexpr std::array<const char*, 4> kColours = {"#1a7f37", "#0969da", "#bc4c00", "#000000"};
constexpr std::array<const char*, 3> kNames = {"block", "ell", "1d"};

struct Cells {
  std::int64_t height, width;  // of a cell, in rows and columns
  std::int64_t rows, columns;  // cells
  std::vector<std::array<std::int64_t, 4>> count;
  std::vector<std::int64_t> in_row;

  explicit Cells(const apl::sparse::Csr& m)
      : height(std::max<std::int64_t>(1, (m.rows + kMostCells - 1) / kMostCells)),
        width(std::max<std::int64_t>(1, (m.columns + kMostCells - 1) / kMostCells)),
        rows(std::max<std::int64_t>(1, (m.rows + height - 1) / height)),
        columns(std::max<std::int64_t>(1, (m.columns + width - 1) / width)),
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
  mark(t.ell_source, t.ell_elements, 1);
  mark(t.segment_source, t.segment_elements, 2);
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

// Which format has which share.
std::string legend(const std::vector<std::uint8_t>& format, double y) {
  std::string text;
  int shown = 0;
  for (std::size_t kind = 0; kind < kNames.size(); ++kind) {
    const auto has = std::count(format.begin(), format.end(), static_cast<std::uint8_t>(kind));
    if (has == 0) continue;
    const double share = 100 * static_cast<double>(has) / static_cast<double>(format.size());
    const int x = 130 * shown++;
    text += fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"12\" height=\"12\" fill=\"{}\"/>\n<text x=\"{}\" y=\"{}\">{} {} "
        "%</text>\n",
        x, y - 11, kColours[kind], x + 18, y, kNames[kind], share < 0.05 ? "&lt; 0.1" : fmt::format("{:.1f}", share));
  }
  return text;
}

// How dark a cell is for how many non-zeros.
std::string density_legend(const Cells& cells, double y) {
  std::int64_t most = 0;
  for (const auto& count : cells.count) most = std::max(most, count[0] + count[1] + count[2] + count[3]);
  constexpr int kStep = 14;
  std::string text = fmt::format("<text x=\"0\" y=\"{}\" font-size=\"12\">non-zeros of a cell: 1</text>\n", y);
  constexpr int kLeft = 140;
  for (int shade = 1; shade <= kShades; ++shade)
    text += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"12\" fill-opacity=\"{:.2f}\"/>\n",
                        kLeft + (shade - 1) * kStep, y - 11, kStep, kPalest + (1 - kPalest) * shade / kShades);
  return text + fmt::format("<text x=\"{}\" y=\"{}\" font-size=\"12\">{} ({} by {} elements)</text>\n",
                            kLeft + kShades * kStep + 6, y, most, cells.height, cells.width);
}

// Where the blocks of a plan are: the cells that one touches, as far as they lie side by side, in its rows; `w` and `h`
// are those of a cell. Too many could not be told apart.
std::string outlines(const apl_sparse_tiles& t, const Cells& cells, double w, double h) {
  constexpr std::int64_t kMostBlocks = 400;
  if (t.blocks == 0 || t.blocks > kMostBlocks) return {};
  std::string path;
  std::vector<char> touched(static_cast<std::size_t>(cells.columns));
  const double row = h / static_cast<double>(cells.height);
  for (std::int64_t k = 0; k < t.blocks; ++k) {
    const apl_sparse_block& block = t.block[k];
    std::ranges::fill(touched, 0);
    for (std::int64_t c = 0; c < block.steps * APL_SPARSE_STEP; ++c) {
      const std::int32_t column = t.block_column[block.first_step * APL_SPARSE_STEP + c];
      if (column >= 0) touched[static_cast<std::size_t>(column / cells.width)] = 1;
    }
    const std::int64_t rows = std::min<std::int64_t>(block.height, t.rows - block.position);
    for (std::int64_t j = 0; j < cells.columns;) {
      std::int64_t end = j;
      while (end < cells.columns && touched[static_cast<std::size_t>(end)]) ++end;
      if (end > j)
        path += fmt::format("M{:.1f} {:.1f}h{:.1f}v{:.1f}h-{:.1f}z", static_cast<double>(j) * w,
                            static_cast<double>(block.position) * row, static_cast<double>(end - j) * w,
                            static_cast<double>(rows) * row, static_cast<double>(end - j) * w);
      j = std::max(end, j + 1);
    }
  }
  return fmt::format("<path class=\"tiles\" fill=\"none\" stroke=\"{}\" stroke-width=\"0.8\" d=\"{}\"/>\n", kColours[0],
                     path);
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
  // Sides as the matrix has them, as far as they can be seen.
  const auto longer = static_cast<double>(std::max<std::int64_t>({matrix.rows, matrix.columns, 1}));
  const auto side = [&](std::int64_t size) {
    return std::max<double>(kLeastSide, std::round(kSide * static_cast<double>(size) / longer));
  };
  const double width = side(matrix.columns), height = side(matrix.rows), left = width + 10;
  const double page = std::max<double>(left + kBar, 420);
  const double h = height / static_cast<double>(cells.rows);
  constexpr int kMargin = 50;  // of the axes
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"-{4} -{4} {0} {1}\" width=\"{0}\" height=\"{1}\" "
      "font-family=\"sans-serif\" font-size=\"14\">\n<title>Pattern of a matrix of {5} by {6} with {7} "
      "non-zeros</title>\n"
      "<rect x=\"-{4}\" y=\"-{4}\" width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n"
      "<g transform=\"scale({2:.4f} {3:.4f})\" shape-rendering=\"crispEdges\">\n",
      page + kMargin + 10, height + (tiles ? 85 : 60) + kMargin + 14, width / static_cast<double>(cells.columns), h,
      kMargin, matrix.rows, matrix.columns, matrix.nonzeros());
  for (const auto& [shade, path] : shades_of(cells))
    fmt::format_to(std::back_inserter(svg), "<path fill=\"{}\" fill-opacity=\"{:.2f}\" d=\"{}\"/>\n",
                   kColours[shade.first], kPalest + (1 - kPalest) * shade.second / kShades, path);
  svg += fmt::format("</g>\n<rect width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#888\"/>\n", width, height);
  if (tiles) svg += outlines(*tiles, cells, width / static_cast<double>(cells.columns), h);
  const std::int64_t longest = std::max<std::int64_t>(1, *std::max_element(cells.in_row.begin(), cells.in_row.end()));
  for (std::int64_t i = 0; i < cells.rows; ++i)
    fmt::format_to(std::back_inserter(svg),
                   "<rect x=\"{}\" y=\"{:.2f}\" width=\"{:.1f}\" height=\"{:.2f}\" fill=\"#888\" "
                   "shape-rendering=\"crispEdges\"/>\n",
                   left, static_cast<double>(i) * h,
                   kBar * static_cast<double>(cells.in_row[static_cast<std::size_t>(i)]) / static_cast<double>(longest),
                   h);
  // The axes, with the first and the last row and column.
  svg += fmt::format(
      "<text x=\"0\" y=\"-22\">columns</text>\n<text x=\"0\" y=\"-6\" font-size=\"12\">1</text>\n"
      "<text x=\"{0:.0f}\" y=\"-6\" font-size=\"12\" text-anchor=\"end\">{1}</text>\n"
      "<text x=\"{4:.0f}\" y=\"-6\" font-size=\"12\">in a row</text>\n"
      "<text transform=\"translate(-34 {5:.0f}) rotate(-90)\" text-anchor=\"middle\">rows</text>\n"
      "<text x=\"-6\" y=\"12\" font-size=\"12\" text-anchor=\"end\">1</text>\n"
      "<text x=\"-6\" y=\"{2:.0f}\" font-size=\"12\" text-anchor=\"end\">{3}</text>\n",
      width, matrix.columns, height, matrix.rows, left, height / 2);
  svg += fmt::format("<text x=\"0\" y=\"{}\">{} by {}, {} non-zeros{}</text>\n", height + 20, matrix.rows,
                     matrix.columns, matrix.nonzeros(), tiles && tiles->row_order ? ", rows reordered" : "");
  svg += fmt::format("<text x=\"0\" y=\"{}\" fill=\"#666\" font-size=\"12\">bars: non-zeros of {}, at most {}</text>\n",
                     height + 38, cells.height == 1 ? "a row" : fmt::format("{} rows", cells.height), longest);
  svg += density_legend(cells, height + 56);
  if (tiles) svg += legend(format, height + 80);
  return svg + "</svg>\n";
}

}  // namespace aplc::sparse
