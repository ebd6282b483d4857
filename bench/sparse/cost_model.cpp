// Section 5.6: ELL rows of SpMM and nnz segments of SDDMM that searches select, predicted and measured on one core of
// this machine. Its kernels are not those of a GPU, but the model is the same. As in section 4, a sub-task is measured
// among many of its kind: a matrix that consists of copies of it.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "bench/sparse/matrices.h"
#include "bench/sparse/report.h"
#include "suite/sparse/calibrate.h"
#include "suite/sparse/measure.h"

namespace apl::bench {
namespace {

using namespace sparse;
using apl::sparse::Product;

// Dimensions of the matrices that are made; those of aplc sparse calibrate but for the rows.
constexpr std::int64_t kDense = 128, kBytes = 4, kGroups = 4, kColumns = 4096;
// The paper took 5000 ELL rows and 13060 nnz segments.
constexpr double kSegmentsForEll = 13060.0 / 5000;
constexpr int kPasses = 3;
constexpr std::size_t kMostPoints = 600;  // of a picture

struct SubTask {
  TileShape shape;
  std::vector<std::vector<std::int32_t>> rows;  // columns of each, numbered anew
  double nanoseconds = 0;
};

SubTask sub_task(TileShape shape, std::map<std::int64_t, std::vector<std::int32_t>> columns_of) {
  SubTask task{shape, {}, 0};
  std::map<std::int32_t, std::int32_t> number;
  for (const auto& [row, columns] : columns_of)
    for (const std::int32_t column : columns) number[column] = 0;
  // They keep their order, and lie apart.
  std::int64_t next = 0;
  const auto distinct = static_cast<std::int64_t>(number.size());
  for (auto& [column, here] : number) here = static_cast<std::int32_t>(next++ * kColumns / distinct);
  for (auto& [row, columns] : columns_of) {
    for (std::int32_t& column : columns) column = number[column];
    task.rows.push_back(std::move(columns));
  }
  task.shape.columns = distinct;
  if (shape.kind == TileShape::Kind::segment) task.shape.rows = static_cast<std::int64_t>(task.rows.size());
  return task;
}

// List tile or run number `index`.
SubTask sub_task(const apl_sparse_tiles& tiles, bool ell_rows, std::int64_t index) {
  std::map<std::int64_t, std::vector<std::int32_t>> columns_of;
  if (ell_rows) {
    const apl_sparse_ell& tile = tiles.ell_tile[index];
    for (std::int64_t k = 0; k < static_cast<std::int64_t>(tile.ell_rows) * tile.width; ++k)
      if (tiles.ell_source[tile.first_element + k] >= 0)
        columns_of[k / tile.width].push_back(tiles.ell_column[tile.first_element + k]);
    return sub_task({TileShape::Kind::ell, false, tile.ell_rows, tile.width, 0}, std::move(columns_of));
  }
  const apl_sparse_segment& run = tiles.segment[index];
  for (std::int64_t k = run.first; k < run.first + run.count; ++k)
    columns_of[tiles.segment_row[k]].push_back(tiles.segment_column[k]);
  return sub_task({TileShape::Kind::segment, false, 0, run.count, 0}, std::move(columns_of));
}

// Sub-tasks that a search for this machine selects, chosen at random; of matrices with few all.
void sample(const Csr& matrix, const Profile& profile, Operator op, std::size_t wanted, int threads,
            std::mt19937_64& random, std::vector<SubTask>& all) {
  const bool ell_rows = op == Operator::spmm;
  SearchOptions how;
  how.problem = {op, kDense, kBytes};
  how.formats = {true, ell_rows, !ell_rows};  // the paper's two
  how.threads = threads;
  Plan plan = search(matrix, profile, how);
  if (plan.dense) return;
  const auto tiles = apl::sparse::tiles_of(matrix, plan);
  if (!tiles) return;
  std::vector<std::int64_t> chosen(static_cast<std::size_t>(ell_rows ? tiles->ell_tiles : tiles->segments));
  std::iota(chosen.begin(), chosen.end(), 0);
  std::shuffle(chosen.begin(), chosen.end(), random);
  chosen.resize(std::min(chosen.size(), wanted));
  for (const std::int64_t index : chosen) all.push_back(sub_task(*tiles, ell_rows, index));
}

// Groups of 64 rows with as many copies of the sub-task as fit, each with its columns moved on.
Csr copies_of(const SubTask& task, std::int64_t each, std::mt19937_64& random) {
  Csr matrix{kGroups * kGroupRows, kColumns, {0}, {}, {}};
  for (std::int64_t group = 0; group < kGroups; ++group) {
    for (std::int64_t copy = 0; copy < each; ++copy) {
      const auto by = static_cast<std::int32_t>(random() % kColumns);
      for (const auto& row : task.rows) {
        const auto first = static_cast<std::ptrdiff_t>(matrix.column.size());
        for (const std::int32_t column : row) matrix.column.push_back((column + by) % kColumns);
        std::sort(matrix.column.begin() + first, matrix.column.end());
        matrix.row_start.push_back(matrix.nonzeros());
      }
    }
    matrix.row_start.resize(static_cast<std::size_t>((group + 1) * kGroupRows + 1), matrix.row_start.back());
  }
  return matrix;
}

// Measures sub-tasks; rows that no copy has are set to zero by SpMM, and that is taken off.
class Stopwatch {
 public:
  explicit Stopwatch(Operator op) : op_(op), product_(largest(), {op, kDense, kBytes}) {
    if (op == Operator::spmm)
      empty_row_ = time_of({{TileShape::Kind::ell, false, 1, 1, 1}, {}, 0}, 1) / static_cast<double>(kGroupRows);
  }

