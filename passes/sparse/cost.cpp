#include "passes/sparse/cost.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>
#include <tuple>

#include "passes/sparse/definitions.h"

namespace apl::sparse {
namespace {

struct Work {
  double flops = 0, bytes = 0, atomic_bytes = 0;
};

// Table 3, with what it lacks: indices are 4 bytes; SpMM of nnz segments and SDDMM of ELL rows by the same reasoning.
Work work_of(const Problem& problem, std::int64_t part, const TileShape& shape) {
  constexpr double kIndex = 4;
  const auto j = static_cast<double>(part), s = static_cast<double>(problem.element_bytes);
  const auto rows = static_cast<double>(shape.rows), columns = static_cast<double>(shape.columns);
  const double elements = static_cast<double>(shape.elements) * (shape.kind == TileShape::Kind::ell ? rows : 1);
  const double indices = kIndex * elements * (shape.kind == TileShape::Kind::segment ? 2 : 1);
  const double results = problem.op == Operator::spmm ? rows * j * s : elements * s;
  Work work{2 * elements * j, elements * s + columns * j * s + indices + results, 0};
  if (problem.op == Operator::sddmm) work.bytes += rows * j * s;
  work.atomic_bytes = work.bytes + results;
  return work;
}

double roofline(const Work& work, double bytes, double peak) { return std::max(bytes, work.flops / peak); }

const Coefficients& line_of(const Profile& profile, Operator op, TileShape::Kind kind) {
  const bool ell = kind == TileShape::Kind::ell;
  return op == Operator::spmm ? (ell ? profile.spmm_ell : profile.spmm_segments)
                              : (ell ? profile.sddmm_ell : profile.sddmm_segments);
}

// A straight line between the entries of the table; outside it goes through the nearest and the origin.
double step_cost(const Profile& profile, const Problem& problem, std::int64_t height, std::int64_t part) {
  const BlockCost *below = nullptr, *above = nullptr;
  for (const BlockCost& entry : profile.blocks) {
    if (entry.op != problem.op || entry.height != height) continue;
    if (entry.bytes != 0 && entry.bytes != problem.element_bytes) continue;
    if (entry.dense <= part) below = &entry;
    if (entry.dense >= part && !above) above = &entry;
  }
  if (!below && !above) return 0;
  const auto j = static_cast<double>(part);
  if (!below || !above) {
    const BlockCost& nearest = below ? *below : *above;
    return nearest.nanoseconds * j / static_cast<double>(nearest.dense);
  }
  if (below->dense == above->dense) return below->nanoseconds;
  const double share = (j - static_cast<double>(below->dense)) / static_cast<double>(above->dense - below->dense);
  return below->nanoseconds + share * (above->nanoseconds - below->nanoseconds);
}

}  // namespace

CostModel::CostModel(const Profile& profile, const Problem& problem, std::int64_t part)
    : profile_(profile), problem_(problem), part_(part), tile_(profile.block_tile) {
  for (const std::int64_t height : {8, 16, 32, 64})
    step_[height_index(height)] = step_cost(profile, problem, height, part);
}

double CostModel::cost(const TileShape& shape) const {
  const bool atomic = shape.shared && problem_.op == Operator::spmm;  // samples have one owner each
  if (shape.kind == TileShape::Kind::block) {
    const double results = static_cast<double>(shape.rows * part_ * problem_.element_bytes);
    return block(shape.rows, shape.elements) + (atomic ? profile_.spmm_ell.a * results : 0);
  }
  const Coefficients& line = line_of(profile_, problem_.op, shape.kind);
  const Work work = work_of(problem_, part_, shape);
  const double r = roofline(work, work.bytes, profile_.peak);
  const double g = line.a * r + line.b;
  return atomic ? g * (line.c * roofline(work, work.atomic_bytes, profile_.peak) / r + line.d) : g;
}

double CostModel::total(std::span<const TileShape> shapes) const {
  // The largest are handed out longest first; the rest, which are smaller than any of them, fill up what is left.
  const auto kept = static_cast<std::size_t>(64 * profile_.workers);
  std::vector<double> costs(shapes.size());
  std::transform(shapes.begin(), shapes.end(), costs.begin(), [&](const TileShape& shape) { return cost(shape); });
  const double sum = std::accumulate(costs.begin(), costs.end(), 0.0) * static_cast<double>(parts());
  if (costs.size() > kept) {
    std::nth_element(costs.begin(), costs.begin() + static_cast<std::ptrdiff_t>(kept), costs.end(), std::greater<>());
    costs.resize(kept);
  }
  std::vector<double> tasks;
  for (std::int64_t part = 0; part < parts() && tasks.size() < 4 * kept; ++part)
    tasks.insert(tasks.end(), costs.begin(), costs.end());
  return profile_.launch + std::max(partition_cost(std::move(tasks), profile_.workers), sum / profile_.workers);
}

double CostModel::dense_product(std::int64_t rows, std::int64_t columns) const {
  const auto size = static_cast<std::size_t>(std::countr_zero(static_cast<std::uint64_t>(problem_.element_bytes)));
  return profile_.dense_launch + 2 * static_cast<double>(rows) * static_cast<double>(columns) *
                                     static_cast<double>(problem_.dense) / profile_.dense_rates[size];
}

std::pair<double, double> fit_line(std::span<const double> x, std::span<const double> y) {
  const auto n = static_cast<double>(x.size());
  if (x.empty()) return {0, 0};
  const double mean_x = std::accumulate(x.begin(), x.end(), 0.0) / n;
  const double mean_y = std::accumulate(y.begin(), y.end(), 0.0) / n;
  double xx = 0, xy = 0;
  for (std::size_t k = 0; k < x.size(); ++k) {
    xx += (x[k] - mean_x) * (x[k] - mean_x);
    xy += (x[k] - mean_x) * (y[k] - mean_y);
  }
  const double slope = xx > 0 ? xy / xx : 0;
  return {slope, mean_y - slope * mean_x};
}

Coefficients fit(const Profile& profile, const Problem& problem, std::int64_t part, std::span<const Sample> samples) {
  std::vector<double> r, plain, ratio, atomic;
  for (const Sample& sample : samples) {
    const Work work = work_of(problem, part, sample.shape);
    r.push_back(roofline(work, work.bytes, profile.peak));
    plain.push_back(sample.nanoseconds);
    if (sample.atomic_nanoseconds <= 0) continue;
    ratio.push_back(roofline(work, work.atomic_bytes, profile.peak) / r.back());
    atomic.push_back(sample.atomic_nanoseconds / sample.nanoseconds);
  }
  const auto [a, b] = fit_line(r, plain);
  Coefficients line{std::max(a, 0.0), std::max(b, 0.0), 1, 0};
  if (!ratio.empty()) std::tie(line.c, line.d) = fit_line(ratio, atomic);
  return line;
}

}  // namespace apl::sparse
