// Measures the contraction examples on one backend and checks what they compute.
//   apl_bench --backend=cuda --examples=examples [--case=mm1] [--json=FILE]
// Inputs are uniform in (-1, 1). The result is checked element by element on a sample against f64:
//   |got - ref| <= u*|ref| + 4*K*u*sum|a||b|,  u = 2^-24 (four times the bound of Higham 3.1 for f32),
// and every element is looked at for NaN. Times are medians of calls without copies to and from the device.
//   apl_bench --ablation --backend=cuda [--small] [--json=FILE]
// What parts of the tiled form are worth, one set of numbers for all instances, and times around calls.
//   apl_bench --variants --backend=cuda [--small] [--json=FILE]
// Products of matrices tiled, split and not tiled.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "bench/ablation.h"
#include "bench/cases.h"
#include "tests/command_line.h"

int main(int argc, char** argv) {
  using namespace apl::bench;
  apl::CommandLine line("measures and checks the contraction examples");
  std::string backend = "c", examples = "examples", only, json_file;
  std::vector<std::string> parameter_texts;
  bool small = false, ablation = false, variants = false;
  int runs = 10;
  line.option("--backend", backend, "c, emulate or cuda");
  line.option("--examples", examples, "folder of the programs");
  line.option("--case", only, "cases whose name contains this");
  line.option("--json", json_file, "write the results there");
  line.option("--runs", runs, "calls a case");
  line.option("--param", parameter_texts, "tuning parameter NAME=VALUE");
  line.flag("--small", small, "an eighth of the sizes");
  line.flag("--ablation", ablation, "variants of the tiled form, parameter sets, times around calls");
  line.flag("--variants", variants, "variants of computing products of matrices of many shapes");
  if (const auto code = line.parse(argc, argv)) return *code;
  std::map<std::string, std::int64_t> parameters;
  for (const std::string& text : parameter_texts) {
    std::size_t equals = text.find('=');
    if (equals != std::string::npos) parameters[text.substr(0, equals)] = std::stoll(text.substr(equals + 1));
  }
  nlohmann::ordered_json all = nlohmann::ordered_json::object();
  bool ok = true;
  if (ablation || variants) {
    const AblationOptions options{backend, examples, small, std::min(runs, 5)};
    if (variants) ok = run_variants(options, all) && ok;
    if (ablation) {
      ok = run_calls(options, all) && ok;
      ok = run_ablation(options, all) && ok;
      ok = run_parameter_sets(options, all) && ok;
    }
    if (!json_file.empty()) std::ofstream(json_file) << all.dump(2) << "\n";
    return ok ? 0 : 1;
  }
  fmt::print("{:<12} {:>10} {:>10} {:>10} {:>10}  {}\n", "case", "ms", "GFLOP/s", "of bound", "norm err", "check");
  for (const Case& c : cases(small)) {
    if (c.name.find(only) == std::string::npos) continue;
    apl::ProgramOptions load;
    load.backend = backend;
    auto program = load_file(examples + "/" + c.file, parameters, load, usual_plans(backend));
    if (!program) {
      fmt::print("{:<12} {}\n", c.name, program.error().message);
      all[c.name] = {{"error", program.error().message}};
      ok = false;
      continue;
    }
    const std::vector<apl::HostValue> inputs = random_inputs(c);
    auto result = program->call(c.entry, inputs);
    auto times = result ? program->benchmark(c.entry, inputs, runs) : std::move(result).error();
    if (!result || !times) {
      const apl::Diagnostic& error = result ? times.error() : result.error();
      fmt::print("{:<12} {}\n", c.name, error.message);
      all[c.name] = {{"error", error.message}};
      ok = false;
      continue;
    }
    const double middle = median(*times), flop = operations(c);
    Check checked = check(c, inputs, (*result)[0]);
    ok = ok && checked.ok;
    fmt::print("{:<12} {:>10.3f} {:>10.0f} {:>10.3f} {:>10.2e}  {}\n", c.name, middle / 1000, flop / middle / 1000,
               checked.worst, checked.norm_error, checked.ok ? "ok" : checked.message);
    std::fflush(stdout);
    all[c.name] = {{"microseconds", middle},           {"minimum", *std::min_element(times->begin(), times->end())},
                   {"gflops", flop / middle / 1000},   {"error_of_bound", checked.worst},
                   {"norm_error", checked.norm_error}, {"ok", checked.ok}};
  }
  if (!json_file.empty()) std::ofstream(json_file) << all.dump(2) << "\n";
  return ok ? 0 : 1;
}