  double operator()(const SubTask& task) {
    const auto rows = static_cast<std::int64_t>(task.rows.size());
    const std::int64_t each = std::max<std::int64_t>(1, kGroupRows / rows);
    const auto empty = static_cast<double>(kGroupRows - each * rows);
    return std::max(0.0, time_of(task, each) - empty * empty_row_) / static_cast<double>(each);
  }

 private:
  // All operands are made once, for the largest matrix there can be.
  static Csr largest() {
    Csr matrix{kGroups * kGroupRows, kColumns, {0}, {}, {}};
    matrix.column.resize(static_cast<std::size_t>(matrix.rows * matrix.columns));
    matrix.row_start.resize(static_cast<std::size_t>(matrix.rows), 0);
    matrix.row_start.push_back(static_cast<std::int64_t>(matrix.column.size()));
    return matrix;
  }

  // Nanoseconds of a group.
  double time_of(const SubTask& task, std::int64_t each) {
    const Csr matrix = copies_of(task, each, random_);
    const bool ell_rows = task.shape.kind == TileShape::Kind::ell;
    Plan plan;
    plan.problem = {op_, kDense, kBytes};
    plan.rows = matrix.rows;
    plan.columns = matrix.columns;
    plan.nonzeros = matrix.nonzeros();
    plan.hash = pattern_hash(matrix);
    plan.part = kDense;
    plan.remainder = {{ell_rows ? task.shape.elements : 1},
                      ell_rows ? task.shape.rows * task.shape.elements : 1,
                      ell_rows ? 1 : task.shape.elements};
    plan.groups.assign(kGroups, {{}, ell_rows ? Remainder::ell : Remainder::segment});
    const auto tiles = apl::sparse::tiles_of(matrix, plan);
    return tiles ? product_(*tiles, kDense, {8, 0.001}) / kGroups : 0;
  }

