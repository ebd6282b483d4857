// Section 5.6: lists of SpMM and runs of SDDMM, as plans have them, predicted and measured. On this machine, one core,
// by coefficients that are fitted at the same time: its kernels are not those of a GPU, but the model is the same.
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <memory>
#include <random>

#include "bench/sparse/matrices.h"
#include "bench/sparse/report.h"
#include "codegen/runtime/sparse/cpu.h"
#include "passes/sparse/search.h"

namespace apl::bench {
namespace {

using namespace sparse;

constexpr std::int64_t kDense = 128, kBytes = 4;
constexpr int kGroupsEach = 60;

struct Free {
  void operator()(apl_sparse_plan* plan) const { apl_sparse_plan_free(plan); }
  void operator()(apl_sparse_tiles* tiles) const { apl_sparse_tiles_free(tiles); }
  void operator()(apl_sparse_cpu_form* form) const { apl_sparse_cpu_form_free(form); }
};

// All tiles of one group, of which there are usually several, and nanoseconds that they take again and again.
struct Sampled {
  std::vector<TileShape> shapes;
  double nanoseconds = 0;
};

double time_of(const Csr& matrix, const Plan& plan) {
  const std::string text = to_text(plan);
  char message[200];
  apl_sparse_plan* parsed = nullptr;
  apl_sparse_tiles* packed = nullptr;
  apl_sparse_cpu_form* formed = nullptr;
  if (apl_sparse_plan_parse(text.data(), text.size(), &parsed, message, sizeof message) != 0) return 0;
  const std::unique_ptr<apl_sparse_plan, Free> owned(parsed);
  const apl_sparse_csr csr{matrix.rows, matrix.columns, matrix.nonzeros(), matrix.row_start.data(),
                           matrix.column.data()};
  if (apl_sparse_pack(&csr, parsed, &packed) != 0) return 0;
  const std::unique_ptr<apl_sparse_tiles, Free> tiles(packed);
  if (apl_sparse_cpu_form_new(packed, 1, &formed) != 0) return 0;
  const std::unique_ptr<apl_sparse_cpu_form, Free> form(formed);
  std::vector<float> values(static_cast<std::size_t>(matrix.nonzeros()), 0.5F), samples(values.size());
  std::vector<float> left(static_cast<std::size_t>(matrix.rows * kDense), 0.5F);
  std::vector<float> right(static_cast<std::size_t>(matrix.columns * kDense), 0.5F);
  std::vector<unsigned char> held(apl_sparse_cpu_values_bytes(formed, APL_SPARSE_F32));
  apl_sparse_cpu_values(formed, APL_SPARSE_F32, values.data(), held.data());
  apl_sparse_cpu_call call{};
  call.form = formed;
  call.type = APL_SPARSE_F32;
  call.sddmm = plan.problem.op == Operator::sddmm;
  call.values = held.data();
  call.dense = kDense;
  call.b = call.y = right.data();
  call.x = call.c = left.data();
  call.b_stride = call.x_stride = call.y_stride = call.c_stride = kDense;
  call.result = samples.data();
  double best = 1e30;
  for (int round = 0; round < 40; ++round) {
    call.next = 0;
    const auto start = std::chrono::steady_clock::now();
    apl_sparse_cpu_work(&call);
    best = std::min(best, std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

// Groups of the matrix by themselves, stored as lists or runs.
void sample(const Csr& matrix, Operator op, std::mt19937_64& random, std::vector<Sampled>& all) {
  const Profile& profile = *builtin_profile("cpu");
  const Rest rest = op == Operator::spmm ? Rest::ell : Rest::run;
  const std::int64_t groups = matrix.rows / kGroupRows;
  for (int k = 0; k < kGroupsEach; ++k) {
    const std::int64_t index = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(groups));
    Csr part{kGroupRows, matrix.columns, {0}, {}, {}};
    for (std::int64_t row = index * kGroupRows; row < (index + 1) * kGroupRows; ++row) {
      part.column.insert(part.column.end(), matrix.row(row).begin(), matrix.row(row).end());
      part.row_start.push_back(part.nonzeros());
    }
    if (part.nonzeros() == 0) continue;
    Plan plan;
    plan.problem = {op, kDense, kBytes};
    plan.rows = part.rows;
    plan.columns = part.columns;
    plan.nonzeros = part.nonzeros();
    plan.hash = pattern_hash(part);
    plan.part = kDense;
    plan.rest = {profile.widths, profile.list_elements, profile.run_length};
    plan.groups = {{{}, rest}};
    Sampled sampled;
    RowGroup group;
    group.read(part, {}, 0);
    std::vector<Selection> none;
    GroupTiles(plan.rest, part.columns).append(group, none, rest, sampled.shapes);
    // Nothing is added atomically here.
    for (TileShape& shape : sampled.shapes) shape.shared = false;
    sampled.nanoseconds = time_of(part, plan);
    if (sampled.nanoseconds > 0) all.push_back(std::move(sampled));
  }
}

// Coefficients that fit every second group, as algorithm 1 does for single tiles: a group costs a R + b n.
Profile fitted(const std::vector<Sampled>& all, Operator op) {
  Profile profile = *builtin_profile("cpu");
  Coefficients& line = op == Operator::spmm ? profile.spmm_ell : profile.sddmm_run;
  double rr = 0, rn = 0, nn = 0, rt = 0, nt = 0;
  line = {1, 0, 1, 0};
  const CostModel unit(profile, {op, kDense, kBytes}, kDense);
  for (std::size_t k = 0; k < all.size(); k += 2) {
    double r = 0;
    for (const TileShape& shape : all[k].shapes) r += unit.cost(shape);
    const auto n = static_cast<double>(all[k].shapes.size());
    // Relative errors count: small groups are as many as large ones.
    const double weight = 1 / (all[k].nanoseconds * all[k].nanoseconds);
    rr += weight * r * r;
    rn += weight * r * n;
    nn += weight * n * n;
    rt += weight * r * all[k].nanoseconds;
    nt += weight * n * all[k].nanoseconds;
  }
  const double determinant = rr * nn - rn * rn;
  line.a = determinant > 0 ? (rt * nn - nt * rn) / determinant : rt / rr;
  line.b = determinant > 0 ? (nt * rr - rt * rn) / determinant : 0;
  return profile;
}

}  // namespace

nlohmann::json run_cost_model(const SparseOptions& options, std::vector<PlotPoint>& points) {
  fmt::print(
      "\nCost model on this machine's core, groups that the fit has not seen (paper, A100: Pearson 0.9243 for "
      "lists, 0.9997 for runs;\nits network of perceptrons is left out)\n");
  nlohmann::json result;
  for (const Operator op : {Operator::spmm, Operator::sddmm}) {
    std::mt19937_64 random(17);
    std::vector<Sampled> all;
    for (const char* name : {"cora_syn", "pubmed_syn", "ppi_syn", "arxiv_syn", "ND_syn", "768x768_s90", "3072x768_s95",
                             "logsparse", "strided", "crossed"})
      sample(*make_matrix(name, options.threads), op, random, all);
    const Profile profile = fitted(all, op);
    const CostModel model(profile, {op, kDense, kBytes}, kDense);
    double n = 0, x = 0, y = 0, xx = 0, yy = 0, xy = 0, squares = 0, relative = 0;
    for (std::size_t k = 1; k < all.size(); k += 2) {
      double predicted = 0;
      for (const TileShape& shape : all[k].shapes) predicted += model.cost(shape);
      const double measured = all[k].nanoseconds;
      n += 1;
      x += predicted;
      y += measured;
      xx += predicted * predicted;
      yy += measured * measured;
      xy += predicted * measured;
      squares += (predicted - measured) * (predicted - measured);
      relative += std::abs(predicted - measured) / measured;
      points.push_back({predicted, measured, ""});
    }
    const double pearson = (n * xy - x * y) / std::sqrt((n * xx - x * x) * (n * yy - y * y));
    const double rmse = std::sqrt(squares / n) / 1e6;
    fmt::print("{} {}: {} groups, Pearson {:.4f}, RMSE {:.2e} ms, mean error {:.1f} %\n", to_text(op),
               op == Operator::spmm ? "lists" : "runs", n, pearson, rmse, 100 * relative / n);
    result[std::string(to_text(op))] = {
        {"groups", n}, {"pearson", pearson}, {"rmse_milliseconds", rmse}, {"mean_relative_error", relative / n}};
  }
  return result;
}

}  // namespace apl::bench
