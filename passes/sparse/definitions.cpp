#include "passes/sparse/definitions.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <queue>
#include <set>

namespace apl::sparse {
namespace {

Diagnostic broken(std::string message) { return make_error(Code::bug_internal, {}, std::move(message)); }

bool has_point(const Csr& matrix, Point point) {
  if (point.row < 0 || point.row >= matrix.rows) return false;
  const auto row = matrix.row(point.row);
  return std::binary_search(row.begin(), row.end(), point.column);
}

std::vector<Point> points_of(const std::vector<Tile>& tiles) {
  std::vector<Point> points;
  for (const Tile& tile : tiles) points.insert(points.end(), tile.points.begin(), tile.points.end());
  std::sort(points.begin(), points.end());
  return points;
}

template <class T>
bool holds(const std::vector<T>& values, const T& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

}  // namespace

TileLimits tensor_core_limits() { return {{{8, 16}, {16, 16}, {32, 16}, {16, 8}, {8, 8}}, 1024}; }

Status check_tile(const Csr& matrix, const Tile& tile, const TileLimits* limits) {
  if (tile.points.empty()) return broken("a tile without a non-zero");
  std::set<Point> seen;
  for (const Point& point : tile.points) {
    if (!has_point(matrix, point)) return broken(fmt::format("({}, {}) is no non-zero", point.row, point.column));
    if (!seen.insert(point).second) return broken(fmt::format("({}, {}) is there twice", point.row, point.column));
    if (tile.format != Format::one_d && !holds(tile.rows, point.row))
      return broken(fmt::format("row {} is not in the tile", point.row));
    if (tile.format == Format::block && !holds(tile.columns, point.column))
      return broken(fmt::format("column {} is not in the tile", point.column));
  }
  const auto rows = static_cast<std::int64_t>(tile.rows.size()),
             columns = static_cast<std::int64_t>(tile.columns.size());
  if (static_cast<std::int64_t>(tile.points.size()) > tile.stored()) return broken("more non-zeros than elements");
  if (tile.format == Format::block && (rows > tile.height || columns > tile.width))
    return broken(fmt::format("{} by {} in a block of {} by {}", rows, columns, tile.height, tile.width));
  if (!limits) return Unit{};
  if (tile.format == Format::block && !holds(limits->blocks, {tile.height, tile.width}))
    return broken(fmt::format("blocks of {} by {} are no shape of the hardware", tile.height, tile.width));
  if (tile.format == Format::ell && tile.stored() > limits->ell_elements)
    return broken(fmt::format("{} elements in a list tile, {} are allowed", tile.stored(), limits->ell_elements));
  return Unit{};
}

Status check_selection(const Csr& matrix, const std::vector<Tile>& tiles) {
  std::set<int> levels;
  for (const Tile& tile : tiles) {
    if (Status status = check_tile(matrix, tile); !status) return status;
    levels.insert(tile.level);
  }
  if (!levels.empty() && (*levels.begin() != 1 || *levels.rbegin() != static_cast<int>(levels.size())))
    return broken("a level without a tile");
  const std::vector<Point> points = points_of(tiles);
  for (std::size_t k = 1; k < points.size(); ++k)
    if (points[k - 1] == points[k])
      return broken(fmt::format("({}, {}) is in two tiles", points[k].row, points[k].column));
  if (static_cast<std::int64_t>(points.size()) != matrix.nonzeros())
    return broken(fmt::format("{} of {} non-zeros are covered", points.size(), matrix.nonzeros()));
  return Unit{};
}

Csr remaining(const Csr& matrix, const std::vector<Tile>& tiles) {
  const std::vector<Point> points = points_of(tiles);
  Csr remainder{matrix.rows, matrix.columns, {0}, {}, {}};
  for (std::int32_t row = 0; row < matrix.rows; ++row) {
    const auto columns = matrix.row(row);
    for (std::size_t k = 0; k < columns.size(); ++k) {
      if (std::binary_search(points.begin(), points.end(), Point{row, columns[k]})) continue;
      remainder.column.push_back(columns[k]);
      if (!matrix.values.empty())
        remainder.values.push_back(
            matrix.values[static_cast<std::size_t>(matrix.row_start[static_cast<std::size_t>(row)]) + k]);
    }
    remainder.row_start.push_back(remainder.nonzeros());
  }
  return remainder;
}

std::vector<SubTask> partition_tasks(const std::vector<Tile>& tiles, std::int64_t dense, std::int64_t part) {
  std::vector<SubTask> tasks;
  for (std::size_t tile = 0; tile < tiles.size(); ++tile)
    for (std::int64_t begin = 0; begin < dense; begin += part)
      tasks.push_back({tile, begin, std::min(begin + part, dense)});
  return tasks;
}

Status check_partition(const Csr& matrix, const std::vector<Tile>& tiles, std::int64_t dense,
                       const std::vector<SubTask>& tasks) {
  // The part of a non-zero's loop over the dense dim that a sub-task does.
  struct Part {
    Point point;
    std::int64_t begin, end;
    auto operator<=>(const Part&) const = default;
  };
  std::vector<Part> parts;
  std::int64_t covered = 0;
  for (const SubTask& task : tasks) {
    if (task.begin < 0 || task.begin >= task.end || task.end > dense)
      return broken(fmt::format("a sub-task of {} to {} in a loop of {}", task.begin, task.end, dense));
    for (const Point& point : tiles[task.tile].points) {
      if (!has_point(matrix, point)) return broken(fmt::format("({}, {}) is no non-zero", point.row, point.column));
      parts.push_back({point, task.begin, task.end});
      covered += task.end - task.begin;
    }
  }
  std::sort(parts.begin(), parts.end());
  for (std::size_t k = 1; k < parts.size(); ++k)
    if (const auto& [point, begin, end] = parts[k]; parts[k - 1].point == point && parts[k - 1].end > begin)
      return broken(fmt::format("({}, {}, {}) is in two sub-tasks", point.row, begin, point.column));
  if (covered != matrix.nonzeros() * dense)
    return broken(fmt::format("{} of {} points are covered", covered, matrix.nonzeros() * dense));
  return Unit{};
}

double partition_cost(std::vector<double> costs, int workers) {
  std::sort(costs.begin(), costs.end(), std::greater<>());
  std::vector<double> busy(static_cast<std::size_t>(std::max(workers, 1)));
  std::priority_queue<double, std::vector<double>, std::greater<>> free(std::greater<>(), std::move(busy));
  double last = 0;
  for (const double cost : costs) {
    const double end = free.top() + cost;
    free.pop();
    free.push(end);
    last = std::max(last, end);
  }
  return last;
}

}  // namespace apl::sparse
