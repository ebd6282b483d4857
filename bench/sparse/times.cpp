// How long searches take, beside the paper's (table 5: an EPYC with 48 cores), against non-zeros.
#include <fmt/format.h>
#include <sys/resource.h>

#include <array>
#include <map>

#include "bench/sparse/matrices.h"
#include "bench/sparse/report.h"
#include "passes/sparse/parallel.h"

namespace apl::bench {
namespace {

using namespace sparse;

double peak_gigabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / (1 << 20);
}

}  // namespace

nlohmann::json run_search_times(const SparseOptions& options, std::vector<Picture>& pictures) {
  const std::map<std::string, std::array<double, 2>> paper = {
      {"cora", {0.5, 0.3}},           {"citeseer", {0.6, 0.6}},     {"pubmed", {93.9, 4.9}},
      {"ppi", {88.0, 28.2}},          {"arxiv", {1154.7, 247.9}},   {"ND", {3015.7, 732.8}},
      {"proteins", {1161.8, 1242.6}}, {"reddit", {2831.0, 1772.5}}, {"logsparse", {1.0, 0.7}},
      {"strided", {2.3, 1.7}}};
  const int threads = thread_count(options.threads);
  fmt::print(
      "\nSearch times, J and K 128, H200's profile, {} threads: seconds of the clock, of processors, and the paper's\n"
      "{:20} {:>10} {:>26} {:>26} {:>9}\n",
      threads, "matrix", "non-zeros", "SpMM", "SDDMM", "peak");
  nlohmann::json all = nlohmann::json::array();
  std::vector<PlotPoint> points;
  for (const MatrixName& known : matrix_names()) {
    if (known.nonzeros > options.most || !is_wanted(known.name, options)) continue;
    const auto matrix = make_matrix(known.name, options.threads);
    if (matrix->nonzeros() > options.most) continue;  // of shapes the name does not say it
    nlohmann::json row{{"matrix", known.name}, {"nonzeros", matrix->nonzeros()}};
    fmt::print("{:20} {:10}", known.name, matrix->nonzeros());
    for (const Operator op : {Operator::spmm, Operator::sddmm}) {
      const Found found = search_with(*matrix, *builtin_profile("h200"), options_for(op, 128, options));
      const auto entry = paper.find(known.name.substr(0, known.name.rfind('_')));
      fmt::print(" {:8.3f} {:8.3f} {:>8}", found.plan.seconds, found.processor_seconds,
                 entry == paper.end() ? "-" : fmt::format("{}", entry->second[op == Operator::sddmm]));
      nlohmann::json& here = row[std::string(to_text(op))] = {{"seconds", found.plan.seconds},
                                                              {"processor_seconds", found.processor_seconds},
                                                              {"order", found.plan.order},
                                                              {"dense", found.plan.dense}};
      if (entry != paper.end()) here["paper_seconds"] = entry->second[op == Operator::sddmm];
      if (op != Operator::spmm) continue;
      points.push_back({static_cast<double>(matrix->nonzeros()), std::max(found.processor_seconds, 1e-4), known.name});
    }
    row["peak_gigabytes"] = peak_gigabytes();
    fmt::print(" {:6.2f} GB\n", peak_gigabytes());
    std::fflush(stdout);
    all.push_back(row);
  }
  pictures.push_back({"", plot("Search time, SpMM", "non-zeros", "seconds of processors, together", points, false)});
  return {{"threads", threads}, {"peak", "of the process so far, matrix included"}, {"matrices", all}};
}

}  // namespace apl::bench
