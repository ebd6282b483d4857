// aplc test FILE|FOLDER ...: run the test blocks of programs.
#include <fmt/format.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "aplc/driver.h"
#include "aplc/sparse/plans.h"
#include "aplc/test/children.h"
#include "aplc/test/evaluate.h"
#include "aplc/test/program.h"
#include "runtime/backends/toolchain.h"

namespace aplc {
namespace {

constexpr int kTestsFailed = 1;

struct Counts {
  std::size_t passed = 0, failed = 0, skipped = 0, not_run = 0;
  void add(TestStatus status) {
    ++(status == TestStatus::passed    ? passed
       : status == TestStatus::failed  ? failed
       : status == TestStatus::skipped ? skipped
                                       : not_run);
  }
};

std::string first_line(const std::string& text) {
  constexpr std::size_t kMost = 300;
  std::string line = text.substr(0, text.find('\n'));
  return line.size() > kMost ? line.substr(0, kMost) + "..." : line;
}

// Failed if one test did; skipped if all were.
TestStatus status_of(const TestedProgram& plan) {
  Counts counts;
  for (const Test& test : plan.tests) counts.add(test.status);
  if (counts.failed) return TestStatus::failed;
  if (counts.not_run) return TestStatus::waiting;
  return counts.passed ? TestStatus::passed : TestStatus::skipped;
}

class TestRun {
 public:
  explicit TestRun(TestOptions options) : options_(std::move(options)) {}

  int run() {
    auto folder = WorkFolder::make();
    if (!folder) return aplc::report(folder.error());
    options_.temporary_folder = folder->path();
    const std::vector<std::string> files = find_programs(options_.paths);
    if (files.empty()) {
      print_error("aplc: error: no program (.fut) in the folders given [command.no-such-file]\n");
      return kCommandLine;
    }
    plans_.reserve(files.size());
    std::deque<Child> children;
    for (const std::string& file : files) {
      plans_.push_back(find_tests(file, options_));
      if (plans_.back().tests.empty()) plans_.pop_back();  // none for the entry asked for
    }
    for (TestedProgram& plan : plans_) {
      if (waiting(plan).empty()) {
        report(plan);
      } else {
        children.push_back(child_for(plan, children));
      }
    }
    if (auto writable = check_output(options_.json); !writable) return aplc::report(writable.error());
    ChildLimits limits;
    limits.concurrency = options_.concurrency;
    if (limits.concurrency == 0) limits.concurrency = std::max(1u, std::thread::hardware_concurrency());
    limits.seconds = options_.timeout;
    limits.gibibytes = options_.backend == "cuda" ? 0 : options_.memory;
    limits.folder = options_.temporary_folder;
    const bool finished = run_children(children, limits);
    clear_progress();
    if (!finished) print_out("interrupted\n");
    summary();
    if (const int status = options_.json.empty() ? kFine : emit(options_.json, json()); status != kFine) return status;
    return finished && failures_.empty() ? kFine : kTestsFailed;
  }

 private:
  static std::vector<std::size_t> waiting(const TestedProgram& plan) {
    std::vector<std::size_t> tests;
    for (std::size_t k = 0; k < plan.tests.size(); ++k)
      if (plan.tests[k].status == TestStatus::waiting) tests.push_back(k);
    return tests;
  }

  Child child_for(TestedProgram& plan, std::deque<Child>& children) {
    auto current = std::make_shared<std::size_t>(std::string::npos);
    Child child;
    child.body = [this, &plan](const auto& send) { evaluate(plan, waiting(plan), options_, send); };
    child.clock_stands = true;
    child.line = [&plan, current](std::string_view line) {
      const Applied applied = apply_line(plan, line);
      if (applied.started != std::string::npos) *current = applied.started;
      return applied.clock;
    };
    child.end = [this, &plan, current, &children](const Outcome& outcome) {
      const bool timed_out = outcome.kind == Outcome::Kind::timed_out;
      const bool in_test =
          *current < plan.tests.size() && plan.tests[*current].status == TestStatus::waiting && !timed_out;
      for (std::size_t k : waiting(plan)) {
        if (in_test && k != *current) continue;  // the others get another process
        Test& test = plan.tests[k];
        test.status = TestStatus::failed;
        test.kind = timed_out ? TestKind::time_out : TestKind::crash;
        test.message = outcome.message.empty() ? "the process ended early" : outcome.message;
        test.seconds = outcome.seconds;
      }
      if (waiting(plan).empty()) {
        report(plan);
      } else {
        children.push_front(child_for(plan, children));
      }
    };
    return child;
  }

  void report(const TestedProgram& plan) {
    clear_progress();
    // One line where a program's tests all fail for one reason.
    std::map<std::pair<TestKind, std::string>, std::vector<const Test*>> lines;
    for (const Test& test : plan.tests)
      if (test.status == TestStatus::failed) lines[{test.kind, test.message}].push_back(&test);
    for (const auto& [reason, tests] : lines) {
      const Test& test = *tests.front();
      std::string where = test.what == Test::What::run        ? fmt::format(" {} {}", test.entry, test.test_case.name)
                          : test.what == Test::What::property ? " " + test.entry
                                                              : "";
      if (tests.size() > 1) where += fmt::format(" and {} more", tests.size() - 1);
      // The argument of a property is wanted whole.
      print_out("FAILED {}{}: {}: {}\n", plan.file, where, to_text(reason.first),
                test.what == Test::What::property ? reason.second : first_line(reason.second));
      failures_[reason.first] += tests.size();
    }
    programs_.add(status_of(plan));
    progress(plan.file);
  }

