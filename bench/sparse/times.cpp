// How long searches take, beside the paper's (table 5: an EPYC with 48 cores), against non-zeros.
#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <map>

#include "bench/sparse/matrices.h"
#include "bench/sparse/report.h"
#include "passes/sparse/search.h"

namespace apl::bench {
namespace {

using namespace sparse;

double peak_gigabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / (1 << 20);
}

// Processor seconds of all threads so far: what a machine without other work would need, together.
double processor_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

}  // namespace

nlohmann::json run_search_times(const SparseOptions& options, std::vector<PlotPoint>& points) {
  const std::map<std::string, std::array<double, 2>> paper = {
      {"cora", {0.5, 0.3}},           {"citeseer", {0.6, 0.6}},     {"pubmed", {93.9, 4.9}},
      {"ppi", {88.0, 28.2}},          {"arxiv", {1154.7, 247.9}},   {"ND", {3015.7, 732.8}},
      {"proteins", {1161.8, 1242.6}}, {"reddit", {2831.0, 1772.5}}, {"logsparse", {1.0, 0.7}},
      {"strided", {2.3, 1.7}}};
  fmt::print("\nSearch times, J = 128, H200's profile: seconds, seconds of processors, the paper's seconds\n");
  nlohmann::json all = nlohmann::json::array();
  for (const MatrixName& known : matrix_names()) {
    if (known.nonzeros > options.most) continue;
    const auto before = std::chrono::steady_clock::now();
    const auto matrix = make_matrix(known.name, options.threads);
    const double made = std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
    nlohmann::json row{{"matrix", known.name}, {"nonzeros", matrix->nonzeros()}, {"made_in", made}};
    fmt::print("{:20} {:10} non-zeros", known.name, matrix->nonzeros());
    for (const Operator op : {Operator::spmm, Operator::sddmm}) {
      SearchOptions how;
      how.problem = {op, 128, 2};
      how.threads = options.threads;
      const double processor = processor_seconds();
      const Plan plan = search(*matrix, *builtin_profile("h200"), how);
      const double used = processor_seconds() - processor;
      const auto entry = paper.find(known.name.substr(0, known.name.rfind('_')));
      fmt::print("  {} {:.3f} {:.3f} {:>6}", to_text(op), plan.seconds, used,
                 entry == paper.end() ? "-" : fmt::format("{}", entry->second[op == Operator::sddmm]));
      row[std::string(to_text(op))] = {
          {"seconds", plan.seconds}, {"processor_seconds", used}, {"order", plan.order}, {"dense", plan.dense}};
      if (op == Operator::spmm)
        points.push_back({static_cast<double>(matrix->nonzeros()), std::max(plan.seconds, 1e-4), known.name});
    }
    row["peak_gigabytes"] = peak_gigabytes();
    fmt::print("  peak {:.2f} GB\n", peak_gigabytes());
    std::fflush(stdout);
    all.push_back(row);
  }
  return all;
}

}  // namespace apl::bench
