#include "tests/contractions/thesis.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
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

// "aq,qb->ab"
Spec product_of(const std::string& entry, const std::string& x, const std::string& y, const std::string& z, bool rows) {
  Spec spec;
  spec.entry = entry;
  spec.space_rank = z.size();
  spec.rows = rows;
  for (char d : z + "q") spec.dims.push_back({std::string(1, d), std::string(1, d)});
  for (const std::string& operand : {x, y}) {
    auto& axes = spec.operands.emplace_back();
    for (char d : operand) axes.push_back({(z + "q").find(d)});
  }
  return spec;
}

struct Tested {
  const char *name, *x, *y, *z;
};
constexpr Tested kTested[] = {{"mm0", "aq", "bq", "ab"},           {"mm1", "aq", "qb", "ab"},
                              {"mm2", "qa", "bq", "ab"},           {"mm3", "qa", "qb", "ab"},
                              {"sd1_7", "icaq", "qbjk", "abcijk"}, {"sd2_3", "kiaq", "bcjq", "abcijk"}};

std::int64_t random_of(std::mt19937_64& random, const std::vector<std::int64_t>& all) {
  return all[static_cast<std::size_t>(random() % all.size())];
}

testing::Sizes thesis_sizes(const Spec& spec, std::uint64_t round, bool small, std::mt19937_64& random) {
  const bool matrices = spec.space_rank == 2;
  const std::int64_t whole = matrices ? (small ? 64 : 1024) : (small ? 4 : 16);
  testing::Sizes sizes;
  for (const Dim& dim : spec.dims) {
    const bool contracted = dim.size == "q";
    switch (round % 6) {
      case 0: sizes[dim.size] = whole; break;
      case 1: sizes[dim.size] = contracted ? whole - 1 : whole; break;
      case 2: sizes[dim.size] = whole - 1; break;
      case 3: sizes[dim.size] = contracted ? (small ? 96 : 2048) : (matrices ? whole / 2 : whole / 2); break;
      case 4: sizes[dim.size] = random() % 3 == 0 ? 1 : whole; break;
      default:
        sizes[dim.size] = random_of(random, matrices ? std::vector<std::int64_t>{1, 2, 31, 32, 33, 63, 65, 127, 129}
                                                     : std::vector<std::int64_t>{1, 2, 3, 5, 7, 8});
    }
  }
  if (!small && matrices && round % 12 == 0)
    for (auto& [name, size] : sizes) size = 4096;
  return sizes;
}

// T 5.3.5: T and Q from powers of two, R from {1, 2, 4, 5, 8}; at least 32 threads and a power of two of them; both
// operands have registers; no tile takes over three quarters of the shared memory. Every third configuration has odd
// numbers instead.
void thesis_plan(Spec& spec, std::uint64_t round, std::mt19937_64& random) {
  constexpr std::int64_t kBytes = 160 * 1024, kStages = 3;
  const bool matrices = spec.space_rank == 2, odd = round % 3 == 2;
  const auto varies = [&](std::size_t operand, std::size_t dim) {
    return std::any_of(spec.operands[operand].begin(), spec.operands[operand].end(),
                       [&](const Axis& axis) { return axis.dim == dim; });
  };
  for (;;) {
    std::int64_t threads = 1, registers = 1, depth = 0;
    std::int64_t rows[2] = {1, 1}, register_rows[2] = {1, 1};
    spec.plan.clear();
    for (std::size_t d = 0; d < spec.dims.size(); ++d) {
      const std::string& name = spec.dims[d].size;
      if (d >= spec.space_rank) {
        depth = odd ? random_of(random, {3, 5, 6, 7, 12, 24})
                    : random_of(random, matrices ? std::vector<std::int64_t>{8, 16, 32}
                                                 : std::vector<std::int64_t>{1, 2, 4, 8, 16, 32, 64});
        spec.plan["T_" + name] = depth;
        continue;
      }
      const std::int64_t t = odd        ? random_of(random, matrices ? std::vector<std::int64_t>{5, 7, 12, 20}
                                                                     : std::vector<std::int64_t>{1, 1, 2, 3, 5})
                                    : matrices ? random_of(random, {8, 16, 32})
                                        : random_of(random, {1, 1, 2, 4, 8, 16, 32});
      const std::int64_t r = odd ? random_of(random, {1, 1, 3, 5, 7}) : random_of(random, {1, 1, 2, 4, 5, 8});
      spec.plan["T_" + name] = t;
      spec.plan["R_" + name] = r;
      threads *= t, registers *= r;
      for (std::size_t o = 0; o < 2; ++o)
        if (varies(o, d)) rows[o] *= t * r, register_rows[o] *= r;
    }
    const std::int64_t all = rows[0] + rows[1];
    const bool power = (threads & (threads - 1)) == 0 && threads >= 32;
    if (threads > 1024 || registers > 128 || threads * registers > 32768 || 4 * depth * all * kStages > kBytes)
      continue;
    if (!odd && (!power || register_rows[0] == 1 || register_rows[1] == 1 || std::max(rows[0], rows[1]) * 4 > 3 * all))
      continue;
    return;
  }
}