  Operator op_;
  Product product_;
  std::mt19937_64 random_{5};
  double empty_row_ = 0;
};

Coefficients& line_of(Profile& profile, Operator op) {
  return op == Operator::spmm ? profile.spmm_ell : profile.sddmm_segments;
}

// What the model says of sub-tasks first, first + step, ... beside what was measured.
nlohmann::json compare(const std::vector<SubTask>& all, const Profile& profile, Operator op, std::size_t first,
                       std::size_t step, const char* who, std::vector<PlotPoint>* points) {
  const CostModel model(profile, {op, kDense, kBytes}, kDense);
  double n = 0, x = 0, y = 0, xx = 0, yy = 0, xy = 0, squares = 0, relative = 0;
  for (std::size_t k = first; k < all.size(); k += step) {
    const double predicted = model.cost(all[k].shape), measured = all[k].nanoseconds;
    n += 1;
    x += predicted;
    y += measured;
    xx += predicted * predicted;
    yy += measured * measured;
    xy += predicted * measured;
    squares += (predicted - measured) * (predicted - measured);
    relative += std::abs(predicted - measured) / measured;
    if (points && k % (all.size() / kMostPoints + 1) == 0) points->push_back({predicted, measured, ""});
  }
  if (n == 0) return {};
  const double pearson = (n * xy - x * y) / std::sqrt((n * xx - x * x) * (n * yy - y * y));
  const double rmse = std::sqrt(squares / n) / 1e6;
  fmt::print("{} {:8}, {:5} sub-tasks, {:32}: Pearson {:.4f} ({}), RMSE {:.1e} ms ({}), mean error {:.1f} %\n",
             to_text(op), op == Operator::spmm ? "ELL rows" : "segments", n, who, pearson,
             op == Operator::spmm ? "0.9243" : "0.9997", rmse, op == Operator::spmm ? "1.4e-4" : "4.8e-5",
             100 * relative / n);
  return {{"sub_tasks", n}, {"pearson", pearson}, {"rmse_milliseconds", rmse}, {"mean_relative_error", relative / n}};
}

}  // namespace

nlohmann::json run_cost_model(const SparseOptions& options, std::vector<Picture>& pictures) {
  fmt::print(
      "\nCost model on one core of this machine; in brackets the paper's numbers, on an A100. Its network of "
      "perceptrons is left out\n");
  const Profile calibrated = apl::sparse::calibrate("here");
  nlohmann::json result{{"left_out", "the network of perceptrons (MLP)"},
                        {"paper",
                         {{"spmm", {{"sub_tasks", 5000}, {"pearson", 0.9243}, {"rmse_milliseconds", 1.4e-4}}},
                          {"sddmm", {{"sub_tasks", 13060}, {"pearson", 0.9997}, {"rmse_milliseconds", 4.8e-5}}}}}};
  const std::vector<const char*> names = {"cora_syn", "pubmed_syn", "logsparse", "768x768_s90", "3072x768_s95",
                                          "strided",  "crossed",    "ppi_syn",   "arxiv_syn",   "ND_syn"};
  for (const Operator op : {Operator::spmm, Operator::sddmm}) {
    std::mt19937_64 random(17);
    std::vector<SubTask> all;
    const auto wanted = static_cast<std::size_t>(options.sub_tasks * (op == Operator::spmm ? 1 : kSegmentsForEll));
    // What small matrices lack the larger ones behind them give.
    for (std::size_t k = 0; k < names.size(); ++k)
      sample(*make_matrix(names[k], options.threads), *builtin_profile("cpu"), op,
             (wanted - all.size()) / (names.size() - k), options.threads, random, all);
    Stopwatch stopwatch(op);
    // Others on the machine disturb all that is measured for a while: so each comes up again much later.
    const bool terminal = ::isatty(STDERR_FILENO) != 0;
    for (int pass = 0; pass < kPasses; ++pass)
      for (std::size_t k = 0; k < all.size(); ++k) {
        const double now = stopwatch(all[k]);
        all[k].nanoseconds = pass == 0 ? now : std::min(all[k].nanoseconds, now);
        if (terminal && k % 50 == 0)
          fmt::print(stderr, "\r\033[K{}: {} sub-tasks, {} of {} times: {} %", to_text(op), all.size(), pass + 1,
                     kPasses, 100 * k / all.size());
      }
    if (terminal) fmt::print(stderr, "\r\033[K");
    std::erase_if(all, [](const SubTask& task) { return task.nanoseconds <= 0; });
    std::shuffle(all.begin(), all.end(), random);

    // Algorithm 1's line from regular sub-tasks, and one through half of these, that says how far a line can go.
    Profile fitted = calibrated;
    std::vector<Sample> half;
    for (std::size_t k = 0; k < all.size(); k += 2) half.push_back({all[k].shape, all[k].nanoseconds, 0});
    line_of(fitted, op) = fit(fitted, {op, kDense, kBytes}, kDense, half);
    std::vector<PlotPoint> points;
    nlohmann::json& here = result[std::string(to_text(op))];
    here["calibrated"] = compare(all, calibrated, op, 0, 1, "as aplc sparse calibrate says", &points);
    here["fitted"] = compare(all, fitted, op, 1, 2, "fitted to every other one", nullptr);
    pictures.push_back(
        {op == Operator::spmm ? "lists" : "runs",
         plot(fmt::format("{} of {} on one core", op == Operator::spmm ? "ELL rows" : "nnz segments", to_text(op)),
              "predicted ns", "measured ns", points, true)});
  }
  return result;
}

}  // namespace apl::bench
