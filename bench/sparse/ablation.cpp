// What the parts of the search are worth: withdrawing and local search (table 6), depth and breadth (table 7), levels
// on a matrix made for them (figure 12), and the memory of what is found (figures 8 and 10).
#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <map>

#include "aplc/sparse/measure.h"
#include "bench/sparse/matrices.h"
#include "bench/sparse/report.h"
#include "passes/sparse/read.h"
#include "passes/sparse/search.h"

namespace apl::bench {
namespace {

using namespace sparse;
using nlohmann::json;

struct Found {
  Plan plan;
  std::int64_t tiles = 0, atomic_tiles = 0, atomic_blocks = 0;  // atomic: another tile has one of their rows
  double bytes = 0;                                             // of the operand as the tiles store it
};

Found search_with(const Csr& matrix, const Profile& profile, const SearchOptions& options) {
  Found found{search(matrix, profile, options)};
  const auto value = static_cast<double>(options.problem.element_bytes);
  constexpr double kIndex = 4;
  RowGroup group;
  GroupTiles maker(found.plan.rest, matrix.columns);
  std::vector<TileShape> shapes;
  for (std::size_t index = 0; index < found.plan.groups.size() && !found.plan.dense; ++index) {
    GroupPlan copy = found.plan.groups[index];
    group.read(matrix, found.plan.row_order, static_cast<std::int64_t>(index));
    shapes.clear();
    maker.append(group, copy.selections, copy.rest, shapes);
    for (const TileShape& shape : shapes) {
      const bool block = shape.kind == TileShape::Kind::block;
      found.tiles += 1;
      found.atomic_tiles += shape.shared;
      found.atomic_blocks += shape.shared && block;
      const auto rows = static_cast<double>(shape.rows), elements = static_cast<double>(shape.elements);
      // A row number for each tile or list, a column for each step's column or element.
      if (block) found.bytes += kIndex + elements * kStepColumns * (kIndex + rows * value);
      if (shape.kind == TileShape::Kind::ell) found.bytes += rows * kIndex + rows * elements * (kIndex + value);
      if (shape.kind == TileShape::Kind::run) found.bytes += elements * (2 * kIndex + value);
    }
  }
  if (found.plan.dense) found.bytes = static_cast<double>(matrix.rows) * static_cast<double>(matrix.columns) * value;
  return found;
}

SearchOptions options_for(Operator op, std::int64_t dense, const SparseOptions& options) {
  SearchOptions how;
  how.problem = {op, dense, 2};
  how.threads = options.threads;
  return how;
}

const Profile& h200() { return *builtin_profile("h200"); }

std::optional<Csr> matrix_for(const std::string& name, const SparseOptions& options) {
  if (!options.data.empty() && (name == "cora" || name == "citeseer" || name == "pubmed")) {
    std::ifstream in(fmt::format("{}/{}.mtx", options.data, name), std::ios::binary);
    if (in) {
      auto matrix = read_matrix(std::string(std::istreambuf_iterator<char>(in), {}));
      if (!matrix) return std::nullopt;
      matrix->value.clear();
      return std::move(*matrix);
    }
  }
  for (const MatrixName& known : matrix_names())
    if ((known.name == name || known.name == name + "_syn") && known.nonzeros <= options.most)
      return make_matrix(known.name, options.threads);
  return std::nullopt;
}

// The cheapest plan that makes tiles: where the dense product wins it would hide what the search found.
double tiled_cost(const Plan& plan) {
  double least = 0;
  for (const auto& [name, cost] : plan.considered)
    if (name != "dense" && (least == 0 || cost < least)) least = cost;
  return least;
}

// Latency and search time of a changed search over those of the usual one.
struct Ratio {
  double latency, seconds;
};
Ratio over(const Found& changed, const Found& usual) {
  return {tiled_cost(changed.plan) / tiled_cost(usual.plan), changed.plan.seconds / std::max(usual.plan.seconds, 1e-6)};
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
  fmt::print("\nTable 6: SpMM, J = 32, over the usual search; (paper's number, for the real matrix on an A100)\n");
  fmt::print("{:14} {:>20} {:>20} {:>20} {:>28}\n", "matrix", "no withdraw", "no local search", "its search time",
             "atomic blocks, no withdraw");
  json all = json::array();
  for (const Row& row : rows) {
    const auto matrix = matrix_for(row.name, options);
    if (!matrix) continue;
    SearchOptions how = options_for(Operator::spmm, 32, options);
    const Found usual = search_with(*matrix, h200(), how);
    how.greedy.withdraw = false;
    const Found keeping = search_with(*matrix, h200(), how);
    how.greedy.withdraw = true;
    how.greedy.ratio = 1;
    const Found single = search_with(*matrix, h200(), how);
    const Ratio a = over(keeping, usual), b = over(single, usual);
    fmt::print("{:14} {:12.3f} ({:.1f})   {:12.3f} ({:.1f})   {:11.1f} ({:.1f})   {:>12} of {} -> {} of {}\n", row.name,
               a.latency, row.paper_withdraw, b.latency, row.paper_local, b.seconds, row.paper_seconds,
               usual.atomic_blocks, usual.tiles, keeping.atomic_blocks, keeping.tiles);
    all.push_back({{"matrix", row.name},
                   {"no_withdraw", a.latency},
                   {"no_local_search", b.latency},
                   {"no_local_search_seconds", b.seconds},
                   {"atomic_tiles", usual.atomic_tiles},
                   {"atomic_blocks", usual.atomic_blocks},
                   {"tiles", usual.tiles},
                   {"atomic_blocks_no_withdraw", keeping.atomic_blocks},
                   {"atomic_tiles_no_withdraw", keeping.atomic_tiles},
                   {"atomic_tiles_no_local_search", single.atomic_tiles}});
  }
  return all;
}

json table_7(const SparseOptions& options) {
  using Numbers = std::array<double, 6>;
  const std::map<std::string, std::array<Numbers, 2>> paper = {
      {"reddit_clu", {{{1.1, 1.0, 1.0, 1.0, 1.1, 1.9}, {1.4, 1.3, 1.0, 1.0, 2.3, 1.1}}}},
      {"ND_syn", {{{1.7, 1.4, 1.6, 1.0, 1.1, 1.3}, {1.1, 1.1, 1.0, 1.0, 1.6, 1.1}}}},
      {"logsparse", {{{1.0, 1.0, 1.0, 1.0, 1.0, 1.0}, {1.3, 1.0, 1.0, 1.0, 2.1, 1.0}}}},
      {"strided", {{{1.0, 1.0, 1.0, 1.0, 1.0, 2.0}, {1.2, 1.0, 1.0, 1.0, 2.6, 1.4}}}}};
  fmt::print(
      "\nTable 7: over the usual search (no limit of depth, all formats); latency, paper's in brackets, and time\n");
  fmt::print("{:12} {:5}", "matrix", "op");
  for (const char* name : {"1 level", "2 levels", "10 levels", "100 levels", "block", "ell / 1d"})
    fmt::print(" {:>17}", name);
  fmt::print("\n");
  json all = json::array();
  for (const char* name : {"reddit_clu", "proteins_clu", "ND_syn", "logsparse", "strided", "crossed"}) {
    const auto matrix = matrix_for(name, options);
    if (!matrix) continue;
    for (const Operator op : {Operator::spmm, Operator::sddmm}) {
      const SearchOptions usual_options = options_for(op, op == Operator::spmm ? 64 : 256, options);
      const Found usual = search_with(*matrix, h200(), usual_options);
      fmt::print("{:12} {:5}", name, to_text(op));
      json row{{"matrix", name}, {"operator", std::string(to_text(op))}};
      const auto known = paper.find(name);
      int column = 0;
      const auto look = [&](const std::string& what, const SearchOptions& how) {
        const Ratio ratio = over(search_with(*matrix, h200(), how), usual);
        const std::string other =
            known == paper.end() ? "-" : fmt::format("{:.1f}", known->second[op == Operator::sddmm][column]);
        fmt::print(" {:6.3f} ({}) {:5.2f}", ratio.latency, other, ratio.seconds);
        row[what] = {{"latency", ratio.latency}, {"seconds", ratio.seconds}};
        ++column;
      };
      for (const int levels : {1, 2, 10, 100}) {
        SearchOptions how = usual_options;
        how.greedy.levels = levels;
        look(fmt::format("levels {}", levels), how);
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
  json result;
  fmt::print(
      "\nFigure 12's kind of matrix, SpMM, J = 32 (paper, A100: 2.24 ms with one level, 0.62 ms with all, 3.6 x)\n");
  for (const char* device : {"h200", "cpu"}) {
    SearchOptions how = options_for(Operator::spmm, 32, options);
    how.problem.element_bytes = 4;
    const Profile& profile = *builtin_profile(device);
    aplc::sparse::Measure measure(matrix, how.problem);
    const Found all = search_with(matrix, profile, how);
    how.greedy.levels = 1;
    const Found one = search_with(matrix, profile, how);
    fmt::print("{:5} by the model {:.1f} us with one level, {:.1f} us with all: {:.2f} x", device, one.plan.cost / 1e3,
               all.plan.cost / 1e3, one.plan.cost / all.plan.cost);
    result[device] = {{"one_level", one.plan.cost}, {"all_levels", all.plan.cost}};
    if (std::string(device) == "cpu") {
      const double slow = measure(one.plan), fast = measure(all.plan);
      fmt::print("; measured {:.1f} and {:.1f} us: {:.2f} x", slow / 1e3, fast / 1e3, slow / fast);
      result[device]["one_level_measured"] = slow;
      result[device]["all_levels_measured"] = fast;
    }
    fmt::print("\n");
  }
  return result;
}

}  // namespace

json run_ablation(const SparseOptions& options) {
  return {{"table_6", table_6(options)}, {"table_7", table_7(options)}, {"figure_12", figure_12(options)}};
}

json run_memory(const SparseOptions& options) {
  fmt::print("\nBytes of the operand over CSR's (SpMM, J = 128) and COO's (SDDMM, K = 128), fp16 values\n");
  json all = json::array();
  std::vector<std::string> names = {"cora", "citeseer", "pubmed"};
  for (const MatrixName& known : matrix_names()) names.push_back(known.name);
  for (const std::string& name : names) {
    if (name == "cora_syn" || name == "citeseer_syn" || name == "pubmed_syn") continue;
    const auto matrix = matrix_for(name, options);
    if (!matrix) continue;
    const auto nonzeros = static_cast<double>(matrix->nonzeros());
    const double csr = nonzeros * 6 + 4 * static_cast<double>(matrix->rows + 1), coo = nonzeros * 10;
    const Found spmm = search_with(*matrix, h200(), options_for(Operator::spmm, 128, options));
    const Found sddmm = search_with(*matrix, h200(), options_for(Operator::sddmm, 128, options));
    fmt::print("{:22} CSR {:6.2f}{}  COO {:6.2f}{}\n", name, spmm.bytes / csr, spmm.plan.dense ? " dense" : "      ",
               sddmm.bytes / coo, sddmm.plan.dense ? " dense" : "");
    all.push_back({{"matrix", name},
                   {"over_csr", spmm.bytes / csr},
                   {"over_coo", sddmm.bytes / coo},
                   {"dense", {spmm.plan.dense, sddmm.plan.dense}}});
  }
  return all;
}

}  // namespace apl::bench
