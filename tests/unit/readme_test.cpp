// The figures of README's table are those of the results that it names.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

namespace {

using nlohmann::json;

std::string tree_file(const std::string& name) {
  std::ifstream file(std::string(APL_SOURCE_DIR "/") + name);
  REQUIRE_MESSAGE(file.good(), name);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The results that README links to as [label](bench/results/...).
json results(const std::string& readme, const std::string& label) {
  std::smatch found;
  REQUIRE_MESSAGE(std::regex_search(readme, found, std::regex("\\[" + label + "\\]\\((bench/results/[^)]*)\\)")),
                  label);
  return json::parse(tree_file(found[1]));
}

// "| 8 | PEER | 1.95 | 0.82 |", as the row that begins with `what` has it.
void check_row(const std::string& readme, const std::string& what, const std::vector<double>& ratios) {
  std::smatch found;
  const bool is_there = std::regex_search(
      readme, found, std::regex("\\| " + what + " \\| (\\d+) \\| [^|]* \\| ([0-9.]+) \\| ([0-9.]+) \\|"));
  REQUIRE_MESSAGE(is_there, what);
  double logarithms = 0;
  for (const double ratio : ratios) logarithms += std::log(ratio);
  REQUIRE(!ratios.empty());
  INFO(what);
  CHECK(found[1] == std::to_string(ratios.size()));
  CHECK(found[2] == fmt::format("{:.2f}", std::exp(logarithms / static_cast<double>(ratios.size()))));
  CHECK(found[3] == fmt::format("{:.2f}", *std::ranges::min_element(ratios)));
}

}  // namespace

TEST_CASE("README's figures of contractions are those of the recorded results") {
  const std::string readme = tree_file("README.md");
  const json all = results(readme, "contractions");
  std::vector<double> products, contractions;
  for (const auto& [name, ours] : all["apl"].items()) {
    const double time = ours["microseconds"].get<double>();
    const json& peer = all["peers"][name];
    if (name.starts_with("mm"))
      products.push_back(peer["cublas"].get<double>() / time);
    else
      contractions.push_back(peer["einsum"].get<double>() / time);
  }
  check_row(readme, "products of matrices, f32, H200", products);
  check_row(readme, "contractions of rank 6, f32, H200", contractions);
}

TEST_CASE("README's figures of sparse products are those of the recorded results") {
  const std::string readme = tree_file("README.md");
  std::vector<double> spmm, sddmm;
  const json on_gpu = results(readme, "sparse products");
  for (const json& one : on_gpu["cases"]) {
    double best = INFINITY;
    for (const auto& [name, time] : one["peers"].items()) best = std::min(best, time.get<double>());
    (one["operator"] == "spmm" ? spmm : sddmm).push_back(best / one["us"].get<double>());
  }
  check_row(readme, "SpMM, f16, H200", spmm);
  check_row(readme, "SDDMM, f16, H200", sddmm);
  std::vector<double> on_cpu;
  const json cpu = results(readme, "on a CPU");
  for (const json& one : cpu["cases"])
    if (one["operator"] == "spmm") on_cpu.push_back(one["ratio"].get<double>());
  check_row(readme, "SpMM, one or two threads of a Xeon", on_cpu);
}
