#include "tests/contractions/defaults.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "codegen/codegen.h"
#include "frontend/frontend.h"
#include "passes/pipeline.h"
#include "runtime/program/program.h"
#include "tests/contractions/check.h"
#include "tests/contractions/sums.h"
#include "tests/random/child.h"

namespace apl::contraction_tests {

namespace {

using random_tests::Send;

// Whether there are sums to compare the result with, and that takes a moment: single elements are computed, too.
bool has_sums(const Spec& spec) { return spec.type == ScalarType::f32 && spec.op == Operator::sum; }
bool is_checked(const Spec& spec) {
  constexpr double kDeepest = 256;
  double depth = 1;
  for (std::size_t d = spec.space_rank; d < spec.dims.size(); ++d)
    depth *= static_cast<double>(spec.sizes[0].at(spec.dims[d].size));
  return has_sums(spec) && depth <= kDeepest;
}

}  // namespace

Spec default_spec(std::uint64_t seed, bool small) {
  std::mt19937_64 random(seed * 0x9e3779b97f4a7c15U + 5);
  const auto below = [&](std::uint64_t n) { return static_cast<std::size_t>(random() % n); };
  Spec spec;
  spec.seed = seed;
  spec.entry = fmt::format("d{}", seed);
  constexpr ScalarType kTypes[] = {ScalarType::f64, ScalarType::f16, ScalarType::i32, ScalarType::i8};
  if (below(4) == 0) spec.type = kTypes[below(std::size(kTypes))];
  spec.default_plan = true;
  const std::size_t rank = 2 + below(9), contracted = 1 + below(2);
  spec.space_rank = rank;
  // Bit o: operand o has the dim. Both have some of their own. With batch dims the sums do not factor.
  std::vector<std::size_t> who{1, 2};
  while (who.size() < rank) who.push_back(below(4) == 0 && !has_sums(spec) ? 3 : 1 + below(2));
  std::shuffle(who.begin(), who.end(), random);
  who.resize(rank + contracted, 3);
  for (std::size_t d = 0; d < who.size(); ++d) {
    const std::string letter(1, static_cast<char>(d < rank ? 'a' + d : 'q' + (d - rank)));
    spec.dims.push_back({letter, letter});
  }
  for (std::size_t o = 0; o < 2; ++o) {
    std::vector<Axis> axes;
    for (std::size_t d = 0; d < who.size(); ++d)
      if ((who[d] >> o & 1) != 0) axes.push_back({d});
    std::shuffle(axes.begin(), axes.end(), random);
    spec.operands.push_back(std::move(axes));
  }
  // Any magnitude, as much as can be checked in a moment.
  const double most_elements = small ? 2e3 : 1e6, most_products = small ? 5e4 : 2e9;
  testing::Sizes sizes;
  for (const Dim& dim : spec.dims) {
    const std::size_t bits = below(small ? 5 : 12);
    sizes[dim.size] = static_cast<std::int64_t>((std::size_t{1} << bits) + below(3) * below(std::size_t{1} << bits));
  }
  const auto product = [&](std::size_t bit) {
    double all = 1;
    for (std::size_t d = 0; d < who.size(); ++d)
      if (bit == 8 || (bit == 4 ? d < rank : (who[d] & bit) != 0)) all *= static_cast<double>(sizes[spec.dims[d].size]);
    return all;
  };
  while (product(1) > most_elements || product(2) > most_elements || product(4) > most_elements ||
         product(8) > most_products) {
    const std::string& name = spec.dims[below(spec.dims.size())].size;
    sizes[name] = std::max<std::int64_t>(1, sizes[name] / 2);
  }
  spec.sizes.push_back(std::move(sizes));
  return spec;
}

namespace {

std::vector<HostValue> inputs_of(const Spec& spec) {
  if (has_sums(spec)) return small_integers(spec, spec.sizes[0], spec.seed);
  std::vector<HostValue> inputs;
  for (const std::vector<Axis>& axes : spec.operands) {
    std::vector<std::int64_t> shape;
    for (const Axis& axis : axes) shape.push_back(spec.sizes[0].at(spec.dims[axis.dim].size));
    inputs.push_back(HostValue::zeros(spec.type, shape));
  }
  return inputs;
}

// A program of them all. Kernels are compiled when they are chosen, and `log` hears of what spills.
Result<apl::Program> load(const std::vector<Spec>& specs, const std::string& backend,
                          const std::function<void(std::string)>& log) {
  std::string text;
  for (const Spec& spec : specs) text += to_source(spec) + "\n";
  std::optional<Diagnostic> error;
  auto module = compile({"defaults.fut", text}, [&](const Diagnostic& d) {
    if (!error) error = d;
  });
  if (!module) return *error;
  PipelineOptions options;
  options.verify_each = false;
  std::size_t tiled = 0;
  options.remarks = [&](const Remark& remark) { tiled += remark.code == "tiled" ? 1 : 0; };
  const bool gpu = backend != "c";
  const auto pipeline = parse_pipeline(standard_pipeline(Stage::memory, gpu ? Machine::gpu : Machine::cpu, true),
                                       PassRegistry::builtin());
  if (Status status = run_pipeline(*module, *pipeline, options); !status) return std::move(status).error();
  if (tiled != specs.size()) return make_error(Code::bug_internal, {}, "not every contraction was tiled");
  CodegenOptions codegen;
  codegen.plans = gpu ? 12 : 4;
  auto program = generate(*module, gpu ? cuda_target() : c_target(), codegen);
  if (!program) return std::move(program).error();
  ProgramOptions load_options;
  load_options.backend = backend;
  load_options.log = log;
  return apl::Program::load(program->host, load_options);
}

void run_defaults_batch(const std::vector<Spec>& specs, const std::string& backend, const Send& send) {
  send({'b', 0, backend + ", compiling", ""});
  std::size_t now = 0;
  // Bridge's words: "kernel K spills N bytes a thread...".
  const auto log = [&](const std::string& line) {
    if (line.find(" spills ") != std::string::npos) send({'s', now, "", line});
  };
  auto program = load(specs, backend, log);
  if (!program) return send({'f', 0, backend, program.error().message});
  for (; now < specs.size(); ++now) {
    const Spec& spec = specs[now];
    send({'b', now, backend, ""});
    const std::vector<HostValue> inputs = inputs_of(spec);
    const auto result = program->call(spec.entry, inputs);
    std::optional<std::string> wrong;
    if (!result) {
      wrong = result.error().message;
    } else if (is_checked(spec)) {
      wrong = wrong_sum(spec, spec.sizes[0], inputs, (*result)[0]);
    }
    send({wrong ? 'f' : 'a', now, backend, wrong.value_or("")});
  }
}

}  // namespace

bool run_defaults(const ThesisOptions& options, const std::function<bool()>& stop) {
  std::size_t launched = 0, checked = 0, failed = 0, replaced = 0, spilling = 0;
  for (std::uint64_t first = 0; first < options.count && !stop(); first += options.batch) {
    std::vector<Spec> specs;
    for (std::uint64_t k = first; k < std::min(first + options.batch, options.count); ++k)
      specs.push_back(default_spec(options.seed + k, options.small));
    for (const std::string& backend : options.backends) {
      constexpr int kPatience = 120;
      for (const auto& m : random_tests::in_child([&](const Send& send) { run_defaults_batch(specs, backend, send); },
                                                  kPatience, stop)) {
        if (m.kind == 'a') ++launched, checked += is_checked(specs[m.number]) ? 1 : 0;
        if (m.kind == 's') {
          ++(m.text.find("next plan") != std::string::npos ? replaced : spilling);
          fmt::print("{}: {}\n", specs[m.number].entry, m.text);
        }
        if (m.kind != 'f') continue;
        ++failed;
        fmt::print("FAILED {}\n{}{}\n", m.where, describe(specs[m.number]), m.text);
        std::fflush(stdout);
      }
    }
  }
  const std::size_t wanted = options.count * options.backends.size();
  fmt::print(
      "defaults: {} of {} launched, {} of them right by sums, {} failed; {} spilled and were replaced, {} spill\n",
      launched, wanted, checked, failed, replaced, spilling);
  return failed == 0 && launched == wanted && spilling == 0;
}

}  // namespace apl::contraction_tests
