// Random programs on every backend against the interpreter on what the front end gave.
//   apl_random_tests [--kind=short-rows] [--count=100] [--seed=1] [--batch=50] [--backends=c,emulate] [--print]
//                    [--as-users] [--cc=clang] [--march=haswell] [--c-flags=-O1] [--state=FILE]
//                    [--orders=N | --disable]
// Program k is made from the seed plus k alone: `--seed=S --count=1` repeats one of a longer run.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <csignal>

#include "tests/batch/progress.h"
#include "tests/command_line.h"
#include "tests/random/check.h"
#include "tests/random/orders.h"

namespace {

using namespace apl::random_tests;

volatile std::sig_atomic_t interrupted = 0;
bool stop() { return interrupted != 0; }

constexpr int kSkipped = 77;

// Orders of one program have seeds that no other program's have.
constexpr std::uint64_t kOrdersOfSeed = 1000;

struct Options {
  std::uint64_t seed = 1, count = 100, batch = 50, orders = 0;
  std::string kind = "general", state;
  int shrink_seconds = 60, most_shrunk = 5;
  bool print = false, disable = false;
  CheckOptions check;

  Kind kind_of_programs() const {
    if (kind == "short-rows") return Kind::short_rows;
    return kind == "branch-loops" ? Kind::branch_loops : Kind::general;
  }
  // What repeats one program of the run, but for its seed.
  std::string text() const {
    std::string text = kind == "general" ? "" : " --kind=" + kind;
    if (check.as_users) text += " --as-users";
    if (check.threshold > 0) text += fmt::format(" --threshold={}", check.threshold);
    return text + check.compiler.text();
  }
};

std::string passes_of(const Program& program) {
  if (!program.order.empty()) return fmt::format(" --pipeline={}", fmt::join(program.order, ","));
  return program.disabled.empty() ? "" : fmt::format(" --disable={}", fmt::join(program.disabled, ","));
}

// Programs of a batch, each as often as it has orders of passes.
std::vector<Program> programs_of(const Options& options, std::uint64_t first, std::uint64_t end) {
  std::vector<Program> programs;
  for (std::uint64_t k = first; k < end; ++k) {
    programs.push_back(random_program(options.seed + k, options.kind_of_programs()));
    if (options.disable) programs.back().disabled = random_disabled(options.seed + first);
    if (options.orders > 0) programs.back().order = random_order((options.seed + k) * kOrdersOfSeed);
    for (std::uint64_t order = 1; order < options.orders; ++order) {
      programs.push_back(programs.back());
      programs.back().order = random_order((options.seed + k) * kOrdersOfSeed + order);
    }
  }
  return programs;
}

void print_failure(const Options& options, const Program& program, const Report& report, bool make_smaller) {
  fmt::print("FAILED --seed={} --count=1{}{}: {}\n{}\n{}\n", program.seed, options.text(), passes_of(program),
             report.where, to_text(program.definitions), report.message);
  if (make_smaller) {
    const Program small = shrink(program, report, options.check, options.shrink_seconds, stop);
    const std::vector<Report> again = check({small}, options.check, stop);
    fmt::print("smaller{}:\n{}\n{}\n", passes_of(small), to_text(small.definitions),
               again.empty() ? "" : again.front().message);
  }
  std::fflush(stdout);
}

// Counts what became of a batch. Failures are kept by their seeds, to be told again at the end of a long run.
void note(const Options& options, const std::vector<Program>& programs, const std::vector<Report>& reports,
          apl::testing::Progress& progress) {
  for (const Report& report : reports) {
    switch (report.outcome) {
      case Outcome::agrees:
        progress.count("agree") += 1;
        progress.count("comparisons") += std::stoull(report.message);
        break;
      case Outcome::unsupported: progress.count("unsupported: " + report.where) += 1; break;
      case Outcome::fails: {
        const Program& program = programs[report.program];
        const std::uint64_t failed = ++progress.count("failed");
        progress.count(fmt::format("failure --seed={}: {}", program.seed, report.where)) += 1;
        print_failure(options, program, report,
                      failed <= static_cast<std::uint64_t>(options.most_shrunk) && options.shrink_seconds > 0);
        break;
      }
    }
  }
}

// The exit code.
int summarise(const Options& options, apl::testing::Progress& progress) {
  for (const auto& [name, times] : progress.counts())
    if (name.starts_with("unsupported: ") || name.starts_with("failure ")) fmt::print("{} {}\n", times, name);
  const std::uint64_t agree = progress.count("agree"), failed = progress.count("failed");
  const std::uint64_t comparisons = progress.count("comparisons"), refused = progress.sum("unsupported: ");
  fmt::print("{} agree in {} comparisons, {} failed, {} unsupported\n", agree, comparisons, failed, refused);
  // A run that checked little checked nothing.
  const std::uint64_t least = options.check.stages ? 20 : 3;
  return failed == 0 && !stop() && agree > refused && comparisons >= least * agree ? 0 : 1;
}

int run(const Options& options) {
  const std::string key = fmt::format("seed {} batch {} orders {} disable {} backends {} stages {}{}", options.seed,
                                      options.batch, options.orders, options.disable,
                                      fmt::join(options.check.backends, ","), options.check.stages, options.text());
  apl::testing::Progress progress(options.state, key, options.count);
  if (progress.is_resumed()) fmt::print(stderr, "goes on: {}\n", progress.line());
  while (progress.done() < options.count && !stop()) {
    const std::uint64_t end = std::min(progress.done() + options.batch, options.count);
    const std::vector<Program> programs = programs_of(options, progress.done(), end);
    const std::vector<Report> reports = check(programs, options.check, stop);
    if (stop()) break;  // the batch is not done
    note(options, programs, reports, progress);
    if (stop()) break;
    if (auto advanced = progress.advance(end - progress.done()); !advanced) {
      fmt::print(stderr, "{}\n", advanced.error().message);
      return 1;
    }
    if (options.count > options.batch) fmt::print(stderr, "{}\n", progress.line());
  }
  return summarise(options, progress);
}

}  // namespace

