// Random programs on every backend against the interpreter on what the front end gave.
//   apl_random_tests [--count=100] [--seed=1] [--batch=50] [--backends=c,emulate] [--c-flags=-O1] [--print]
//                    [--orders=N | --disable]
// Program k is made from the seed plus k alone: `--seed=S --count=1` repeats one of a longer run.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <csignal>
#include <map>

#include "tests/command_line.h"
#include "tests/random/check.h"
#include "tests/random/orders.h"

namespace {

volatile std::sig_atomic_t interrupted = 0;

// Orders of one program have seeds that no other program's have.
constexpr std::uint64_t kOrdersOfSeed = 1000;

std::string passes_of(const apl::random_tests::Program& program) {
  if (!program.order.empty()) return fmt::format(" --pipeline={}", fmt::join(program.order, ","));
  return program.disabled.empty() ? "" : fmt::format(" --disable={}", fmt::join(program.disabled, ","));
}

}  // namespace

int main(int argc, char** argv) {
  using namespace apl::random_tests;
  apl::CommandLine line("runs random programs on every backend against the interpreter");
  std::uint64_t seed = 1, count = 100, batch = 50;
  int shrink_seconds = 60, most_shrunk = 5;
  std::uint64_t orders = 0;
  bool print = false, disable = false;
  CheckOptions options;
  line.option("--seed", seed, "of the first program");
  line.option("--count", count, "programs");
  line.option("--batch", batch, "programs a compilation");
  line.option("--backends", options.backends, "c, emulate, cuda, nvrtc (which compiles and runs nothing); or none");
  line.option("--c-flags", options.c_flags, "more flags for the C compiler, such as -O1");
  line.option("--shrink-seconds", shrink_seconds, "for making a failing program small");
  line.option("--shrink-most", most_shrunk, "failures that are made small");
  line.option("--orders", orders, "orders of passes that each program goes through, on the interpreter alone");
  line.option(
      "--threshold", options.threshold,
      "where sizes choose between versions of the program: 1 takes those for many, a large number those for few");
  line.flag("--disable", disable, "leave out passes of the standard pipeline, others in each batch");
  line.flag("--print", print, "print the programs and run nothing");
  if (const auto code = line.parse(argc, argv)) return *code;
  std::erase(options.backends, "none");
  if (orders > 0) options.backends.clear();
  std::signal(SIGINT, [](int) { interrupted = 1; });
  const auto stop = [] { return interrupted != 0; };

  std::uint64_t agree = 0, failed = 0, comparisons = 0;
  std::map<std::string, std::uint64_t> unsupported;
  for (std::uint64_t first = 0; first < count && !stop(); first += batch) {
    std::vector<Program> programs;
    for (std::uint64_t k = first; k < std::min(first + batch, count); ++k) {
      programs.push_back(random_program(seed + k));
      if (disable) programs.back().disabled = random_disabled(seed + first);
      if (orders > 0) programs.back().order = random_order((seed + k) * kOrdersOfSeed);
      for (std::uint64_t order = 1; order < orders; ++order) {
        programs.push_back(programs.back());
        programs.back().order = random_order((seed + k) * kOrdersOfSeed + order);
      }
    }
    if (print) {
      for (const Program& program : programs) fmt::print("{}\n", to_text(program.definitions));
      continue;
    }
    for (const Report& report : check(programs, options, stop)) {
      if (report.outcome == Outcome::agrees) {
        ++agree;
        comparisons += std::stoull(report.message);
      }
      if (report.outcome == Outcome::unsupported) ++unsupported[report.where];
      if (report.outcome != Outcome::fails) continue;
      const Program& program = programs[report.program];
      fmt::print("FAILED --seed={} --count=1{}: {}\n{}\n{}\n", program.seed, passes_of(program), report.where,
                 to_text(program.definitions), report.message);
      if (++failed <= static_cast<std::uint64_t>(most_shrunk) && shrink_seconds > 0) {
        const Program small = shrink(program, report, options, shrink_seconds, stop);
        const std::vector<Report> again = check({small}, options, stop);
        fmt::print("smaller{}:\n{}\n{}\n", passes_of(small), to_text(small.definitions),
                   again.empty() ? "" : again.front().message);
      }
      std::fflush(stdout);
    }
    if (count > batch)
      fmt::print(stderr, "{} of {}: {} agree, {} failed\n", std::min(first + batch, count), count, agree, failed);
  }
  if (print) return 0;
  std::uint64_t refused = 0;
  for (const auto& [what, times] : unsupported) {
    fmt::print("unsupported {}: {}\n", times, what);
    refused += times;
  }
  fmt::print("{} agree in {} comparisons, {} failed, {} unsupported\n", agree, comparisons, failed, refused);
  // A run that checked little checked nothing.
  return failed == 0 && !stop() && agree > refused && comparisons > 20 * agree ? 0 : 1;
}
