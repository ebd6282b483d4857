// Random programs on the interpreter and on compiled backends, against an evaluator of their trees.
//   apl_oracle_tests [--count=100] [--seed=1] [--batch=50] [--backends=c,emulate] [--c-flags=-O1] [--print]
// Program k is made from the seed plus k alone: `--seed=S --count=1` repeats one of a longer run.
#include <fmt/format.h>

#include <csignal>
#include <map>

#include "tests/command_line.h"
#include "tests/oracle/check.h"
#include "tests/oracle/modules.h"

namespace {

volatile std::sig_atomic_t interrupted = 0;

}  // namespace

int main(int argc, char** argv) {
  using namespace apl::oracle;
  apl::CommandLine line("runs random programs on every backend against an evaluator of their trees");
  std::uint64_t seed = 1, count = 100, batch = 50;
  int shrink_seconds = 60, most_shrunk = 5;
  bool print = false;
  CheckOptions options;
  line.option("--seed", seed, "of the first program");
  line.option("--count", count, "programs");
  line.option("--batch", batch, "programs a compilation");
  line.option("--backends", options.backends, "c, emulate, cuda; or none: the interpreter alone");
  line.option("--c-flags", options.c_flags, "more flags for the C compiler, such as -O1");
  line.option("--shrink-seconds", shrink_seconds, "for making a program small that differs");
  line.option("--shrink-most", most_shrunk, "programs that are made small");
  line.flag("--print", print, "print the programs and run nothing");
  if (const auto code = line.parse(argc, argv)) return *code;
  std::erase(options.backends, "none");
  std::signal(SIGINT, [](int) { interrupted = 1; });
  const auto stop = [] { return interrupted != 0; };

  std::uint64_t agree = 0, differ = 0, calls = 0, with_modules = 0;
  std::map<std::string, std::uint64_t> unsupported;
  std::map<Form, std::uint64_t> forms;
  for (std::uint64_t first = 0; first < count && !stop(); first += batch) {
    std::vector<Case> cases;
    for (std::uint64_t k = first; k < std::min(first + batch, count); ++k) {
      cases.push_back(random_case(seed + k));
      count_forms(cases.back().program.body, forms);
      with_modules += module_definitions(cases.back().program.body).empty() ? 0 : 1;
    }
    if (print) {
      for (const Case& one : cases) fmt::print("{}\n", source(one.program));
      continue;
    }
    for (const Report& report : check(cases, options, stop)) {
      if (report.verdict == Verdict::agrees) {
        ++agree;
        calls += std::stoull(report.message);
      }
      if (report.verdict == Verdict::unsupported) ++unsupported[report.where];
      if (report.verdict != Verdict::differs) continue;
      const Case& one = cases[report.number];
      fmt::print("DIFFERS --seed={} --count=1: {}\n{}\n{}\n", one.program.seed, report.where, source(one.program),
                 report.message);
      if (++differ <= static_cast<std::uint64_t>(most_shrunk) && shrink_seconds > 0) {
        const Case small = shrink(one, report, options, shrink_seconds, stop);
        const std::vector<Report> again = check({small}, options, stop);
        fmt::print("smaller:\n{}\n{}\n", source(small.program), again.empty() ? "" : again.front().message);
      }
      std::fflush(stdout);
    }
    if (count > batch)
      fmt::print(stderr, "{} of {}: {} agree, {} differ\n", std::min(first + batch, count), count, agree, differ);
  }
  if (print) return 0;
  std::uint64_t refused = 0;
  for (const auto& [what, times] : unsupported) {
    fmt::print("unsupported {}: {}\n", times, what);
    refused += times;
  }
  fmt::print("{} agree in {} calls, {} differ, {} unsupported; {} have operators of modules\n", agree, calls, differ,
             refused, with_modules);
  // A run that compared little compared nothing; nor does one of a thousand programs leave a form out.
  for (int form = 0; form <= static_cast<int>(Form::coerce) && agree >= 1000; ++form)
    if (forms[static_cast<Form>(form)] == 0) {
      fmt::print("form {} never came up\n", form);
      ++differ;
    }
  if (agree >= 40 && with_modules == 0) {
    fmt::print("no program has an operator of a module\n");
    ++differ;
  }
  const std::uint64_t backends = options.backends.size() + 1;
  return differ == 0 && !stop() && agree > 20 * refused && calls > 3 * backends * agree ? 0 : 1;
}
