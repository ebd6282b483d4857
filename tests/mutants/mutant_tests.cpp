// Breaks generated kernels, one barrier or guard at a time, and sees that emulation notices: a race, an undefined read,
// an access out of bounds or a wrong result, for some sizes and some order of threads. Mutants that compute the same
// are listed with the reason (cases.cpp); one that is listed and noticed all the same is an error, too. Those run in
// one order of threads: what only a rare order would tell is no reason to strike one from the list.
//   apl_mutant_tests [--case=NAME] [--orders=6] [--seed=1] [--print]
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "codegen/lower/lower.h"
#include "frontend/frontend.h"
#include "ir/interpret.h"
#include "passes/pipeline.h"
#include "runtime/program/program.h"
#include "tests/command_line.h"
#include "tests/mutants/cases.h"
#include "tests/mutants/mutate.h"

namespace {

using namespace apl;
using mutants::Case;
using mutants::Mutant;

struct Call {
  std::string sizes;
  std::vector<HostValue> inputs, expected;
};

struct Built {
  Module module;
  Program program;
  std::map<std::string, std::vector<Mutant>> mutants;  // by entry
  std::set<std::string> fast;
};

Result<Built> build(const std::vector<Case>& cases, std::uint64_t seed) {
  std::string text;
  PipelineOptions options;
  for (const Case& c : cases) {
    text += c.source;
    for (const auto& [name, number] : c.plan) options.parameters[c.entry + "." + name] = number;
  }
  std::optional<Diagnostic> error;
  auto module = compile({"mutants.fut", text}, [&](const Diagnostic& d) { error = error ? error : d; });
  if (!module) return *error;
  Module memory = *module;
  const auto pipeline = parse_pipeline(standard_pipeline(Stage::memory, Machine::gpu), PassRegistry::builtin());
  if (Status status = run_pipeline(memory, *pipeline, options); !status) return std::move(status).error();
  CodegenOptions codegen;
  codegen.parameters = options.parameters;
  mutants::Mutator mutator;
  std::map<std::string, std::vector<Mutant>> found;
  std::set<std::string> fast;
  auto generated = lower::generate_edited(memory, cuda_target(), codegen, [&](kernel::Function& function) {
    for (const Case& c : cases) {
      if (!function.name.starts_with(c.entry + "_") || (!c.only.empty() && function.name != c.only)) continue;
      mutator.mutate(function, found[c.entry]);
      if (kernel::print(function, *find_dialect("cuda")).find(" result_rows") != std::string::npos)
        fast.insert(c.entry);
    }
  });
  if (!generated) return std::move(generated).error();
  const std::string include = "#include \"device.h\"\n";
  std::string kernels = generated->kernels;
  kernels.insert(kernels.find(include) + include.size(), mutants::Mutator::prologue());
  mutants::Mutator::choose(0);
  ProgramOptions load;
  load.backend = "emulate";
  load.seed = seed;
  load.c_flags = {"-O0"};
  auto program = Program::load(generated->host, kernels, load);
  if (!program) return std::move(program).error();
  return Built{*std::move(module), *std::move(program), std::move(found), std::move(fast)};
}

// Why the results differ from what they should be, or nothing. The call that told comes first the next time: it tells
// most mutants of its kernel.
std::optional<std::string> noticed(Built& built, const Case& c, std::vector<Call>& calls, int orders) {
  for (int order = 0; order < orders; ++order)
    for (auto call = calls.begin(); call != calls.end(); ++call) {
      const auto got = built.program.call(c.entry, call->inputs);
      if (got && testing::same_results(*got, call->expected)) continue;
      std::string why = fmt::format("{} ({})", got ? "wrong result" : code_text(got.error().code), call->sizes);
      std::rotate(calls.begin(), call, call + 1);
      return why;
    }
  return std::nullopt;
}

// Some races show in one of many orders, and a mutant that is noticed at last costs no more than that. Of the rarest,
// two numbers that are read between their publications, one order in twelve tells; that none of 96 does happens once in
// 4,000 runs.
constexpr int kPatience = 16;

std::vector<bool> used(mutants::equivalents().size());

const mutants::Equivalent* listed(const Case& c, const Mutant& mutant) {
  const std::string text = mutant.what.substr(0, mutant.what.rfind(' '));
  for (std::size_t k = 0; k < used.size(); ++k) {
    const mutants::Equivalent& e = mutants::equivalents()[k];
    const bool here = e.entries.empty() || (" " + e.entries + " ").find(" " + c.entry + " ") != std::string::npos;
    if (!here || (e.what != mutant.what && e.what != text)) continue;
    used[k] = true;
    return &e;
  }
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  apl::CommandLine line("breaks generated kernels one barrier or guard at a time");
  std::string only;
  int orders = 6, seed = 1, every = 1;
  bool print = false;
  line.option("--case", only, "this kernel alone");
  line.option("--orders", orders, "of threads, for each size");
  line.option("--seed", seed, "of the orders of blocks and threads");
  line.option("--every", every, "run every N-th mutant");
  line.flag("--print", print, "print what becomes of each mutant");
  if (const auto code = line.parse(argc, argv)) return *code;
  std::vector<Case> cases = mutants::cases();
  if (!only.empty()) std::erase_if(cases, [&](const Case& c) { return c.entry != only; });
  auto built = build(cases, static_cast<std::uint64_t>(seed));
  if (!built) {
    fmt::print("{}\n", built.error().message);
    return 1;
  }
  int failed = 0;
  std::size_t all = 0, equivalent = 0;
  for (const Case& c : cases) {
    std::vector<Call> calls;
    for (const testing::Sizes& sizes : c.sizes) {
      auto inputs = testing::random_arguments(*built->module.find_entry(c.entry), sizes, 5);
      auto expected = inputs ? interpret(built->module, c.entry, *inputs) : inputs.error();
      if (!expected) {
        fmt::print("{}: {}\n", c.entry, expected.error().message);
        return 1;
      }
      std::string text;
      for (const auto& [name, size] : sizes) text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, size);
      calls.push_back({text, *std::move(inputs), *std::move(expected)});
    }
    mutants::Mutator::choose(0);
    if (const auto wrong = noticed(*built, c, calls, orders)) {
      fmt::print("FAILED {}: without a change: {}\n", c.entry, *wrong);
      ++failed;
      continue;
    }
    if (built->fast.count(c.entry) != (c.fast ? 1U : 0U)) {
      fmt::print("FAILED {}: is {} the mainloop\n", c.entry, c.fast ? "not in" : "in");
      ++failed;
    }
    for (const Mutant& mutant : built->mutants[c.entry]) {
      const mutants::Equivalent* known = listed(c, mutant);
      if (mutant.number % std::max(every, 1) != 0) continue;
      mutants::Mutator::choose(mutant.number);
      const auto wrong = noticed(*built, c, calls, known ? 1 : kPatience * orders);
      ++all;
      equivalent += wrong ? 0 : 1;
      if (print) fmt::print("{}: {}: {}\n", c.entry, mutant.what, wrong ? *wrong : known ? known->why : "NOT NOTICED");
      if (wrong && known) fmt::print("FAILED {}: {}: listed as equivalent, but: {}\n", c.entry, mutant.what, *wrong);
      if (!wrong && !known) fmt::print("FAILED {}: {}: not noticed\n", c.entry, mutant.what);
      failed += wrong.has_value() == (known != nullptr) ? 1 : 0;
    }
  }
  for (std::size_t k = 0; k < used.size() && only.empty(); ++k)
    if (!used[k]) {
      fmt::print("FAILED: no mutant is `{}` any more\n", mutants::equivalents()[k].what);
      ++failed;
    }
  fmt::print("{} mutants of {} kernels, {} noticed, {} equivalent, {} failed\n", all, cases.size(), all - equivalent,
             equivalent, failed);
  return failed == 0 && all > 0 ? 0 : 1;
}
