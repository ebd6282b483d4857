// What the parts of apl_sparse_bench share: their options, searches and times, and pictures of points.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "passes/sparse/search.h"

namespace apl::bench {

struct SparseOptions {
  std::string data;               // folder with real matrices, used before stand-ins; empty: none
  std::int64_t most = 2'000'000;  // larger matrices are left out
  std::vector<std::string> only;  // names of matrices or parts of them; empty: all
  int threads = 0;
  int sub_tasks = 5000;  // of ELL rows; of nnz segments as many times more as in the paper
};

bool is_wanted(const std::string& name, const SparseOptions& options);
// A real matrix or a stand-in for it; nothing if it is too large or not wanted.
std::optional<sparse::Csr> matrix_for(const std::string& name, const SparseOptions& options);

// A plan and what its tiles are like. Atomic: another tile has one of their rows.
struct Found {
  sparse::Plan plan;
  std::int64_t tiles = 0, atomic_tiles = 0, atomic_blocks = 0;
  double bytes = 0;              // of the operand as the tiles store it
  double processor_seconds = 0;  // of the search, all threads together
};
Found search_with(const sparse::Csr& matrix, const sparse::Profile& profile, const sparse::SearchOptions& how);
sparse::SearchOptions options_for(sparse::Operator op, std::int64_t dense, const SparseOptions& options);
// The cheapest plan that makes tiles: where the dense product wins it would hide what the search found.
double tiled_cost(const sparse::Plan& plan);
// Of all threads so far: what a machine without other work would need, together.
double processor_seconds();

struct PlotPoint {
  double x, y;
  std::string name;
};
// Points on two logarithmic axes; with `diagonal` a line where both are equal.
std::string plot(const std::string& title, const std::string& x_name, const std::string& y_name,
                 const std::vector<PlotPoint>& points, bool diagonal);
struct Picture {
  std::string name, svg;
};

// Each prints tables, and gives what is in them.
nlohmann::json run_ablation(const SparseOptions& options);
nlohmann::json run_levels(const SparseOptions& options);
nlohmann::json run_memory(const SparseOptions& options);
nlohmann::json run_search_times(const SparseOptions& options, std::vector<Picture>& pictures);
nlohmann::json run_cost_model(const SparseOptions& options, std::vector<Picture>& pictures);

}  // namespace apl::bench
