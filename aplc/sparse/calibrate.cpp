// Each sub-task is measured among many of its kind: a matrix whose plan makes nothing else.
#include "aplc/sparse/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <new>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "aplc/sparse/files.h"
#include "codegen/runtime/sparse/cpu.h"
#include "passes/sparse/cost.h"

namespace aplc::sparse {
namespace {

using apl::sparse::Csr;
using apl::sparse::Operator;
using apl::sparse::Problem;
using apl::sparse::TileShape;

constexpr std::int64_t kRows = 1024, kColumns = 4096, kPart = 128;

// Rows of `length` columns each, the same within every `height` rows.
Csr fake_matrix(std::int64_t length, std::int64_t height) {
  std::mt19937_64 random(7);
  apl::sparse::Coo entries{kRows, kColumns, {}, {}, {}};
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
  return *apl::sparse::from_coo(entries);
}

// Nanoseconds of the product over all tiles in one thread; the best of some, as others run beside us.
double measure(const Csr& matrix, const apl_sparse_tiles& tiles, Operator op) {
  const std::vector<float> values(static_cast<std::size_t>(matrix.nonzeros()), 1.5F);
  const std::vector<float> b(static_cast<std::size_t>(matrix.columns * kPart), 0.5F);
  std::vector<float> x(static_cast<std::size_t>(matrix.rows * kPart), 0.25F), samples(values.size());
  apl_sparse_cpu_form* form = nullptr;
  if (apl_sparse_cpu_form_new(&tiles, 1, &form) != APL_SPARSE_FINE) throw std::bad_alloc();
  std::vector<unsigned char> packed(apl_sparse_cpu_values_bytes(form, APL_SPARSE_F32));
  apl_sparse_cpu_values(form, APL_SPARSE_F32, values.data(), packed.data());
  apl_sparse_cpu_call call{};
  call.form = form;
  call.type = APL_SPARSE_F32;
  call.sddmm = op == Operator::sddmm;
  call.values = packed.data();
  call.dense = kPart;
  call.b = call.y = b.data();
  call.x = call.c = x.data();
  call.b_stride = call.x_stride = call.y_stride = call.c_stride = kPart;
  call.result = samples.data();
  double best = 1e30;
  for (int round = 0; round < 15; ++round) {
    call.next = 0;
    const auto start = std::chrono::steady_clock::now();
    apl_sparse_cpu_work(&call);
    best = std::min(best, std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count());
  }
  apl_sparse_cpu_form_free(form);
  return best;
}

// The tiles of a plan that treats all groups alike: `how` are its selections and `ell` or `run`.
TilesPointer tiles_like(const Csr& matrix, const std::string& how, std::int64_t width, std::int64_t elements,
                        std::int64_t run) {
  const std::string text = fmt::format(
      "apl-sparse-plan 1\nmatrix {} {} {} {:x}\noperator spmm\ndense {} part {}\nform tiles\norder natural\nlists {} "
      "elements {} run {}\ngroups {}\n{} {}\nend\n",
      matrix.rows, matrix.columns, matrix.nonzeros(), apl::sparse::pattern_hash(matrix), kPart, kPart, width, elements,
      run, matrix.rows / APL_SPARSE_GROUP, matrix.rows / APL_SPARSE_GROUP, how);
  apl_sparse_plan* plan = nullptr;
  char message[1];
  int exit = 0;
  if (apl_sparse_plan_parse(text.data(), text.size(), &plan, message, sizeof message) != 0) return nullptr;
  const PlanPointer owned(plan);
  return make_tiles(matrix, *plan, exit);
}

// Four digits: more would be noise.
double rounded(double number) { return std::strtod(fmt::format("{:.4g}", number).c_str(), nullptr); }

apl::sparse::Coefficients rounded(const apl::sparse::Coefficients& c) {
  return {rounded(c.a), rounded(c.b), rounded(c.c), rounded(c.d)};
}

apl::sparse::Coefficients fit_lists(const apl::sparse::Profile& profile, Operator op) {
  std::vector<apl::sparse::Sample> samples;
  for (const std::int64_t width : {4, 16, 64})
    for (const std::int64_t rows : {4, 16, 64}) {
      const Csr matrix = fake_matrix(width, 1);
      const TilesPointer tiles = tiles_like(matrix, "ell", width, rows * width, 1);
      const double time = measure(matrix, *tiles, op) / static_cast<double>(tiles->list_tiles);
      samples.push_back({{TileShape::Kind::ell, false, rows, width, rows * width}, time, 0});
    }
  return apl::sparse::fit(profile, {op, kPart, 4}, kPart, samples);
}

apl::sparse::Coefficients fit_runs(const apl::sparse::Profile& profile, Operator op) {
  std::vector<apl::sparse::Sample> samples;
  for (const std::int64_t length : {8, 64})
    for (const std::int64_t run : {32, 128, 512}) {
      const Csr matrix = fake_matrix(length, 1);
      const TilesPointer tiles = tiles_like(matrix, "run", 1, 1, run);
      const double time = measure(matrix, *tiles, op) / static_cast<double>(tiles->runs);
      samples.push_back({{TileShape::Kind::run, false, std::max<std::int64_t>(1, run / length), run, run}, time, 0});
    }
  return apl::sparse::fit(profile, {op, kPart, 4}, kPart, samples);
}

void measure_blocks(apl::sparse::Profile& profile, Operator op) {
  std::vector<double> tile_times;
  for (const std::int64_t height : {8, 16, 32, 64}) {
    std::string selections;
    for (std::int64_t window = 0; window < 64 / height; ++window)
      selections += fmt::format("{}@{}>=1 ", height, window);
    std::vector<double> steps, times;
    for (const std::int64_t count : {1, 2, 4}) {
      const Csr matrix = fake_matrix(count * APL_SPARSE_STEP, height);
      const TilesPointer tiles = tiles_like(matrix, selections + "ell", 1, 1, 1);
      steps.push_back(static_cast<double>(count));
      times.push_back(measure(matrix, *tiles, op) / static_cast<double>(tiles->blocks));
    }
    const auto [step, tile] = apl::sparse::fit_line(steps, times);
    profile.blocks.push_back({op, height, kPart, rounded(std::max(step, 1.0))});
    profile.block_tile = std::max(profile.block_tile, rounded(std::min(tile, step)));
  }
}

}  // namespace

apl::sparse::Profile calibrate(const std::string& name) {
  apl::sparse::Profile profile = *apl::sparse::builtin_profile("cpu");
  profile.name = name;
  profile.workers = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  profile.blocks.clear();
  profile.block_tile = 0;
  for (const Operator op : {Operator::spmm, Operator::sddmm}) {
    (op == Operator::spmm ? profile.spmm_ell : profile.sddmm_ell) = rounded(fit_lists(profile, op));
    (op == Operator::spmm ? profile.spmm_run : profile.sddmm_run) = rounded(fit_runs(profile, op));
    measure_blocks(profile, op);
  }
  return profile;
}

}  // namespace aplc::sparse
