// What the parts of apl_sparse_bench share: where results go, and pictures of points.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace apl::bench {

struct SparseOptions {
  std::string data;               // folder with real matrices, used before stand-ins; empty: none
  std::int64_t most = 2'000'000;  // larger matrices are left out
  int threads = 0;
};

struct PlotPoint {
  double x, y;
  std::string name;
};
// Points on two logarithmic axes; with `diagonal` a line where both are equal.
std::string plot(const std::string& title, const std::string& x_name, const std::string& y_name,
                 const std::vector<PlotPoint>& points, bool diagonal);

// Each prints tables, and gives what is in them.
nlohmann::json run_ablation(const SparseOptions& options);
nlohmann::json run_memory(const SparseOptions& options);
nlohmann::json run_search_times(const SparseOptions& options, std::vector<PlotPoint>& points);
nlohmann::json run_cost_model(const SparseOptions& options, std::vector<PlotPoint>& points);

}  // namespace apl::bench
