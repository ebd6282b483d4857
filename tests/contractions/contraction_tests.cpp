// Random contractions and random plans for them, on every backend against the interpreter.
//   apl_contraction_tests [--count=100] [--seed=1] [--batch=50] [--backends=c,emulate,cuda|none] [--c-flags=-O1]
//   [--print]
// Contraction k is made from the seed plus k alone: `--seed=S --count=1` repeats one of a longer run.
//   apl_contraction_tests --thesis [--count=300] [--backends=cuda] [--small]
// The contractions, sizes and tile configurations of T chapter 5 instead, checked by sums (thesis.h).
//   apl_contraction_tests --defaults [--count=200] [--backends=cuda] [--small]
// What the model chooses for random contractions of rank up to 10 (defaults.h).
//   apl_contraction_tests --spills [--every-plan] [--count=200]
// What ptxas says of these kernels, without a GPU (spills.h).
//   apl_contraction_tests --spills --suite=bench/tccg48.txt [--every=1] [--only=NAME] [--types=f32,f64,f16]
//                         [--forms=plain] [--first-plans=1]
// The same of the contractions that are measured (suite.h).
#include <fmt/format.h>

#include <csignal>
#include <cstdlib>
#include <map>
#include <sstream>

#include "tests/command_line.h"
#include "tests/contractions/check.h"
#include "tests/contractions/defaults.h"
#include "tests/contractions/spills.h"
#include "tests/contractions/thesis.h"

namespace {

constexpr int kSkipped = 77;  // for CTest

volatile std::sig_atomic_t interrupted = 0;

}  // namespace

