#include "bench/cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <random>

#include "codegen/codegen.h"
#include "frontend/frontend.h"
#include "passes/pipeline.h"

namespace apl::bench {

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

static std::vector<std::int64_t> shape_of(const std::string& dims, const std::map<char, std::int64_t>& sizes) {
  std::vector<std::int64_t> shape;
  for (char c : dims) shape.push_back(sizes.at(c));
  return shape;
}

static HostValue random_array(const std::vector<std::int64_t>& shape, std::uint64_t seed) {
  std::size_t count = 1;
  for (std::int64_t n : shape) count *= static_cast<std::size_t>(n);
  std::vector<float> data(count);
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (float& x : data) x = uniform(random);
  return HostValue::array<float>(ScalarType::f32, shape, data);
}

static const float* floats(const HostValue& value) { return reinterpret_cast<const float*>(value.data.data()); }

Check check(const Case& c, const std::vector<HostValue>& inputs, const HostValue& result) {
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
  const auto samples = std::clamp<std::int64_t>(std::int64_t{50000000} / std::max<std::int64_t>(depth, 1), 50, 20000);
  for (std::int64_t sample = 0; sample < samples; ++sample) {
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
  // Rounding errors of a sum add up like a random walk, which is 1e-5 after some 28,000 steps.
  const double norm_bound = std::max(1e-5, u * std::sqrt(static_cast<double>(depth)));
  if (check.norm_error > norm_bound)
    check = {false, check.worst, check.norm_error, fmt::format("error over {:.1g} in norm", norm_bound)};
  return check;
}

std::vector<HostValue> random_inputs(const Case& c) {
  return {random_array(shape_of(c.x, c.sizes), 1), random_array(shape_of(c.y, c.sizes), 2)};
}

double operations(const Case& c) {
  double all = 2;
  for (const auto& [name, size] : c.sizes) all *= static_cast<double>(size);
  return all;
}

Result<std::string> generate_host(const std::string& file, const std::string& text, const std::string& backend,
                                  const Parameters& parameters, int plans) {
  std::optional<Diagnostic> error;
  auto module = apl::compile({file, text}, [&](const Diagnostic& d) { error = d; });
  if (!module) return *error;
  const Machine machine = backend == "c" ? Machine::cpu : Machine::gpu;
  const auto pipeline = parse_pipeline(standard_pipeline(Stage::memory, machine, plans > 1), PassRegistry::builtin());
  PipelineOptions options;
  options.parameters = parameters;
  options.verify_each = false;
  if (auto status = run_pipeline(*module, *pipeline, options); !status) return std::move(status).error();
  CodegenOptions codegen;
  codegen.parameters = parameters;
  codegen.plans = plans;
  auto program = generate(*module, backend == "c" ? c_target() : cuda_target(), codegen);
  if (!program) return std::move(program).error();
  return std::move(program->host);
}

Result<Program> load_file(const std::string& file, const Parameters& parameters, const ProgramOptions& options,
                          int plans) {
  std::ifstream in(file);
  if (!in) return make_error(Code::command_bad_argument, {}, "cannot read " + file);
  const std::string text(std::istreambuf_iterator<char>(in), {});
  auto host = generate_host(file, text, options.backend, parameters, plans);
  if (!host) return std::move(host).error();
  return Program::load(*host, options);
}

double median(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

}  // namespace apl::bench
