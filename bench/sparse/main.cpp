// apl_sparse_bench: what the paper on STile studies, asked of our search (docs/sparse-measured.md). Times of plans are
// the cost model's for the H200, unless a table says measured: then they are this machine's, one thread, the least of
// several.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <thread>

#include "bench/sparse/report.h"
#include "tests/command_line.h"

namespace {

using apl::bench::Picture;

double load() {
  double minute = 0;
  getloadavg(&minute, 1);
  return minute;
}

std::string machine() {
  std::ifstream in("/proc/cpuinfo");
  std::string line;
  while (std::getline(in, line))
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  return "unknown processor";
}

// All at once: who reads the file never sees half of it.
bool write(const std::filesystem::path& file, const std::string& text) {
  const std::filesystem::path temporary = file.string() + ".tmp";
  std::ofstream out(temporary);
  out << text;
  out.close();
  std::error_code error;
  if (out) std::filesystem::rename(temporary, file, error);
  if (out && !error) return true;
  std::filesystem::remove(temporary, error);
  fmt::print(stderr, "cannot write {}\n", file.string());
  return false;
}

}  // namespace

int main(int count, char** arguments) {
  apl::CommandLine line("ablations of the search for sparse formats, its memory, its times and its cost model");
  apl::bench::SparseOptions options;
  std::string results;
  bool ablation = false, levels = false, memory = false, times = false, model = false;
  line.flag("--ablation", ablation, "tables 6 and 7, and figure 12's matrix");
  line.flag("--levels", levels, "what levels are worth on a core of this machine");
  line.flag("--memory", memory, "bytes of formats beside CSR and COO (figures 8 and 10)");
  line.flag("--times", times, "how long searches take (table 5)");
  line.flag("--cost-model", model, "what the model says and what this machine does (section 5.6)");
  line.option("--data", options.data, "folder with cora.mtx, citeseer.mtx and pubmed.mtx; else there are stand-ins");
  line.option("--most", options.most, "leave out matrices with more non-zeros");
  line.option("--matrices", options.only, "only those with one of these parts in their names");
  line.option("--threads", options.threads, "of searches (default: one a processor)");
  line.option("--sub-tasks", options.sub_tasks, "ELL rows that the cost model is asked for");
  line.option("--results", results, "folder for a JSON file and pictures of each study: sparse-STUDY-DATE.json");
  if (const auto code = line.parse(count, arguments)) return *code;
  if (!ablation && !levels && !memory && !times && !model) ablation = levels = memory = times = model = true;
  // Said now, not when the studies are over.
  std::error_code no_folder;
  if (!results.empty() && !std::filesystem::is_directory(results) &&
      !std::filesystem::create_directories(results, no_folder)) {
    fmt::print(stderr, "cannot make the folder {}: {}\n", results, no_folder.message());
    return 1;
  }

  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // tables take their time
  const std::time_t now = std::time(nullptr);
  const std::string date = fmt::format("{:%Y-%m-%d}", *std::localtime(&now));
  bool written = true;
  const auto study = [&](const std::string& name, auto&& run) {
    nlohmann::json document{
        {"study", name},
        {"date", date},
        {"machine", machine()},
        {"processors", std::thread::hardware_concurrency()},
        {"options", {{"data", !options.data.empty()}, {"most", options.most}, {"matrices", options.only}}}};
    std::vector<Picture> pictures;
    const double before = load();
    document["results"] = run(pictures);
    document["load"] = {before, load()};
    if (results.empty()) return;
    const std::filesystem::path folder = results;
    written = write(folder / fmt::format("sparse-{}-{}.json", name, date), document.dump(1) + "\n") && written;
    for (const Picture& picture : pictures)
      written = write(folder / fmt::format("sparse-{}{}{}.svg", name, picture.name.empty() ? "" : "-", picture.name),
                      picture.svg) &&
                written;
  };
  fmt::print("{}, {} processors, load {:.1f}\n", machine(), std::thread::hardware_concurrency(), load());
  if (ablation) study("ablation", [&](auto&) { return apl::bench::run_ablation(options); });
  if (levels) study("levels", [&](auto&) { return apl::bench::run_levels(options); });
  if (memory) study("memory", [&](auto&) { return apl::bench::run_memory(options); });
  if (times) study("search-times", [&](auto& pictures) { return apl::bench::run_search_times(options, pictures); });
  if (model) study("cost-model", [&](auto& pictures) { return apl::bench::run_cost_model(options, pictures); });
  return written ? 0 : 1;
}
