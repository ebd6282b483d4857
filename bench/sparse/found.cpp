#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "bench/sparse/matrices.h"
#include "bench/sparse/report.h"
#include "passes/sparse/read.h"

namespace apl::bench {

using namespace sparse;

bool is_wanted(const std::string& name, const SparseOptions& options) {
  return options.only.empty() || std::any_of(options.only.begin(), options.only.end(), [&](const std::string& part) {
           return name.find(part) != std::string::npos;
         });
}

std::optional<Csr> matrix_for(const std::string& name, const SparseOptions& options) {
  if (!is_wanted(name, options)) return std::nullopt;
  if (!options.data.empty() && (name == "cora" || name == "citeseer" || name == "pubmed")) {
    std::ifstream in(fmt::format("{}/{}.mtx", options.data, name), std::ios::binary);
    if (in) {
      auto matrix = read_matrix(std::string(std::istreambuf_iterator<char>(in), {}));
      if (!matrix) return std::nullopt;
      matrix->values.clear();
      return std::move(*matrix);
    }
  }
  for (const MatrixName& known : matrix_names())
    if ((known.name == name || known.name == name + "_syn") && known.nonzeros <= options.most)
      return make_matrix(known.name, options.threads);
  return std::nullopt;
}

Found search_with(const Csr& matrix, const Profile& profile, const SearchOptions& how) {
  const double before = processor_seconds();
  Found found{search(matrix, profile, how)};
  found.processor_seconds = processor_seconds() - before;
  const auto value = static_cast<double>(how.problem.element_bytes);
  constexpr double kIndex = 4;
  RowGroup group;
  GroupTiles maker(found.plan.remainder, matrix.columns);
  std::vector<TileShape> shapes;
  for (std::size_t index = 0; index < found.plan.groups.size() && !found.plan.dense; ++index) {
    GroupPlan copy = found.plan.groups[index];
    group.read(matrix, found.plan.row_order, static_cast<std::int64_t>(index));
    shapes.clear();
    maker.append(group, copy.selections, copy.remainder, shapes);
    for (const TileShape& shape : shapes) {
      const bool block = shape.kind == TileShape::Kind::block;
      found.tiles += 1;
      found.atomic_tiles += shape.shared;
      found.atomic_blocks += shape.shared && block;
      const auto rows = static_cast<double>(shape.rows), elements = static_cast<double>(shape.elements);
      // A row number for each tile or list, a column for each step's column or element.
      if (block) found.bytes += kIndex + elements * kStepColumns * (kIndex + rows * value);
      if (shape.kind == TileShape::Kind::ell) found.bytes += rows * kIndex + rows * elements * (kIndex + value);
      if (shape.kind == TileShape::Kind::segment) found.bytes += elements * (2 * kIndex + value);
    }
  }
  if (found.plan.dense) found.bytes = static_cast<double>(matrix.rows) * static_cast<double>(matrix.columns) * value;
  return found;
}

SearchOptions options_for(Operator op, std::int64_t dense, const SparseOptions& options) {
  SearchOptions how;
  how.problem = {op, dense, 2};
  how.threads = options.threads;
  return how;
}

double tiled_cost(const Plan& plan) {
  double least = 0;
  for (const auto& [name, cost] : plan.considered)
    if (name != "dense" && (least == 0 || cost < least)) least = cost;
  return least;
}

double processor_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

}  // namespace apl::bench
