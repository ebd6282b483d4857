// apl_sparse_bench: what the paper on STile studies, asked of our search (docs/sparse.md). Times of plans are the cost
// model's for the H200, unless a table says measured: then they are this machine's, one thread, the least of several.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "bench/sparse/report.h"

int main(int count, char** arguments) {
  CLI::App app{"ablations of the search for sparse formats, its memory, its times and its cost model"};
  apl::bench::SparseOptions options;
  std::string json, svg;
  bool ablation = false, memory = false, times = false, model = false;
  app.add_flag("--ablation", ablation, "tables 6 and 7, and figure 12's matrix");
  app.add_flag("--memory", memory, "bytes of formats beside CSR and COO (figures 8 and 10)");
  app.add_flag("--times", times, "how long searches take (table 5)");
  app.add_flag("--cost-model", model, "what the model says and what this machine does (section 5.6)");
  app.add_option("--data", options.data, "folder with cora.mtx, citeseer.mtx and pubmed.mtx; else there are stand-ins");
  app.add_option("--most", options.most, "leave out matrices with more non-zeros (default 2000000)");
  app.add_option("--threads", options.threads, "of searches (default: one a processor)");
  app.add_option("--json", json, "write all results there, too");
  app.add_option("--svg", svg, "prefix of pictures: PREFIX-times.svg and PREFIX-cost-model.svg");
  CLI11_PARSE(app, count, arguments);
  if (!ablation && !memory && !times && !model) ablation = memory = times = model = true;

  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // tables take their time
  double load = 0;
  getloadavg(&load, 1);
  nlohmann::json all{{"load", load}};
  fmt::print("load of the machine: {:.1f}\n", load);
  const auto draw = [&](const std::string& name, const std::string& text) {
    if (!svg.empty()) std::ofstream(fmt::format("{}-{}.svg", svg, name)) << text;
  };
  if (ablation) all["ablation"] = apl::bench::run_ablation(options);
  if (memory) all["memory"] = apl::bench::run_memory(options);
  if (times) {
    std::vector<apl::bench::PlotPoint> points;
    all["times"] = apl::bench::run_search_times(options, points);
    draw("times", plot("Search time", "non-zeros", "seconds", points, false));
  }
  if (model) {
    std::vector<apl::bench::PlotPoint> points;
    all["cost_model"] = apl::bench::run_cost_model(options, points);
    draw("cost-model", plot("Cost model on this machine", "predicted ns", "measured ns", points, true));
  }
  if (json.empty()) return 0;
  const std::string text = all.dump(1) + "\n";
  const std::string temporary = json + ".tmp";
  if (!(std::ofstream(temporary) << text) || std::rename(temporary.c_str(), json.c_str()) != 0) {
    fmt::print(stderr, "cannot write {}\n", json);
    return 1;
  }
  return 0;
}
