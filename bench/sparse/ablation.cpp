// What the parts of the search are worth: withdrawing and local search (table 6), depth and breadth (table 7), levels
// on a matrix made for them (figure 12).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "bench/sparse/first_level.h"
#include "bench/sparse/matrices.h"
#include "bench/sparse/report.h"
#include "suite/sparse/measure.h"

namespace apl::bench {
namespace {

using namespace sparse;
using nlohmann::json;

// The dense product would hide what the search finds.
Profile without_dense(const char* name) {
  Profile profile = *builtin_profile(name);
  profile.dense_launch = 1e15;
  return profile;
}

// Latency and search time of a changed search over those of the usual one.
struct Ratio {
  double latency, seconds;
};
Ratio over(const Found& changed, const Found& usual) {
  return {tiled_cost(changed.plan) / tiled_cost(usual.plan),
          changed.processor_seconds / std::max(usual.processor_seconds, 1e-6)};
}

json table_6(const SparseOptions& options) {
  struct Row {
    const char* name;
    double paper_withdraw, paper_local, paper_seconds;
  };
  const Row rows[] = {
      {"cora", 1.0, 1.0, 1.0},           {"citeseer", 1.0, 1.0, 1.3},       {"pubmed", 1.0, 1.0, 2.2},
      {"ppi_syn", 1.4, 1.2, 61.7},       {"arxiv_syn", 1.1, 1.0, 22.1},     {"ND_syn", 1.2, 1.2, 56.1},
      {"proteins_clu", 1.5, 1.0, 213.5}, {"proteins_syn", 1.5, 1.0, 213.5}, {"reddit_clu", 1.1, 1.0, 267.4}};
  fmt::print(
      "\nTable 6: SpMM, J = 32, over the usual search; in brackets the paper's numbers, for the real matrices on an "
      "A100.\nTiles that are added atomically, blocks and all, with everything, without withdrawing, without local "
      "search (paper,\nproteins: 1 and 81745 blocks)\n");
  fmt::print("{:14} {:>16} {:>16} {:>16} {:>8} {:>17} {:>17} {:>17}\n", "matrix", "no withdraw", "no local search",
             "its search time", "tiles", "atomic: usual", "no withdraw", "no local search");
  const Profile profile = without_dense("h200");
  json all = json::array();
  for (const Row& row : rows) {
    const auto matrix = matrix_for(row.name, options);
    if (!matrix) continue;
    SearchOptions how = options_for(Operator::spmm, 32, options);
    const Found usual = search_with(*matrix, profile, how);
    how.greedy.withdraw = false;
    const Found keeping = search_with(*matrix, profile, how);
    how.greedy.withdraw = true;
    how.greedy.ratio = 1;
    const Found single = search_with(*matrix, profile, how);
    const Ratio a = over(keeping, usual), b = over(single, usual);
    const auto counts = [](const Found& f) { return fmt::format("{} of {}", f.atomic_blocks, f.atomic_tiles); };
    fmt::print("{:14} {:8.3f} ({:5.1f}) {:8.3f} ({:5.1f}) {:8.2f} ({:5.1f}) {:8} {:>17} {:>17} {:>17}\n", row.name,
               a.latency, row.paper_withdraw, b.latency, row.paper_local, b.seconds, row.paper_seconds, usual.tiles,
               counts(usual), counts(keeping), counts(single));
    const auto tiles = [](const Found& f) {
      return json{{"all", f.tiles}, {"atomic", f.atomic_tiles}, {"atomic_blocks", f.atomic_blocks}};
    };
    all.push_back(
        {{"matrix", row.name},
         {"no_withdraw", {{"latency", a.latency}, {"paper", row.paper_withdraw}}},
         {"no_local_search",
          {{"latency", b.latency},
           {"paper", row.paper_local},
           {"search_time", b.seconds},
           {"paper_search_time", row.paper_seconds}}},
         {"tiles", {{"usual", tiles(usual)}, {"no_withdraw", tiles(keeping)}, {"no_local_search", tiles(single)}}}});
  }
  return all;
}

// Depth is counted as the paper does: tiles of what tiles leave are one level more. So ELL rows of what one round of
// blocks leaves are the second level already.
json table_7(const SparseOptions& options) {
  using Numbers = std::array<double, 6>;
  const std::map<std::string, std::array<Numbers, 2>> paper = {
      {"reddit_clu", {{{1.1, 1.0, 1.0, 1.0, 1.1, 1.9}, {1.4, 1.3, 1.0, 1.0, 2.3, 1.1}}}},
      {"ND_syn", {{{1.7, 1.4, 1.6, 1.0, 1.1, 1.3}, {1.1, 1.1, 1.0, 1.0, 1.6, 1.1}}}},
      {"logsparse", {{{1.0, 1.0, 1.0, 1.0, 1.0, 1.0}, {1.3, 1.0, 1.0, 1.0, 2.1, 1.0}}}},
      {"strided", {{{1.0, 1.0, 1.0, 1.0, 1.0, 2.0}, {1.2, 1.0, 1.0, 1.0, 2.6, 1.4}}}}};
  fmt::print(
      "\nTable 7: over the usual search, which has no limit of depth and all formats: latency, in brackets the "
      "paper's, and\nsearch time. The cost of depth 1 is a model's, such tiles cannot be added up\n");
  fmt::print("{:12} {:5}", "matrix", "op");
  for (const char* name : {"depth 1", "depth 2", "depth 10", "depth 100", "blocks alone", "ell / 1d alone"})
    fmt::print(" {:>17}", name);
  fmt::print("\n");
  const Profile profile = without_dense("h200");
  json all = json::array();
  for (const char* name : {"reddit_clu", "proteins_clu", "ppi_syn", "ND_syn", "logsparse", "strided", "crossed"}) {
    const auto matrix = matrix_for(name, options);
    if (!matrix) continue;
    for (const Operator op : {Operator::spmm, Operator::sddmm}) {
      const SearchOptions usual_options = options_for(op, op == Operator::spmm ? 64 : 256, options);
      const Found usual = search_with(*matrix, profile, usual_options);
      fmt::print("{:12} {:5}", name, to_text(op));
      json row{{"matrix", name}, {"operator", std::string(to_text(op))}};
      const auto known = paper.find(name);
      std::size_t column = 0;
      const auto show = [&](const std::string& what, const Ratio& ratio) {
        row[what] = {{"latency", ratio.latency}};
        if (ratio.seconds > 0) row[what]["search_time"] = ratio.seconds;
        std::string other = "-";
        if (known != paper.end()) {
          const double number = known->second[op == Operator::sddmm][column];
          row[what]["paper"] = number;
          other = fmt::format("{:.1f}", number);
        }
        fmt::print(" {:6.3f} ({:>3}) {:>5}", ratio.latency, other,
                   ratio.seconds > 0 ? fmt::format("{:.2f}", ratio.seconds) : "");
        ++column;
      };
      const auto look = [&](const std::string& what, const SearchOptions& how) {
        show(what, over(search_with(*matrix, profile, how), usual));
      };
      show("depth 1",
           {first_level_cost(*matrix, profile, usual_options, usual.plan.row_order) / tiled_cost(usual.plan), 0});
      for (const int depth : {2, 10, 100}) {
        SearchOptions how = usual_options;
        how.greedy.levels = depth - 1;
        look(fmt::format("depth {}", depth), how);
      }
      SearchOptions how = usual_options;
      how.formats = {true, false, false};
      look("block", how);
      how.formats = {false, op == Operator::spmm, op == Operator::sddmm};
      look(op == Operator::spmm ? "ell" : "1d", how);
      fmt::print("\n");
      all.push_back(row);
    }
  }
  return all;
}

// Blocks that pieces of rows cross: with one level either is cut badly.
json figure_12(const SparseOptions& options) {
  const Csr matrix = *make_matrix("crossed", options.threads);
  json result{{"paper", {{"one_level_ms", 2.24}, {"all_levels_ms", 0.62}, {"ratio", 3.6}}}};
  fmt::print(
      "\nFigure 12's kind of matrix, SpMM, J = 32 (paper, A100: 2.24 ms with one level, 0.62 ms with all, 3.6 x)\n");
  for (const char* device : {"h200", "cpu"}) {
    SearchOptions how = options_for(Operator::spmm, 32, options);
    if (std::string(device) == "cpu") how.problem.element_bytes = 4;
    const Profile profile = without_dense(device);
    const Found all = search_with(matrix, profile, how);
    const double one = first_level_cost(matrix, profile, how, all.plan.row_order);
    SearchOptions two_levels = how;
    two_levels.greedy.levels = 1;
    const Found two = search_with(matrix, profile, two_levels);
    const double cost = tiled_cost(all.plan);
    fmt::print("{:5} by the model: one level {:.1f} us, two {:.1f} us, all {:.1f} us: {:.2f} x\n", device, one / 1e3,
               tiled_cost(two.plan) / 1e3, cost / 1e3, one / cost);
    json& here = result[device] = {{"one_level_us", one / 1e3},
                                   {"two_levels_us", tiled_cost(two.plan) / 1e3},
                                   {"all_levels_us", cost / 1e3},
                                   {"ratio", one / cost},
                                   {"plan", all.plan.considered.front().first}};
    if (std::string(device) != "cpu") continue;
    // What can be run of one level: the best plan of one format.
    SearchOptions ell_rows = how;
    ell_rows.formats = {false, true, false};
    apl::sparse::Measure measure(matrix, how.problem);
    const double fast = measure(all.plan), slow = measure(search_with(matrix, profile, ell_rows).plan);
    fmt::print("{:5} measured: ELL rows alone {:.1f} us, all levels {:.1f} us: {:.2f} x\n", device, slow / 1e3,
               fast / 1e3, slow / fast);
    here["lists_measured_us"] = slow / 1e3;
    here["all_levels_measured_us"] = fast / 1e3;
  }
  return result;
}

}  // namespace

json run_ablation(const SparseOptions& options) {
  json result{{"times", "nanoseconds of the H200 by the model; search times in processor time"}};
  result["figure_12"] = figure_12(options);
  result["table_6"] = table_6(options);
  result["table_7"] = table_7(options);
  return result;
}

}  // namespace apl::bench
