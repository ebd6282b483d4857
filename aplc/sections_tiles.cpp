#include "aplc/sections_tiles.h"

#include <fmt/format.h>
#include <range/v3/view/zip.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <sstream>

#include "passes/sparse/parallel.h"

namespace aplc {

namespace {

// Ranks; equals share theirs.
std::vector<double> ranks(const std::vector<double>& times) {
  std::vector<double> found(times.size());
  for (std::size_t a = 0; a < times.size(); ++a)
    for (const double other : times) found[a] += other < times[a] ? 1 : other == times[a] ? 0.5 : 0;
  return found;
}

}  // namespace

std::vector<Tile> tile_space(bool on_host, std::int64_t width, std::int64_t bytes) {
  std::vector<Tile> tiles;
  const std::int64_t lanes = 64 / bytes;
  if (on_host) {
    for (const std::int64_t rows : {2, 4, 6, 8, 12, 16, 24})
      for (const std::int64_t columns : {width < lanes ? 1 : lanes, 2 * lanes, 4 * lanes})
        for (const std::int64_t pieces : {1, 2, 4})
          if (columns <= width && rows * ((columns + lanes - 1) / lanes) <= 28)
            tiles.push_back({rows, columns, pieces});
    return tiles;
  }
  for (const std::int64_t rows : {2, 3, 4, 6, 8, 12})
    for (const std::int64_t columns : {32, 64, 128, 256})
      for (const std::int64_t pieces : {1, 2, 3, 4, 8})
        if ((columns < 2 * width || columns == 32) && columns * pieces <= 1024 &&
            rows * columns * pieces * bytes <= 49152)
          tiles.push_back({rows, columns, pieces});
  return tiles;
}

apl::Result<std::vector<Tile>> read_tiles(const std::vector<std::string>& texts) {
  std::vector<Tile> tiles;
  for (const std::string& text : texts) {
    Tile tile;
    char comma = 0, more = 0;
    std::istringstream in(text);
    const bool read = in >> tile.rows >> comma >> tile.columns >> more >> tile.pieces && comma == ',' && more == ',';
    if (!read || in.peek() != std::char_traits<char>::eof() || tile.rows < 1 || tile.columns < 1 || tile.pieces < 1)
      return apl::make_error(apl::Code::command_bad_argument, {},
                             fmt::format("--tile {}: expected ROWS,COLUMNS,PIECES", text));
    tiles.push_back(tile);
  }
  return tiles;
}

std::map<Tile, double> prune(std::vector<Tile>& tiles, const apl::HostCsr& matrix, std::int64_t width,
                             const apl_device& device, bool keeps_all) {
  constexpr double kMost = 2;
  std::vector<double> bytes(tiles.size());
  apl::sparse::in_pieces(std::ssize(tiles), 1, 0, [&](std::int64_t begin, std::int64_t) {
    const auto k = static_cast<std::size_t>(begin);
    bytes[k] = code_bytes(matrix, tiles[k], width, device);
  });
  std::map<Tile, double> found;
  for (const auto& [tile, count] : ranges::views::zip(tiles, bytes)) found[tile] = count;
  const double least = tiles.empty() ? 0 : *std::ranges::min_element(bytes);
  if (!keeps_all) std::erase_if(tiles, [&](const Tile& tile) { return found[tile] > kMost * least; });
  return found;
}

double spearman(const std::vector<double>& x, const std::vector<double>& y) {
  const std::vector<double> a = ranks(x), b = ranks(y);
  const double mean = std::accumulate(a.begin(), a.end(), 0.0) / static_cast<double>(a.size());
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    ab += (a[k] - mean) * (b[k] - mean);
    aa += (a[k] - mean) * (a[k] - mean);
    bb += (b[k] - mean) * (b[k] - mean);
  }
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0;
}

std::string scatter_svg(const std::vector<MeasuredTile>& all) {
  constexpr double kSize = 400, kEdge = 50;
  double most_x = 0, most_y = 0;
  for (const MeasuredTile& one : all)
    if (one.proxy && one.real) most_x = std::max(most_x, *one.proxy), most_y = std::max(most_y, *one.real);
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{0}\" font-family=\"sans-serif\" "
      "font-size=\"12\">\n<rect width=\"{0}\" height=\"{0}\" fill=\"white\"/>\n"
      "<path d=\"M{1} {1}V{2}H{2}\" fill=\"none\" stroke=\"black\"/>\n"
      "<text x=\"{1}\" y=\"{3}\">proxy, up to {4:.3g} us</text>\n<text x=\"4\" y=\"{5}\">kernel, up to {6:.3g} "
      "us</text>\n",
      kSize + 2 * kEdge, kEdge, kSize + kEdge, kSize + 1.6 * kEdge, most_x, 0.7 * kEdge, most_y);
  for (const MeasuredTile& one : all)
    if (one.proxy && one.real)
      text +=
          fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"#36c\"><title>{}</title></circle>\n",
                      kEdge + kSize * *one.proxy / most_x, kEdge + kSize * (1 - *one.real / most_y), one.tile.text());
  return text + "</svg>\n";
}

const MeasuredTile& best_of(const std::vector<MeasuredTile>& all) {
  const MeasuredTile* best = &all.front();
  for (const MeasuredTile& one : all)
    if (one.real && (!best->real || *one.real < *best->real)) best = &one;
  return *best;
}

}  // namespace aplc
