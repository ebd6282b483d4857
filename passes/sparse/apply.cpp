// What compositions mean. A matrix is a list of parts; each primitive replaces a part by one or several.
#include <algorithm>
#include <memory>
#include <numeric>

#include "passes/sparse/composition.h"

namespace apl::sparse {
namespace {

using Columns = std::shared_ptr<const std::vector<std::int32_t>>;

struct Line {
  std::int32_t row = 0;  // of an empty line too
  std::vector<Point> points;
};

struct Part {
  std::vector<Line> lines;
  Columns columns;                     // in order; parts that differ in rows alone share them
  std::int64_t height = 0, width = 0;  // that tiles have, edges of the matrix included
  std::size_t size = 0;                // which size of the split
};

class Applier {
 public:
  explicit Applier(const Csr& matrix) : position_(static_cast<std::size_t>(matrix.columns)) {
    std::vector<std::int32_t> columns(position_.size());
    std::iota(columns.begin(), columns.end(), 0);
    Part whole{{}, std::make_shared<std::vector<std::int32_t>>(std::move(columns)), matrix.rows, matrix.columns, 0};
    for (std::int32_t row = 0; row < matrix.rows; ++row) {
      whole.lines.push_back({row, {}});
      for (const std::int32_t column : matrix.row(row)) whole.lines.back().points.push_back({row, column});
    }
    parts_.push_back(std::move(whole));
  }

  void apply(const Step& step) {
    std::vector<Part> before = std::move(parts_);
    parts_.clear();
    for (Part& part : before) {
      switch (step.primitive) {
        case Primitive::reorder:
          parts_.push_back(step.axis == Axis::rows ? with_rows_sorted(std::move(part)) : with_columns_sorted(part));
          break;
        case Primitive::divide:
          step.axis == Axis::rows ? divide_rows(part, step.sizes[step.sizes.size() > 1 ? part.size : 0])
                                  : divide_columns(part, step.sizes[0]);
          break;
        case Primitive::squeeze: parts_.push_back(squeezed(std::move(part))); break;
        case Primitive::split: split(part, step.sizes); break;
        case Primitive::pad: parts_.push_back(padded(std::move(part))); break;
        case Primitive::flatten: parts_.push_back(flattened(part)); break;
      }
    }
  }

  std::vector<Tile> tiles(Format format) {
    std::vector<Tile> result;
    for (Part& part : parts_) {
      Tile tile{format, {}, {}, part.height, part.width, {}, 1};
      for (Line& line : part.lines) {
        if (format != Format::one_d) tile.rows.push_back(line.row);
        tile.points.insert(tile.points.end(), line.points.begin(), line.points.end());
      }
      if (tile.points.empty()) continue;
      if (format == Format::block) tile.columns = *part.columns;
      if (format == Format::one_d) tile.height = 1, tile.width = static_cast<std::int64_t>(tile.points.size());
      result.push_back(std::move(tile));
    }
    return result;
  }

 private:
  static Part with_rows_sorted(Part part) {
    std::stable_sort(part.lines.begin(), part.lines.end(),
                     [](const Line& a, const Line& b) { return a.points.size() > b.points.size(); });
    return part;
  }

  // Columns without a non-zero come last, and are not listed.
  Part with_columns_sorted(const Part& part) {
    find_positions(part.columns);
    std::vector<std::int32_t> met;
    std::vector<std::int64_t>& counts = counts_;
    counts.resize(position_.size());
    for (const Line& line : part.lines)
      for (const Point& point : line.points)
        if (counts[static_cast<std::size_t>(point.column)]++ == 0) met.push_back(point.column);
    std::sort(met.begin(), met.end(), [&](std::int32_t a, std::int32_t b) {
      const std::int64_t many = counts[static_cast<std::size_t>(a)], more = counts[static_cast<std::size_t>(b)];
      return many != more ? many > more
                          : position_[static_cast<std::size_t>(a)] < position_[static_cast<std::size_t>(b)];
    });
    for (const std::int32_t column : met) counts[static_cast<std::size_t>(column)] = 0;
    Part result = part;
    result.columns = std::make_shared<std::vector<std::int32_t>>(std::move(met));
    return result;
  }

  void divide_rows(Part& part, std::int64_t size) {
    const auto step = static_cast<std::size_t>(size);
    for (std::size_t first = 0; first < part.lines.size(); first += step) {
      Part piece{{}, part.columns, squeezed_ ? 0 : size, part.width, part.size};
      for (std::size_t k = first; k < std::min(first + step, part.lines.size()); ++k)
        piece.lines.push_back(std::move(part.lines[k]));
      if (squeezed_) piece.height = static_cast<std::int64_t>(piece.lines.size());
      parts_.push_back(std::move(piece));
    }
  }

