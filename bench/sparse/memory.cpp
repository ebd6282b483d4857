// What plans store of the operand, beside what compressed rows and lists of coordinates do (figures 8 and 10).
#include <fmt/format.h>

#include "bench/sparse/matrices.h"
#include "bench/sparse/report.h"

namespace apl::bench {

using namespace sparse;
using nlohmann::json;

json run_memory(const SparseOptions& options) {
  fmt::print(
      "\nBytes of the operand over CSR's (SpMM, J = 128) and COO's (SDDMM, K = 128), fp16 values, the plan and the "
      "cheapest\nplan of tiles (paper, figures 8 and 10, which are not in its text: less than CSR on cora and "
      "citeseer, "
      "much more on\nppi, proteins and reddit, since most is in blocks; 0.5 to 0.7 of COO on blocks pruned)\n");
  Profile tiled = *builtin_profile("h200");
  tiled.dense_launch = 1e15;
  json all = json::array();
  std::vector<std::string> names = {"cora", "citeseer", "pubmed"};
  for (const MatrixName& known : matrix_names())
    if (known.name != "cora_syn" && known.name != "citeseer_syn" && known.name != "pubmed_syn")
      names.push_back(known.name);
  for (const std::string& name : names) {
    const auto matrix = matrix_for(name, options);
    if (!matrix) continue;
    const auto nonzeros = static_cast<double>(matrix->nonzeros());
    const double csr = nonzeros * 6 + 4 * static_cast<double>(matrix->rows + 1), coo = nonzeros * 10;
    json row{{"matrix", name}, {"nonzeros", matrix->nonzeros()}};
    fmt::print("{:20}", name);
    for (const Operator op : {Operator::spmm, Operator::sddmm}) {
      const Found found = search_with(*matrix, tiled, options_for(op, 128, options));
      const double dense = CostModel(tiled, found.plan.problem, 128).dense_product(matrix->rows, matrix->columns) -
                           tiled.dense_launch + builtin_profile("h200")->dense_launch;
      const double one = op == Operator::spmm ? csr : coo;
      const double dense_bytes = 2.0 * static_cast<double>(matrix->rows) * static_cast<double>(matrix->columns);
      const bool is_dense = dense < tiled_cost(found.plan);
      const char* other = op == Operator::spmm ? "over_csr" : "over_coo";
      fmt::print("  {} {:6.2f}{}", op == Operator::spmm ? "CSR" : "COO", found.bytes / one,
                 is_dense ? fmt::format(", dense {:6.2f}", dense_bytes / one) : std::string(14, ' '));
      row[other] = found.bytes / one;
      if (is_dense) row[std::string("dense_") + other] = dense_bytes / one;
    }
    fmt::print("\n");
    all.push_back(row);
  }
  return {{"bytes", "of the operand with 2-byte values and 4-byte indices"}, {"matrices", all}};
}

}  // namespace apl::bench
