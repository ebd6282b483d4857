// Each sub-task is measured among many of its kind: a matrix whose plan makes nothing else.
#include "suite/sparse/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "passes/sparse/cost.h"
#include "suite/sparse/measure.h"

namespace apl::sparse {
namespace {

constexpr std::int64_t kRows = 1024, kColumns = 4096, kPart = 128, kBytes = 4;

// Rows of `length` columns each, the same within every `height` rows.
Csr fake_matrix(std::int64_t length, std::int64_t height) {
  std::mt19937_64 random(7);
  Coo entries{kRows, kColumns, {}, {}, {}};
  std::set<std::int32_t> columns;
  for (std::int64_t row = 0; row < kRows; ++row) {
    if (row % height == 0) {
      columns.clear();
      while (static_cast<std::int64_t>(columns.size()) < length)
        columns.insert(static_cast<std::int32_t>(random() % kColumns));
    }
    for (const std::int32_t column : columns) {
      entries.row.push_back(static_cast<std::int32_t>(row));
      entries.column.push_back(column);
    }
  }
  return *from_coo(entries);
}

// The tiles of a plan that treats all groups alike, each with these selections and then ELL rows or nnz segments.
TilesPointer tiles_like(const Csr& matrix, const GroupPlan& group, const RemainderShape& remainder) {
  Plan plan;
  plan.problem = {Operator::spmm, kPart, kBytes};
  plan.rows = matrix.rows;
  plan.columns = matrix.columns;
  plan.nonzeros = matrix.nonzeros();
  plan.hash = pattern_hash(matrix);
  plan.part = kPart;
  plan.remainder = remainder;
  plan.groups.assign(static_cast<std::size_t>(matrix.rows / kGroupRows), group);
  return tiles_of(matrix, plan);
}

// Nanoseconds of a tile among all of these.
double time_of(const Csr& matrix, const apl_sparse_tiles& tiles, Operator op) {
  const double time = Product(matrix, {op, kPart, kBytes})(tiles, kPart, {15, 1});
  if (time <= 0) throw std::bad_alloc();
  return time / static_cast<double>(tiles.blocks + tiles.ell_tiles + tiles.segments);
}

std::int64_t distinct(const std::int32_t* columns, std::int64_t count) {
  return static_cast<std::int64_t>(std::set<std::int32_t>(columns, columns + count).size());
}

// Four digits: more would be noise.
double rounded(double number) { return std::strtod(fmt::format("{:.4g}", number).c_str(), nullptr); }

Coefficients rounded(const Coefficients& c) { return {rounded(c.a), rounded(c.b), rounded(c.c), rounded(c.d)}; }

Coefficients fit_ell(const Profile& profile, Operator op) {
  std::vector<Sample> samples;
  for (const std::int64_t width : {4, 16, 64})
    for (const std::int64_t rows : {4, 16, 64}) {
      const Csr matrix = fake_matrix(width, 1);
      const TilesPointer tiles = tiles_like(matrix, {{}, Remainder::ell}, {{width}, rows * width, 1});
      samples.push_back({{TileShape::Kind::ell, false, rows, width, distinct(tiles->ell_column, rows * width)},
                         time_of(matrix, *tiles, op),
                         0});
    }
  return fit(profile, {op, kPart, kBytes}, kPart, samples);
}

// What ELL rows reach whose columns were all gathered just before, in operations a byte of what they reach otherwise.
double peak_of(const Profile& profile) {
  std::vector<double> peaks;
  for (const std::int64_t width : {16, 32, 64}) {
    const std::int64_t rows = kGroupRows;
    const Csr matrix = fake_matrix(width, rows);
    const TilesPointer tiles = tiles_like(matrix, {{}, Remainder::ell}, {{width}, rows * width, 1});
    const double time = time_of(matrix, *tiles, Operator::spmm) - profile.spmm_ell.b;
    const auto operations = static_cast<double>(2 * rows * width * kPart);
    if (time > 0) peaks.push_back(profile.spmm_ell.a * operations / time);
  }
  if (peaks.empty()) return profile.peak;
  std::ranges::sort(peaks);
  return peaks[peaks.size() / 2];
}

Coefficients fit_segments(const Profile& profile, Operator op) {
  std::vector<Sample> samples;
  for (const std::int64_t length : {8, 64})
    for (const std::int64_t run : {32, 128, 512}) {
      const Csr matrix = fake_matrix(length, 1);
      const TilesPointer tiles = tiles_like(matrix, {{}, Remainder::segment}, {{1}, 1, run});
      samples.push_back({{TileShape::Kind::segment, false, std::max<std::int64_t>(1, run / length), run,
                          distinct(tiles->segment_column, run)},
                         time_of(matrix, *tiles, op),
                         0});
    }
  return fit(profile, {op, kPart, kBytes}, kPart, samples);
}

void measure_blocks(Profile& profile, Operator op) {
  std::vector<double> tile_times;
  for (const std::int64_t height : {8, 16, 32, 64}) {
    GroupPlan group;
    for (std::int64_t window = 0; window < kGroupRows / height; ++window)
      group.selections.push_back({static_cast<std::uint8_t>(height), static_cast<std::uint8_t>(window), 1});
    std::vector<double> steps, times;
    for (const std::int64_t count : {1, 2, 4}) {
      const Csr matrix = fake_matrix(count * APL_SPARSE_STEP, height);
      const TilesPointer tiles = tiles_like(matrix, group, {{1}, 1, 1});
      steps.push_back(static_cast<double>(count));
      times.push_back(time_of(matrix, *tiles, op));
    }
    const auto [step, tile] = fit_line(steps, times);
    profile.blocks.push_back({op, height, kPart, rounded(std::max(step, 1.0))});
    profile.block_tile = std::max(profile.block_tile, rounded(std::min(tile, step)));
  }
}

}  // namespace

Profile calibrate(const std::string& name) {
  Profile profile = *builtin_profile("cpu");
  profile.name = name;
  profile.workers = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  profile.blocks.clear();
  profile.block_tile = 0;
  profile.spmm_ell = fit_ell(profile, Operator::spmm);
  profile.peak = rounded(peak_of(profile));
  for (const Operator op : {Operator::spmm, Operator::sddmm}) {
    (op == Operator::spmm ? profile.spmm_ell : profile.sddmm_ell) = rounded(fit_ell(profile, op));
    (op == Operator::spmm ? profile.spmm_segments : profile.sddmm_segments) = rounded(fit_segments(profile, op));
    measure_blocks(profile, op);
  }
  return profile;
}

}  // namespace apl::sparse