using random_tests::Send;

Result<apl::Program> load(const std::vector<Spec>& specs, const std::string& backend) {
  std::string text;
  PipelineOptions options;
  options.verify_each = false;
  for (const Spec& spec : specs) {
    text += to_source(spec) + "\n";
    for (const auto& [name, number] : spec.plan) options.parameters[spec.entry + "." + name] = number;
  }
  std::optional<Diagnostic> error;
  auto module = compile({"thesis.fut", text}, [&](const Diagnostic& d) {
    if (!error) error = d;
  });
  if (!module) return *error;
  std::size_t tiled = 0;
  options.remarks = [&](const Remark& remark) { tiled += remark.code == "tiled" ? 1 : 0; };
  const auto pipeline = parse_pipeline(standard_pipeline(Stage::memory, backend == "c" ? Machine::cpu : Machine::gpu),
                                       PassRegistry::builtin());
  if (Status status = run_pipeline(*module, *pipeline, options); !status) return std::move(status).error();
  if (tiled != specs.size()) return make_error(Code::bug_internal, {}, "not every contraction was tiled");
  CodegenOptions codegen;
  codegen.parameters = options.parameters;
  auto program = generate(*module, backend == "c" ? c_target() : cuda_target(), codegen);
  if (!program) return std::move(program).error();
  ProgramOptions load_options;
  load_options.backend = backend;
  return apl::Program::load(program->host, load_options);
}

// In the child: a message for each that fails, and one at the end.
void run_thesis_batch(const std::vector<Spec>& specs, const std::string& backend, const Send& send) {
  send({'b', 0, backend + ", compiling", ""});
  auto program = load(specs, backend);
  if (!program) return send({'f', 0, backend, program.error().message});
  for (std::size_t k = 0; k < specs.size(); ++k) {
    const Spec& spec = specs[k];
    send({'b', k, backend, ""});
    const std::vector<HostValue> inputs = small_integers(spec, spec.sizes[0], spec.seed);
    const auto result = program->call(spec.entry, inputs);
    const auto wrong = result ? wrong_sum(spec, spec.sizes[0], inputs, (*result)[0]) : result.error().message;
    if (wrong) {
      send({'f', k, backend, *wrong});
    } else {
      send({'a', k, "", ""});
    }
  }
}

bool run_specs(const std::vector<Spec>& specs, const ThesisOptions& options, const char* what,
               const std::function<bool()>& stop) {
  std::size_t agree = 0, failed = 0;
  for (std::size_t first = 0; first < specs.size() && !stop(); first += options.batch) {
    const std::size_t end = std::min<std::size_t>(first + options.batch, specs.size());
    const std::vector<Spec> batch(specs.begin() + static_cast<std::ptrdiff_t>(first),
                                  specs.begin() + static_cast<std::ptrdiff_t>(end));
    for (const std::string& backend : options.backends) {
      constexpr int kPatience = 120;
      for (const auto& m :
           random_tests::in_child([&](const Send& send) { run_thesis_batch(batch, backend, send); }, kPatience, stop)) {
        if (m.kind == 'a') ++agree;
        if (m.kind != 'f') continue;
        ++failed;
        fmt::print("FAILED {}\n{}{}\n", m.where, describe(batch[m.number]), m.text);
        std::fflush(stdout);
      }
    }
  }
  const std::size_t wanted = specs.size() * options.backends.size();
  fmt::print("{}: {} of {} right, {} failed\n", what, agree, wanted, failed);
  return failed == 0 && agree == wanted;
}

}  // namespace

bool run_thesis(const ThesisOptions& options, const std::function<bool()>& stop) {
  std::vector<Spec> specs;
  for (std::uint64_t k = 0; k < options.count; ++k) {
    const std::uint64_t seed = options.seed + k;
    std::mt19937_64 random(seed);
    const Tested& tested = kTested[seed % std::size(kTested)];
    const std::uint64_t round = seed / std::size(kTested);
    Spec spec = product_of(fmt::format("{}_{}", tested.name, seed), tested.x, tested.y, tested.z, seed % 4 < 2);
    spec.seed = seed;
    spec.sizes.push_back(thesis_sizes(spec, round, options.small, random));
    thesis_plan(spec, round, random);
    specs.push_back(std::move(spec));
  }
  return run_specs(specs, options, "thesis", stop);
}

bool run_huge(const ThesisOptions& options, const std::function<bool()>& stop) {
  Spec matrices = product_of("mm1", "aq", "qb", "ab", true),
       tensors = product_of("sd1_7", "icaq", "qbjk", "abcijk", true);
  // 2304 million elements of the result, and 2177 million.
  matrices.sizes.push_back({{"a", options.small ? 300 : 48000}, {"b", options.small ? 300 : 48000}, {"q", 16}});
  testing::Sizes sizes;
  for (const char* d : {"a", "b", "c", "i", "j", "k"}) sizes[d] = options.small ? 5 : 36;
  sizes["q"] = 8;
  tensors.sizes.push_back(sizes);
  return run_specs({matrices, tensors}, options, "huge", stop);
}

}  // namespace apl::contraction_tests