int main(int argc, char** argv) {
  apl::CommandLine line("runs random programs on every backend against the interpreter");
  Options options;
  CheckOptions& check = options.check;
  bool no_stages = false;
  std::vector<std::string> backends;
  line.option("--seed", options.seed, "of the first program");
  line.option("--count", options.count, "programs");
  line.option("--batch", options.batch, "programs a compilation");
  line.choice("--kind", options.kind, {"general", "short-rows", "branch-loops"}, "what programs are made of");
  line.option("--backends", backends,
              "c, emulate, cuda, nvrtc (which compiles and runs nothing); or none (default: c,emulate)");
  line.flag("--as-users", check.as_users,
            "C alone, with a kernel for each plan, as `aplc run` makes it; not interpreted after each pass");
  check.compiler.add_to(line);
  line.flag("--no-stages", no_stages, "do not interpret programs after each pass");
  line.option("--state", options.state, "file with what is done so far: a run with the same options goes on from it");
  line.option("--shrink-seconds", options.shrink_seconds, "for making a failing program small");
  line.option("--shrink-most", options.most_shrunk, "failures that are made small");
  line.option("--orders", options.orders, "orders of passes that each program goes through, on the interpreter alone");
  line.option(
      "--threshold", check.threshold,
      "where sizes choose between versions of the program: 1 takes those for many, a large number those for few");
  line.flag("--disable", options.disable, "leave out passes of the standard pipeline, others in each batch");
  line.flag("--print", options.print, "print the programs and run nothing");
  if (const auto code = line.parse(argc, argv)) return *code;
  if (check.as_users) check.backends = {"c"};
  if (!backends.empty()) check.backends = backends;
  std::erase(check.backends, "none");
  check.stages = !no_stages && !check.as_users;
  if (options.orders > 0) check.backends.clear();
  if (options.print) {
    for (const Program& program : programs_of(options, 0, options.count))
      fmt::print("{}\n", to_text(program.definitions));
    return 0;
  }
  if (auto runs = apl::testing::check_machine(check.compiler); !runs) {
    fmt::print("skipped: {}\n", runs.error().message);
    return kSkipped;
  }
  std::signal(SIGINT, [](int) { interrupted = 1; });
  return run(options);
}
