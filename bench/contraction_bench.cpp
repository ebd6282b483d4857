// Measures the contraction examples on one backend and checks what they compute.
//   apl_bench --backend=cuda --examples=examples [--case=mm1] [--json=FILE]
// Inputs are uniform in (-1, 1). The result is checked element by element on a sample against f64:
//   |got - ref| <= u*|ref| + 4*K*u*sum|a||b|,  u = 2^-24 (ARCHITECTURE's bound for f32),
// and every element is looked at for NaN. Times are medians of calls without copies to and from the device.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "codegen/codegen.h"
#include "codegen/runtime/program.h"
#include "frontend/frontend.h"
#include "passes/pipeline.h"

namespace {

struct Case {
  std::string name, file, entry;
  std::string x, y, z;  // dims of operands and result, one letter each
  std::map<char, std::int64_t> sizes;
};

std::vector<Case> cases(bool small) {
  std::vector<Case> all;
  auto square = [&](const char* name, const char* x, const char* y) {
    std::int64_t n = small ? 512 : 4096;
    all.push_back({name, fmt::format("{}.fut", name), name, x, y, "ab", {{'a', n}, {'b', n}, {'q', n}}});
  };
  square("mm0", "aq", "bq");
  square("mm1", "aq", "qb");
  square("mm2", "qa", "bq");
  square("mm3", "qa", "qb");
  const std::int64_t datasets[4][2] = {{32, 32}, {32, 31}, {31, 31}, {16, 2048}};
  for (int d = 0; d < 4; ++d) {
    std::int64_t n = small ? datasets[d][0] / 4 : datasets[d][0], q = small ? datasets[d][1] / 4 : datasets[d][1];
    std::map<char, std::int64_t> sizes;
    for (char c : std::string("abcijk")) sizes[c] = n;
    sizes['q'] = q;
    all.push_back({fmt::format("sd1_7_ds{}", d + 1), "sd1_7.fut", "sd1_7", "icaq", "qbjk", "abcijk", sizes});
    all.push_back({fmt::format("sd2_3_ds{}", d + 1), "sd2_3.fut", "sd2_3", "kiaq", "bcjq", "abcijk", sizes});
  }
  return all;
}

std::vector<std::int64_t> shape_of(const std::string& dims, const std::map<char, std::int64_t>& sizes) {
  std::vector<std::int64_t> shape;
  for (char c : dims) shape.push_back(sizes.at(c));
  return shape;
}

apl::HostValue random_array(const std::vector<std::int64_t>& shape, std::uint64_t seed) {
  std::size_t count = 1;
  for (std::int64_t n : shape) count *= static_cast<std::size_t>(n);
  std::vector<float> data(count);
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (float& x : data) x = uniform(random);
  return apl::HostValue::array<float>(apl::ScalarType::f32, shape, data);
}

struct Check {
  bool ok = true;
  double worst = 0;       // largest error as a part of the bound
  double norm_error = 0;  // ||got - ref|| / ||ref|| over the sample
  std::string message;
};

const float* floats(const apl::HostValue& value) { return reinterpret_cast<const float*>(value.data.data()); }

Check check(const Case& c, const std::vector<apl::HostValue>& inputs, const apl::HostValue& result) {
  Check check;
  const float *x = floats(inputs[0]), *y = floats(inputs[1]), *z = floats(result);
  std::vector<std::int64_t> shape = shape_of(c.z, c.sizes);
  if (result.shape != shape) return {false, 0, 0, "wrong shape"};
  std::size_t count = result.data.size() / sizeof(float);
  for (std::size_t i = 0; i < count; ++i)
    if (std::isnan(z[i])) return {false, 0, 0, fmt::format("NaN at element {}", i)};
  std::mt19937_64 random(42);
  const std::int64_t depth = c.sizes.at('q');
  const double u = std::ldexp(1.0, -24);
  double squared_error = 0, squared_norm = 0;
  for (int sample = 0; sample < 20000; ++sample) {
    std::size_t flat = random() % count;
    std::map<char, std::int64_t> at;
    std::size_t rest = flat;
    for (std::size_t k = shape.size(); k-- > 0;) {
      at[c.z[k]] = static_cast<std::int64_t>(rest % static_cast<std::size_t>(shape[k]));
      rest /= static_cast<std::size_t>(shape[k]);
    }
    double sum = 0, sum_abs = 0;
    auto element = [&](const std::string& dims, std::int64_t q) {
      at['q'] = q;
      std::int64_t index = 0;
      for (char d : dims) index = index * c.sizes.at(d) + at[d];
      return index;
    };
    const float *xs = x + element(c.x, 0), *ys = y + element(c.y, 0);
    const std::int64_t x_step = element(c.x, 1) - element(c.x, 0), y_step = element(c.y, 1) - element(c.y, 0);
    for (std::int64_t q = 0; q < depth; ++q) {
      double product = double(xs[q * x_step]) * double(ys[q * y_step]);
      sum += product;
      sum_abs += std::fabs(product);
    }
    double error = std::fabs(double(z[flat]) - sum);
    double bound = u * std::fabs(sum) + 4 * double(depth) * u * sum_abs;
    check.worst = std::max(check.worst, error / bound);
    squared_error += error * error;
    squared_norm += sum * sum;
  }
  check.norm_error = std::sqrt(squared_error / squared_norm);
  if (check.worst > 1) check = {false, check.worst, check.norm_error, "error over the bound"};
  if (check.norm_error > 1e-5) check = {false, check.worst, check.norm_error, "error over 1e-5 in norm"};
  return check;
}

apl::Result<apl::Program> compile(const std::string& file, const std::string& backend,
                                  const std::map<std::string, std::int64_t>& parameters) {
  std::ifstream in(file);
  std::string text(std::istreambuf_iterator<char>(in), {});
  std::optional<apl::Diagnostic> error;
  auto module = apl::compile({file, text}, [&](const apl::Diagnostic& d) { error = d; });
  if (!module) return *error;
  auto pipeline =
      apl::parse_pipeline(apl::standard_pipeline(apl::Stage::memory, apl::Machine::gpu), apl::PassRegistry::builtin());
  apl::PipelineOptions options;
  options.parameters = parameters;
  options.verify_each = false;
  auto status = apl::run_pipeline(*module, *pipeline, options);
  if (!status) return std::move(status).error();
  apl::CodegenOptions codegen;
  codegen.parameters = parameters;
  codegen.plans = backend == "c" ? 4 : 12;
  auto program = apl::generate(*module, backend == "c" ? apl::Target::c : apl::Target::cuda, codegen);
  if (!program) return std::move(program).error();
  apl::ProgramOptions load;
  load.backend = backend;
  return apl::Program::load(program->host, load);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"measures and checks the contraction examples"};
  std::string backend = "c", examples = "examples", only, json_file;
  std::vector<std::string> parameter_texts;
  bool small = false;
  int runs = 10;
  app.add_option("--backend", backend, "c, emulate or cuda")->capture_default_str();
  app.add_option("--examples", examples, "folder of the programs")->capture_default_str();
  app.add_option("--case", only, "cases whose name contains this");
  app.add_option("--json", json_file, "write the results there");
  app.add_option("--runs", runs, "calls a case")->capture_default_str();
  app.add_option("--param", parameter_texts, "tuning parameter NAME=VALUE");
  app.add_flag("--small", small, "an eighth of the sizes");
  CLI11_PARSE(app, argc, argv);
  std::map<std::string, std::int64_t> parameters;
  for (const std::string& text : parameter_texts) {
    std::size_t equals = text.find('=');
    if (equals != std::string::npos) parameters[text.substr(0, equals)] = std::stoll(text.substr(equals + 1));
  }
  nlohmann::ordered_json all = nlohmann::ordered_json::object();
  bool ok = true;
  fmt::print("{:<12} {:>10} {:>10} {:>10} {:>10}  {}\n", "case", "ms", "GFLOP/s", "of bound", "norm err", "check");
  for (const Case& c : cases(small)) {
    if (c.name.find(only) == std::string::npos) continue;
    auto program = compile(examples + "/" + c.file, backend, parameters);
    if (!program) {
      fmt::print("{:<12} {}\n", c.name, program.error().message);
      all[c.name] = {{"error", program.error().message}};
      ok = false;
      continue;
    }
    std::vector<apl::HostValue> inputs{random_array(shape_of(c.x, c.sizes), 1),
                                       random_array(shape_of(c.y, c.sizes), 2)};
    auto result = program->call(c.entry, inputs);
    auto times = result ? program->benchmark(c.entry, inputs, runs) : std::move(result).error();
    if (!result || !times) {
      const apl::Diagnostic& error = result ? times.error() : result.error();
      fmt::print("{:<12} {}\n", c.name, error.message);
      all[c.name] = {{"error", error.message}};
      ok = false;
      continue;
    }
    std::sort(times->begin(), times->end());
    double median = (*times)[times->size() / 2];
    double flop = 2;
    for (const auto& [name, size] : c.sizes) flop *= double(size);
    Check checked = check(c, inputs, (*result)[0]);
    ok = ok && checked.ok;
    fmt::print("{:<12} {:>10.3f} {:>10.0f} {:>10.3f} {:>10.2e}  {}\n", c.name, median / 1000, flop / median / 1000,
               checked.worst, checked.norm_error, checked.ok ? "ok" : checked.message);
    std::fflush(stdout);
    all[c.name] = {{"microseconds", median},           {"minimum", times->front()},
                   {"gflops", flop / median / 1000},   {"error_of_bound", checked.worst},
                   {"norm_error", checked.norm_error}, {"ok", checked.ok}};
  }
  if (!json_file.empty()) std::ofstream(json_file) << all.dump(2) << "\n";
  return ok ? 0 : 1;
}