int main(int argc, char** argv) {
  using namespace apl::contraction_tests;
  apl::CommandLine line("runs random contractions with random plans on every backend against the interpreter");
  std::uint64_t seed = 1, count = 100, batch = 50, every = 1;
  std::string suite, only;
  std::uint64_t first_plans = 1;
  std::vector<std::string> types{"f32", "f64", "f16"}, forms{"plain"};
  int shrink_seconds = 60, most_shrunk = 3;
  bool print = false, thesis = false, huge = false, defaults = false, spills = false, every_plan = false;
  CheckOptions options;
  ThesisOptions thesis_options;
  line.option("--seed", seed, "of the first contraction");
  line.option("--count", count, "contractions; with --thesis, runs");
  line.option("--batch", batch, "contractions a compilation");
  line.option("--backends", options.backends, "c, emulate, cuda; or none");
  line.option("--device", options.device, "record of the machine that is emulated");
  line.option("--c-flags", options.c_flags, "more flags for the C compiler, such as -O1");
  line.option("--plans", options.plans, "kernels of a contraction; if more than 1, half have no numbers of their own");
  line.option("--shrink-seconds", shrink_seconds, "for making a failing contraction small");
  line.option("--shrink-most", most_shrunk, "failures that are made small");
  line.flag("--print", print, "print the contractions and run nothing");
  line.flag("--thesis", thesis, "the validation sizes and tile configurations of the thesis");
  line.flag("--huge", huge, "results of more than 2^31 elements");
  line.flag("--defaults", defaults, "plans that are chosen, for random contractions of rank up to 10");
  line.flag("--spills", spills, "kernels of --defaults that spill, by nvcc");
  line.option("--suite", suite, "--spills: file of TCCG's contractions; they and the others that are measured");
  line.option("--only", only, "--spills --suite: contractions whose names, as tccg_20_f16, have this in them");
  line.option("--every", every, "--spills --suite: every so manieth contraction");
  line.choices("--types", types, suite_kinds(), "--spills --suite: of factors");
  line.choices("--forms", forms, suite_forms(), "--spills --suite: code after the reduction");
  line.option("--first-plans", first_plans, "--spills --suite: so many plans that a program would try");
  line.flag("--every-plan", every_plan, "--spills: all kernels that a program could choose, with their registers");
  line.flag("--small", thesis_options.small, "--thesis, --huge, --defaults: sizes for emulation");
  if (const auto code = line.parse(argc, argv)) return *code;
  std::erase(options.backends, "none");
  std::signal(SIGINT, [](int) { interrupted = 1; });
  const auto stop = [] { return interrupted != 0; };
  if (thesis || huge || defaults || spills) {
    thesis_options.seed = seed, thesis_options.count = count, thesis_options.batch = batch;
    thesis_options.backends = options.backends;
    if (spills && std::system("command -v nvcc >/dev/null 2>&1") != 0) {
      fmt::print("skipped: nvcc is not here, which asks ptxas what kernels take\n");
      return kSkipped;
    }
    if (spills && !suite.empty()) {
      auto measured = measured_suite(suite, types, forms);
      if (measured)
        std::erase_if(*measured, [&](const Measured& one) { return one.entry.find(only) == one.entry.npos; });
      if (measured) return run_suite_spills(*measured, every, batch, every_plan || print, first_plans, stop) ? 0 : 1;
      fmt::print("{}\n", measured.error().message);
      return 1;
    }
    if (spills) return run_spills(thesis_options, every_plan, stop) ? 0 : 1;
    return (huge ? run_huge : defaults ? run_defaults : run_thesis)(thesis_options, stop) ? 0 : 1;
  }

  std::uint64_t agree = 0, failed = 0, comparisons = 0, tiled = 0, fast = 0;
  std::map<std::string, std::uint64_t> unsupported, refusals, operators;
  for (std::uint64_t first = 0; first < count && !stop(); first += batch) {
    std::vector<Spec> specs;
    for (std::uint64_t k = first; k < std::min(first + batch, count); ++k) {
      specs.push_back(random_spec(seed + k));
      specs.back().default_plan = specs.back().default_plan || (options.plans > 1 && (seed + k) % 2 == 0);
    }
    if (print) {
      for (const Spec& spec : specs) fmt::print("-- {}\n", describe(spec));
      continue;
    }
    for (const Report& report : check(specs, options, stop)) {
      const Spec& spec = specs[report.number];
      if (report.outcome == Outcome::agrees) {
        ++agree;
        comparisons += static_cast<std::uint64_t>(report.comparisons);
        if (report.tiled > 0) {
          ++tiled;
          ++operators[std::string(to_text(spec.op))];
          if (report.fast > 0) ++fast;
        } else {
          // A loop that no pass takes for a reduction is nothing that could be refused.
          std::string code = spec.fold == Fold::loop ? "loop-kept" : "no-candidate";
          std::istringstream(report.refusals) >> code;
          ++refusals[code];
        }
      }
      if (report.outcome == Outcome::unsupported) ++unsupported[report.where];
      if (report.outcome != Outcome::fails) continue;
      fmt::print("FAILED --seed={} --count=1: {}\n{}{}\n", spec.seed, report.where, describe(spec), report.message);
      if (++failed <= static_cast<std::uint64_t>(most_shrunk) && shrink_seconds > 0) {
        std::vector<Spec> small{shrink(spec, report, options, shrink_seconds, stop)};
        const std::vector<Report> again = check(small, options, stop);
        fmt::print("smaller:\n{}{}\n", describe(small[0]), again.empty() ? "" : again[0].message);
      }
      std::fflush(stdout);
    }
    if (count > batch)
      fmt::print(stderr, "{} of {}: {} agree, {} failed\n", std::min(first + batch, count), count, agree, failed);
  }
  if (print) return 0;
  const auto list = [](const char* what, const std::map<std::string, std::uint64_t>& all) {
    if (all.empty()) return;
    fmt::print("{}:", what);
    for (const auto& [name, times] : all) fmt::print(" {} {},", name, times);
    fmt::print("\n");
  };
  list("tiled", operators);
  list("not tiled", refusals);
  std::uint64_t refused = 0;
  for (const auto& [what, times] : unsupported) {
    fmt::print("unsupported {}: {}\n", times, what);
    refused += times;
  }
  fmt::print("{} agree in {} comparisons, {} failed, {} unsupported; {} were tiled, {} in the mainloop\n", agree,
             comparisons, failed, refused, tiled, fast);
  // A run that checked little checked nothing.
  const bool enough = agree > refused && (count < 20 || (tiled * 2 > agree && fast * 5 > agree));
  if (!enough) fmt::print("too few were tiled\n");
  return failed == 0 && !stop() && enough ? 0 : 1;
}
