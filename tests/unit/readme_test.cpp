// The figures of README's table are those of the results that it names.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
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

// "| 8 | PEER | 1.95 | 0.82 |", as the row that begins with `what` has it: cases, geometric mean, worst.
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

// How many times as long the fastest peer takes whose result is exact.
double best_exact_peer_over_ours(const json& one) {
  const json inexact = one.value("inexact", json::object());
  double best = INFINITY;
  for (const auto& [name, time] : one["peers"].items())
    if (!inexact.contains(name)) best = std::min(best, time.get<double>());
  return best / one["us"].get<double>();
}

// Of the cases that are not mixed of several patterns.
std::vector<double> exact_ratios(const json& results, const std::string& op) {
  std::vector<double> ratios;
  for (const json& one : results["cases"])
    if (one["kind"] != "mixed" && one["operator"] == op) ratios.push_back(best_exact_peer_over_ours(one));
  return ratios;
}

}  // namespace

TEST_CASE("README's figures of contractions are those of the recorded results") {
  const std::string readme = tree_file("README.md");
  const json recorded = results(readme, "contractions");
  std::map<std::string, std::vector<double>> ratios;
  for (const json& one : recorded["cases"])
    if (one["type"] == "f32") ratios[one["group"]].push_back(one["torch_us"].get<double>() / one["us"].get<double>());
  check_row(readme, "contractions of TCCG, f32, H100", ratios["tccg"]);
  check_row(readme, "contractions of rank 6, f32, H100", ratios["sd"]);
  check_row(readme, "products of matrices, f32, H100", ratios["mm"]);
}

TEST_CASE("README's figures of array programs are those of the recorded results") {
  const std::string readme = tree_file("README.md");
  const json recorded = results(readme, "array programs");
  std::vector<double> ratios;
  for (const json& one : recorded["milliseconds"]) ratios.push_back(one["best_over_ours"].get<double>());
  check_row(readme, "array programs, H100", ratios);
}

TEST_CASE("README's figures of sparse products are those of the recorded results") {
  const std::string readme = tree_file("README.md");
  std::vector<double> csr;
  const json by_rows = results(readme, "sparse products");
  for (const json& one : by_rows["cases"])
    if (one["operator"] == "spmm") csr.push_back(best_exact_peer_over_ours(one));
  check_row(readme, "SpMM, f16, H200", csr);
  check_row(readme, "SpMM, f16, H200, every format",
            exact_ratios(results(readme, "beside all formats in f16"), "spmm"));
  check_row(readme, "SpMM, f32, H200, every format", exact_ratios(results(readme, "in f32"), "spmm"));
  check_row(readme, "SDDMM, f16, H200", exact_ratios(results(readme, "SDDMM"), "sddmm"));
  std::vector<double> on_cpu;
  const json cpu = results(readme, "on a CPU");
  for (const json& one : cpu["cases"])
    if (one["operator"] == "spmm") on_cpu.push_back(one["ratio"].get<double>());
  check_row(readme, "SpMM, one or two threads of a Xeon", on_cpu);
}