  // Only parts with a non-zero: there are too many others in a large matrix.
  void divide_columns(const Part& part, std::int64_t size) {
    find_positions(part.columns);
    std::vector<std::int64_t> blocks;
    for (const Line& line : part.lines)
      for (const Point& point : line.points) blocks.push_back(position_[static_cast<std::size_t>(point.column)] / size);
    std::sort(blocks.begin(), blocks.end());
    blocks.erase(std::unique(blocks.begin(), blocks.end()), blocks.end());
    const std::size_t first = parts_.size();
    for (const std::int64_t block : blocks) {
      const auto begin = part.columns->begin() + block * size;
      const auto end =
          part.columns->begin() + std::min((block + 1) * size, static_cast<std::int64_t>(part.columns->size()));
      Part piece{{}, std::make_shared<std::vector<std::int32_t>>(begin, end), part.height, size, part.size};
      for (const Line& line : part.lines) piece.lines.push_back({line.row, {}});
      parts_.push_back(std::move(piece));
    }
    for (std::size_t k = 0; k < part.lines.size(); ++k)
      for (const Point& point : part.lines[k].points) {
        const std::int64_t block = position_[static_cast<std::size_t>(point.column)] / size;
        const auto at = std::lower_bound(blocks.begin(), blocks.end(), block) - blocks.begin();
        parts_[first + static_cast<std::size_t>(at)].lines[k].points.push_back(point);
      }
  }

  Part squeezed(Part part) {
    squeezed_ = true;
    find_positions(part.columns);
    std::erase_if(part.lines, [](const Line& line) { return line.points.empty(); });
    for (Line& line : part.lines)
      std::sort(line.points.begin(), line.points.end(), [&](const Point& a, const Point& b) {
        return position_[static_cast<std::size_t>(a.column)] < position_[static_cast<std::size_t>(b.column)];
      });
    part.height = static_cast<std::int64_t>(part.lines.size());
    part.width = 0;  // until it is padded
    return part;
  }

  void split(const Part& part, const std::vector<std::int64_t>& sizes) {
    std::vector<Part> by_size;
    for (std::size_t k = 0; k < sizes.size(); ++k) by_size.push_back({{}, part.columns, 0, sizes[k], k});
    const auto most = static_cast<std::size_t>(sizes.back());
    for (const Line& line : part.lines)
      for (std::size_t first = 0; first < line.points.size(); first += most) {
        const std::size_t count = std::min(most, line.points.size() - first);
        const auto size = std::lower_bound(sizes.begin(), sizes.end(), static_cast<std::int64_t>(count));
        Part& target = by_size[static_cast<std::size_t>(size - sizes.begin())];
        const auto begin = line.points.begin() + static_cast<std::ptrdiff_t>(first);
        target.lines.push_back({line.row, {begin, begin + static_cast<std::ptrdiff_t>(count)}});
      }
    for (Part& piece : by_size) {
      piece.height = static_cast<std::int64_t>(piece.lines.size());
      if (!piece.lines.empty()) parts_.push_back(std::move(piece));
    }
  }

  static Part padded(Part part) {
    if (part.width == 0)
      for (const Line& line : part.lines)
        part.width = std::max(part.width, static_cast<std::int64_t>(line.points.size()));
    return part;
  }

  static Part flattened(const Part& part) {
    Part result{{{-1, {}}}, part.columns, 1, 0, 0};
    for (const Line& line : part.lines)
      result.lines[0].points.insert(result.lines[0].points.end(), line.points.begin(), line.points.end());
    return result;
  }

  // place_[column]: where `columns` has it.
  void find_positions(const Columns& columns) {
    if (columns == placed_) return;
    for (std::size_t k = 0; k < columns->size(); ++k)
      position_[static_cast<std::size_t>((*columns)[k])] = static_cast<std::int64_t>(k);
    placed_ = columns;
  }

  std::vector<Part> parts_;
  std::vector<std::int64_t> position_, counts_;
  Columns placed_;
  bool squeezed_ = false;
};

}  // namespace

std::vector<Tile> apply(const Composition& composition, const Csr& matrix) {
  Applier applier(matrix);
  for (const Step& step : composition.steps) applier.apply(step);
  return applier.tiles(composition.format());
}

}  // namespace apl::sparse
