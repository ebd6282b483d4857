// aplc bench FILE ...: measure the cases of programs' test blocks; JSON in Futhark's format.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "aplc/driver.h"
#include "aplc/sparse/plans.h"
#include "aplc/test/children.h"
#include "aplc/test/executable.h"
#include "aplc/test/plan.h"
#include "suite/timing.h"
#include "suite/values.h"

namespace aplc {
namespace {

constexpr int kBenchmarkFailed = 1;

struct BenchOptions {
  std::vector<std::string> paths;
  std::string backend = "c";
  std::string entry;
  std::vector<std::string> excluded;
  std::vector<std::string> plans;  // OPERAND=FILE
  int runs = 10;
  bool no_convergence = false;
  double convergence_seconds = 300;
  double timeout = 600;
  std::string json;
  std::string tuning = "tuning";
  bool no_tuning = false;
  bool no_cache = false;
  std::string temporary_folder;
};

struct Measured {
  std::vector<double> times;  // microseconds
  std::int64_t bytes = 0;
  std::string error;
};

struct BenchCase {
  std::string entry;
  apl::suite::Case test_case;
  std::optional<Measured> measured;
};

struct BenchProgram {
  std::string file;
  std::vector<BenchCase> cases;
};

apl::Status measure(Executable& executable, const std::string& entry, const Values& inputs, const BenchOptions& options,
                    Measured& measured) {
  using Clock = std::chrono::steady_clock;
  constexpr double kLeastMicroseconds = 500'000;
  constexpr std::size_t kMostAtOnce = 1'000'000;
  const auto start = Clock::now();
  double sum = 0;
  auto more = [&](std::size_t runs) -> apl::Status {
    auto times = executable.benchmark(entry, inputs, static_cast<int>(std::clamp<std::size_t>(runs, 1, kMostAtOnce)));
    if (!times) return std::move(times).error();
    measured.times.insert(measured.times.end(), times->begin(), times->end());
    for (double time : *times) sum += time;
    return apl::Unit{};
  };
  if (auto status = more(static_cast<std::size_t>(std::max(options.runs, 1))); !status) return status;
  while (sum < kLeastMicroseconds) {
    const double each = std::max(sum / static_cast<double>(measured.times.size()), 0.1);
    if (auto status = more(static_cast<std::size_t>((kLeastMicroseconds - sum) / each) + 1); !status) return status;
  }
  while (!options.no_convergence) {
    std::size_t runs = apl::suite::more_runs(measured.times);
    const double left = options.convergence_seconds - std::chrono::duration<double>(Clock::now() - start).count();
    if (runs == 0 || left <= 0) break;
    runs = std::min(runs, static_cast<std::size_t>(left * 1e6 / std::max(apl::suite::mean(measured.times), 0.1)) + 1);
    if (auto status = more(runs); !status) return status;
  }
  measured.bytes = executable.peak_bytes();
  return apl::Unit{};
}

// Runs once, compares with what is expected if that is known, then measures.
Measured bench_case(const std::string& file, const apl::Module& module, Executable& executable,
                    const BenchCase& bench_case, const BenchOptions& options) {
  using Kind = apl::suite::Expected::Kind;
  Measured measured;
  auto fail = [&](const apl::Diagnostic& error) {
    measured.error = apl::render(error, "", "");
    return measured;
  };
  const apl::Function* entry = module.find_entry(bench_case.entry);
  if (!entry) {
    measured.error = fmt::format("no entry `{}`", bench_case.entry);
    return measured;
  }
  auto inputs = case_inputs(file, bench_case.test_case.input);
  if (!inputs) return fail(inputs.error());
  if (auto fits = fit_inputs(*entry, *inputs); !fits) return fail(fits.error());
  const apl::suite::Expected& expected = bench_case.test_case.expected;
  auto got = executable.call(bench_case.entry, *inputs);
  if (!got) return fail(got.error());
  if (expected.kind == Kind::values || expected.kind == Kind::file) {
    auto wanted = expected.kind == Kind::values
                      ? apl::parse_values(expected.text, apl::OutOfRange::wrap)
                      : apl::suite::read_values(std::filesystem::path(file).parent_path() / expected.text);
    if (!wanted) return fail(wanted.error());
    if (auto differs = apl::suite::difference(*got, *wanted)) {
      measured.error = "wrong result: " + *differs;
      return measured;
    }
  }
  if (auto status = measure(executable, bench_case.entry, *inputs, options, measured); !status)
    return fail(status.error());
  return measured;
}

void bench_program(const BenchProgram& program, const BenchOptions& options,
                   const std::function<void(std::string_view)>& send) {
  auto say = [&](const nlohmann::json& line) {
    send(line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  };
  auto tuning = options.no_tuning ? Parameters{} : tuning_beside(program.file, options.tuning);
  FrontEnd front = run_front_end(program.file, tuning ? *tuning : Parameters{});
  apl::Result<Executable> executable = apl::make_error(apl::Code::bug_internal, {}, front.errors);
  auto cache = options.no_cache ? nullptr : std::make_shared<apl::ObjectCache>(cache_folder());
  if (!tuning)
    executable = tuning.error();
  else if (front.module)
    executable = Executable::make(
        *front.module,
        {options.backend, options.temporary_folder, {}, *tuning, cache, options.plans, sparse::print_plan_remark});
  for (std::size_t k = 0; k < program.cases.size(); ++k) {
    if (program.cases[k].measured) continue;
    if (!executable) {
      say({{"case", k}, {"error", front.module ? apl::render(executable.error(), "", "") : front.errors}});
      continue;
    }
    const Measured measured = bench_case(program.file, *front.module, *executable, program.cases[k], options);
    say({{"case", k}, {"error", measured.error}, {"times", measured.times}, {"bytes", measured.bytes}});
  }
}

class BenchRun {
 public:
  explicit BenchRun(BenchOptions options) : options_(std::move(options)) {}

  int run() {
    auto folder = apl::TemporaryFolder::make("/tmp");
    if (!folder) {
      fmt::print(stderr, "aplc: error: {}\n", folder.error().message);
      return kBug;
    }
    options_.temporary_folder = folder->path();
    find_cases();
    std::deque<Child> children;
    for (BenchProgram& program : programs_) children.push_back(child_for(program));
    ChildLimits limits;
    limits.seconds = options_.timeout;
    limits.folder = options_.temporary_folder;
    const bool finished = run_children(children, limits);
    if (!finished) fmt::print("interrupted\n");
    if (!options_.json.empty() && emit(options_.json, json()) != kFine) return kCommandLine;
    return finished && !failed_ ? kFine : kBenchmarkFailed;
  }

 private:
  // Blocks are read as for tests, with the tags that concern measuring.
  void find_cases() {
    TestOptions tests;
    tests.backend = options_.backend;
    tests.entry = options_.entry;
    tests.excluded = options_.excluded;
    tests.excluded.emplace_back("nobench");
    for (const std::string& file : find_programs(options_.paths)) {
      const ProgramPlan plan = plan_program(file, tests);
      BenchProgram program{file, {}};
      for (const Test& test : plan.tests) {
        if (test.kind == TestKind::bad_test) {
          fmt::print("{}", test.message);
          failed_ = true;
        }
        if (test.what == Test::What::run && test.status == TestStatus::waiting &&
            test.test_case.expected.kind != apl::suite::Expected::Kind::error)
          program.cases.push_back({test.entry, test.test_case, std::nullopt});
      }
      if (!program.cases.empty()) programs_.push_back(std::move(program));
    }
  }

  Child child_for(BenchProgram& program) {
    Child child;
    child.body = [this, &program](const auto& send) { bench_program(program, options_, send); };
    child.line = [this, &program](std::string_view text) {
      const auto line = nlohmann::json::parse(text, nullptr, false);
      if (!line.is_object() || line.value("case", program.cases.size()) >= program.cases.size()) return;
      Measured measured;
      measured.error = line.value("error", std::string());
      measured.times = line.value("times", std::vector<double>());
      measured.bytes = line.value("bytes", std::int64_t{0});
      note(program, program.cases[line["case"].get<std::size_t>()], std::move(measured));
    };
    child.end = [this, &program](const Outcome& outcome) {
      for (BenchCase& one : program.cases)
        if (!one.measured)
          note(program, one,
               {{},
                0,
                fmt::format("{}: {}", outcome.kind == Outcome::Kind::timed_out ? "time-out" : "crash",
                            outcome.message)});
    };
    return child;
  }

  void note(const BenchProgram& program, BenchCase& one, Measured measured) {
    const std::string name = title(program, one);
    if (!measured.error.empty()) {
      failed_ = true;
      fmt::print("{} {}: {}\n", name, one.test_case.name, measured.error);
    } else {
      const std::vector<double>& times = measured.times;
      const auto [least, most] = std::minmax_element(times.begin(), times.end());
      fmt::print("{} {}: {:.0f} us (+- {:.1f}%; {:.0f} to {:.0f}; {} runs)\n", name, one.test_case.name,
                 apl::suite::mean(times), 100 * apl::suite::relative_standard_error(times), *least, *most,
                 times.size());
    }
    std::fflush(stdout);
    one.measured = std::move(measured);
  }

  static std::string title(const BenchProgram& program, const BenchCase& one) {
    return one.entry == "main" ? program.file : program.file + ":" + one.entry;
  }

  std::string json() const {
    auto all = nlohmann::json::object();
    for (const BenchProgram& program : programs_)
      for (const BenchCase& one : program.cases) {
        if (!one.measured) continue;
        auto& slot = all[title(program, one)]["datasets"][one.test_case.name];
        if (!one.measured->error.empty()) {
          slot = one.measured->error;
          continue;
        }
        auto times = nlohmann::json::array();
        for (double time : one.measured->times) times.push_back(static_cast<std::int64_t>(std::llround(time)));
        slot = {{"runtimes", std::move(times)}, {"bytes", nlohmann::json::object()}};
        if (one.measured->bytes > 0) slot["bytes"]["device"] = one.measured->bytes;
      }
    return all.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  }

  BenchOptions options_;
  std::vector<BenchProgram> programs_;
  bool failed_ = false;
};

}  // namespace

void add_bench(CLI::App& app, int& exit) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command = app.add_subcommand("bench", "measure the cases of programs' test blocks");
  command->footer("Exit code 1 if a case failed. Results are compared where a block has them.");
  command->add_option("FILE", options->paths, "programs (.fut), and folders of them")
      ->required()
      ->check(CLI::ExistingPath);
  command->add_option("--backend", options->backend, "c, interp, emulate or cuda")
      ->check(CLI::IsMember({"c", "interp", "emulate", "cuda"}))
      ->capture_default_str();
  command->add_option("-r,--runs", options->runs, "least number of runs; there are at least 0.5 s of them")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--entry-point", options->entry, "measure only this entry");
  command->add_option("--plan", options->plans, sparse::kPlanHelp)->type_name("OPERAND=PLAN")->allow_extra_args(false);
  command->add_option("--exclude-case", options->excluded, "skip cases with this tag")
      ->type_name("TAG")
      ->allow_extra_args(false);
  command->add_flag("--no-convergence-phase", options->no_convergence, "do not run on until the error is small");
  command->add_option("--convergence-max-seconds", options->convergence_seconds, "end of that phase")
      ->capture_default_str();
  command->add_option("--timeout", options->timeout, "seconds for a program")->capture_default_str();
  command->add_option("--tuning", options->tuning, "ending of the files with tuning parameters, FILE.ENDING")
      ->type_name("ENDING")
      ->capture_default_str();
  command->add_flag("--no-tuning", options->no_tuning, "do not read them");
  command->add_flag("--no-cache", options->no_cache, "compile even what was compiled before, and keep nothing");
  command->add_option("--json", options->json, "write all times to this file")->type_name("FILE");
  command->callback([options, &exit] { exit = BenchRun(*options).run(); });
}

}  // namespace aplc
