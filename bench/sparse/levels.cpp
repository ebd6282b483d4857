// What levels are worth on a core of this machine: plans of a whole search, of one with fewer levels and of one format,
// run in turn, by costs that were measured here.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "bench/sparse/matrices.h"
#include "bench/sparse/report.h"
#include "suite/sparse/calibrate.h"
#include "suite/sparse/measure.h"

namespace apl::bench {
namespace {

using namespace sparse;
using json = nlohmann::json;

constexpr int kRounds = 9;
constexpr std::int64_t kColumnsOfB = 32;

struct Variant {
  const char* name;
  int levels;  // 0: no limit
  CoverFormats formats;
};
const std::vector<Variant> kVariants = {{"all levels", 0, {true, true, true}},
                                        {"one level", 1, {true, true, true}},
                                        {"ell", 0, {false, true, false}},
                                        {"segments", 0, {false, false, true}},
                                        {"blocks", 0, {true, false, false}}};

Plan plan_for(const Csr& matrix, const Profile& here, const Variant& variant, const SparseOptions& options) {
  SearchOptions how = options_for(Operator::spmm, kColumnsOfB, options);
  how.problem.element_bytes = 4;
  how.greedy.levels = variant.levels;
  how.formats = variant.formats;
  how.reorder = false;
  Profile profile = here;
  profile.dense_launch = 1e15;  // tiles alone
  return search(matrix, profile, how);
}

}  // namespace

json run_levels(const SparseOptions& options) {
  const Profile here = calibrate("here");
  json all = json::array();
  fmt::print("\nLevels on a core, SpMM, f32, J = {}: microseconds, the least of {} rounds, and by the model\n",
             kColumnsOfB, kRounds);
  std::vector<double> logs(kVariants.size());
  int count = 0;
  for (const char* name :
       {"crossed", "levels_16384_20", "halves_8192_60", "logsparse", "strided", "window_4096_64", "blocks_768x768_121",
        "768x768_s90", "move_3072x768_s95", "bandrows_8192_4", "pubmed_syn", "communities_20000_40"}) {
    if (!is_wanted(name, options)) continue;
    const Csr matrix = *make_matrix(name, options.threads);
    std::vector<Plan> plans;
    for (const Variant& variant : kVariants) plans.push_back(plan_for(matrix, here, variant, options));
    Measure measure(matrix, plans.front().problem);
    std::vector<double> least(plans.size(), std::numeric_limits<double>::infinity());
    for (int round = 0; round < kRounds; ++round)
      for (std::size_t k = 0; k < plans.size(); ++k) least[k] = std::min(least[k], measure(plans[k]));
    json line{{"matrix", name}, {"nonzeros", matrix.nonzeros()}};
    fmt::print("{:22}", name);
    for (std::size_t k = 0; k < plans.size(); ++k) {
      line["measured_us"][kVariants[k].name] = least[k] / 1e3;
      line["model_us"][kVariants[k].name] = plans[k].cost / 1e3;
      logs[k] += std::log(least[k] / least[0]);
      fmt::print("  {} {:.0f} ({:.0f})", kVariants[k].name, least[k] / 1e3, plans[k].cost / 1e3);
    }
    fmt::print("\n");
    all.push_back(std::move(line));
    ++count;
  }
  fmt::print("beside all levels, geometric mean:");
  for (std::size_t k = 1; k < kVariants.size() && count > 0; ++k)
    fmt::print("  {} {:.3f}", kVariants[k].name, std::exp(logs[k] / count));
  fmt::print("\n");
  return {{"profile", to_text(here)}, {"matrices", std::move(all)}};
}

}  // namespace apl::bench