  void progress(const std::string& file) {
    flush_out();
    if (options_.no_terminal || !isatty(STDERR_FILENO)) return;
    const std::size_t done = programs_.passed + programs_.failed + programs_.skipped;
    print_error("\r\x1b[K{}/{}, {} failed: {}", done, plans_.size(), programs_.failed, file);
  }
  void clear_progress() const {
    if (options_.no_terminal || !isatty(STDERR_FILENO)) return;
    print_error("\r\x1b[K");
  }

  void summary() {
    Counts programs;
    std::map<Test::What, Counts> tests;
    for (const TestedProgram& plan : plans_) {
      programs.add(status_of(plan));
      for (const Test& test : plan.tests) tests[test.what].add(test.status);
    }
    print_out("\n{:<16}{:>8}{:>8}{:>9}{:>9}\n", options_.backend, "passed", "failed", "skipped", "not run");
    auto row = [](std::string_view name, const Counts& counts) {
      print_out("{:<16}{:>8}{:>8}{:>9}{:>9}\n", name, counts.passed, counts.failed, counts.skipped, counts.not_run);
    };
    row("programs", programs);
    static const std::map<Test::What, std::string_view> kNames{{Test::What::run, "  cases"},
                                                               {Test::What::property, "  properties"},
                                                               {Test::What::compile, "  compile only"},
                                                               {Test::What::error, "  must not"},
                                                               {Test::What::warning, "  warnings"},
                                                               {Test::What::structure, "  structures"}};
    for (const auto& [what, counts] : tests) row(kNames.at(what), counts);
    if (!failures_.empty()) print_out("\nfailed tests by kind\n");
    for (const auto& [kind, count] : failures_) print_out("  {:<14}{:>8}\n", to_text(kind), count);
  }

  std::string json() const {
    auto records = nlohmann::json::array();
    for (const TestedProgram& plan : plans_)
      for (const Test& test : plan.tests) {
        records.push_back({{"program", plan.file},
                           {"test", std::string(to_text(test.what))},
                           {"entry", test.entry},
                           {"case", test.test_case.name},
                           {"line", test.test_case.line},
                           {"status", std::string(to_text(test.status))},
                           {"kind", std::string(to_text(test.kind))},
                           {"message", test.message},
                           {"seconds", test.seconds}});
        if (test.what != Test::What::structure) continue;
        const apl::suite::Structure& structure = plan.spec.structures[test.structure];
        records.back()["pipelines"] = structure.pipelines;
        records.back()["wanted"] = structure.counts;
        records.back()["counts"] = test.counts;
      }
    const nlohmann::json all{{"backend", options_.backend}, {"tests", std::move(records)}};
    return all.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  }

  TestOptions options_;
  std::vector<TestedProgram> plans_;
  Counts programs_;
  std::map<TestKind, std::size_t> failures_;
};

}  // namespace

void add_test(CLI::App& app, int& exit) {
  auto options = std::make_shared<TestOptions>();
  CLI::App* command = app.add_subcommand("test", "run the test blocks of programs");
  command->footer("Exit code 1 if a test failed. Test blocks are those of `futhark test`.");
  command->add_option("FILE", options->paths, "programs (.fut), and folders of them")
      ->required()
      ->check(CLI::ExistingPath);
  options->add_to(*command);
  // As Futhark's command calls them; -c says what is so anyway.
  auto* interpreted = command->add_flag_callback(
      "-i,--interpreted", [options] { options->backend = "interp"; }, "the same as --backend=interp");
  command
      ->add_flag_callback(
          "-c,--compiled", [] {}, "only run compiled code (default)")
      ->excludes(interpreted);
  command->add_flag_callback(
      "-C,--compile", [options] { options->mode = TestMode::compile; }, "only compile");
  command->add_flag_callback(
      "-t,--typecheck", [options] { options->mode = TestMode::typecheck; }, "only parse and type-check");
  command->add_flag_callback(
      "-I,--internalise", [options] { options->mode = TestMode::typecheck; }, "the same: the front end makes IR, too");
  command->add_flag("--no-terminal,--notty", options->no_terminal, "no line of progress, also in a terminal");
  command->add_flag("-s,--structure", options->structure, "check structure blocks, too, where they mean ours");
  command->add_option("-e,--entry-point", options->entry, "run only the cases of this entry");
  options->tiles.add_to(*command);
  command->add_option("--exclude", options->excluded, "skip programs and cases with this tag")
      ->type_name("TAG")
      ->allow_extra_args(false);
  command->add_option("--concurrency", options->concurrency, "programs at a time (default: the number of processors)");
  command->add_option("--timeout", options->timeout, "seconds that a program runs, without compiling and comparing")
      ->capture_default_str();
  command
      ->add_option("--reference", options->reference,
                   "what computes the result of a case without expected output: interp, c without tiling, or "
                   "interp-or-c: c where "
                   "the interpreter needs too long")
      ->check(CLI::IsMember({"interp", "c", "interp-or-c"}))
      ->capture_default_str();
  command
      ->add_option("--reference-timeout", options->reference_timeout,
                   "seconds for the interpreter to compute such a result")
      ->capture_default_str();
  command->add_option("--memory", options->memory, "GiB of address space for a program, 0 for no limit; not for cuda")
      ->capture_default_str();
  command->add_option("--json", options->json, "write a record for each test to this file")->type_name("FILE");
  command->add_option("-n,--num-tests", options->property.tests, "random arguments that are tried for each property")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_option("--max-size", options->property.size, "size of such arguments, unless #[prop(size(N))] says one")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command
      ->add_option("--num-tries", options->property.tries,
                   "calls of a shrinker in a row that make nothing smaller, after which it is done")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->callback([options, &exit] {
    options->read();
    exit = TestRun(*options).run();
  });
}

}  // namespace aplc
