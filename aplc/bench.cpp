// aplc bench FILE ...: measure the cases of programs' test blocks; JSON in Futhark's format.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "aplc/arguments.h"
#include "aplc/driver.h"
#include "aplc/parameters.h"
#include "aplc/sparse/arguments.h"
#include "aplc/sparse/plans.h"
#include "aplc/test/children.h"
#include "aplc/test/executable.h"
#include "aplc/test/program.h"
#include "suite/pattern.h"
#include "suite/timing.h"
#include "suite/values.h"

namespace aplc {
namespace {

constexpr int kBenchmarkFailed = 1;

struct BenchOptions : BlockOptions {
  BenchOptions() { timeout = 600; }
  std::vector<std::string> words;      // paths and arguments, as they were given
  std::vector<std::string> arguments;  // NAME=VALUE: what is measured instead of test blocks
  std::vector<std::string> sizes;      // n=1024
  std::string ignored;                 // a regular expression of paths of programs
  std::optional<int> runs;             // exactly; none: until times converge
  bool no_convergence = false;
  double convergence_seconds = 60;
  bool profile = false, skip_compilation = false;
};

// `A=@M.mtx`, unless there is such a file.
bool is_bench_argument(const std::string& word) {
  std::error_code none;
  return word.find('=') != std::string::npos && !std::filesystem::exists(word, none);
}

struct Measured {
  std::vector<double> times;  // microseconds
  std::int64_t bytes = 0;
  std::string error;
  nlohmann::json profile = {};  // with --profile: what the program reports
  std::string said = {};        // and what it says on standard error
};

struct BenchCase {
  std::string entry;
  apl::suite::Case test_case;  // its name alone, of a case by arguments
  std::optional<Measured> measured;
};

struct BenchProgram {
  std::string file;
  std::vector<BenchCase> cases;
};

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// What is shown while a case runs.
using Progress = std::function<void(const std::vector<double>& times, double seconds)>;

apl::Status measure(Executable& executable, const std::string& entry, const Values& inputs, const BenchOptions& options,
                    const Progress& progress, Measured& measured) {
  constexpr double kSecondsBetween = 0.3;
  apl::suite::MeasureLimits limits;
  limits.most_seconds = options.convergence_seconds;
  limits.converge = !options.no_convergence && !options.runs;
  if (options.runs) {
    limits.least_runs = static_cast<std::size_t>(*options.runs);
    limits.least_seconds = 0;
  }
  const double start = seconds_now();
  double shown = 0;
  auto times = apl::suite::measure(
      limits,
      [&](std::size_t runs, double seconds) {
        return executable.benchmark(entry, inputs, static_cast<int>(runs), seconds);
      },
      seconds_now,
      [&](const std::vector<double>& so_far) {
        if (seconds_now() - shown < kSecondsBetween) return;
        shown = seconds_now();
        progress(so_far, shown - start);
      });
  if (!times) return std::move(times).error();
  measured.times = std::move(*times);
  measured.bytes = executable.peak_bytes();
  return apl::Unit{};
}

// The values of a case, as the compiled entry takes them.
apl::Result<Values> inputs_of(const std::string& file, const apl::Function& entry, const Executable& executable,
                              const BenchCase& bench_case, const BenchOptions& options) {
  if (options.arguments.empty()) {
    auto inputs = case_inputs(file, bench_case.test_case.input, entry, options.seed);
    if (!inputs) return inputs;
    if (auto fits = fit_inputs(entry, *inputs); !fits) return std::move(fits).error();
    return inputs;
  }
  RandomArguments random{{}, options.seed};
  for (const std::string& text : options.sizes) {
    auto size = parse_size(text);
    if (!size) return std::move(size).error();
    random.sizes.insert(*size);
  }
  GivenMatrices matrices;
  auto inputs = read_arguments(entry, options.arguments, matrices, &random);
  if (!inputs) return inputs;
  if (auto fits = executable.check_plans(entry.entry->name, *inputs, matrices); !fits) return std::move(fits).error();
  if (const apl::Function* compiled = executable.module().find_entry(entry.entry->name)) {
    auto placed = sparse::place_operands(*compiled, *inputs, matrices, {});
    if (!placed) return std::move(placed).error();
    return std::move(placed->values);
  }
  return inputs;
}

// Runs once, compares with what is expected if that is known, then measures.
Measured bench_case(const std::string& file, const apl::Module& module, Executable& executable,
                    const BenchCase& bench_case, const BenchOptions& options, const Progress& progress) {
  using Kind = apl::suite::Expected::Kind;
  Measured measured;
  auto fail = [&](const apl::Diagnostic& error) {
    measured.error = apl::render(error, "", "");
    return measured;
  };
  const apl::Function* entry = module.find_entry(bench_case.entry);
  // Of a program with one entry that one is meant.
  if (!entry && options.entry.empty() && !options.arguments.empty() &&
      std::ranges::count_if(module.functions, [](const auto& f) { return f->is_entry(); }) == 1)
    entry = std::ranges::find_if(module.functions, [](const auto& f) { return f->is_entry(); })->get();
  if (!entry) {
    measured.error = fmt::format("no entry `{}`", bench_case.entry);
    return measured;
  }
  if (Server* server = executable.server())
    if (auto cleared = server->clear(); !cleared) return fail(cleared.error());
  auto inputs = inputs_of(file, *entry, executable, bench_case, options);
  if (!inputs) return fail(inputs.error());
  const apl::suite::Expected& expected = bench_case.test_case.expected;
  auto got = executable.call(entry->entry->name, *inputs, !options.arguments.empty());
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
  if (auto status = measure(executable, entry->entry->name, *inputs, options, progress, measured); !status)
    return fail(status.error());
  if (!options.profile || executable.server() == nullptr) return measured;
  const auto report = executable.server()->report();
  if (!report) return fail(report.error());
  measured.profile = nlohmann::json::parse(*report, nullptr, false);
  measured.said = executable.server()->said();
  return measured;
}

// How programs run as servers, where an option asks for that.
ServerOptions server_options(const std::string& file, const BenchOptions& options) {
  ServerOptions server;
  server.wanted = options.profile || options.skip_compilation || options.serves();
  server.runner = options.runner;
  if (options.profile) server.options = {"--profile", "--log"};
  server.options.insert(server.options.end(), options.pass_options.begin(), options.pass_options.end());
  if (options.skip_compilation) server.program = std::filesystem::path(file).replace_extension().string();
  return server;
}

void bench_program(const BenchProgram& program, const BenchOptions& options,
                   const std::function<void(std::string_view)>& send) {
  auto say = [&](const nlohmann::json& line) {
    send(line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  };
  auto tuning = options.no_tuning ? Tuning{} : tuning_beside(program.file, options.tuning);
  if (tuning)
    for (const auto& [name, value] : options.compiler.parameters) tuning->values[name] = value;
  FrontEnd front = run_front_end(program.file, tuning ? tuning->values : Parameters{}, options.compiler.front);
  if (const std::string warning = tuning ? unknown_names(*tuning, front) : ""; !warning.empty())
    say({{"warning", warning}});
  // What became of plans, once: they are used again in every run.
  const auto plan_remarks = [&, said = std::set<std::string>()](const apl::Remark& remark) mutable {
    const std::string text = apl::render(remark, "") + "\n";
    if (said.insert(text).second) say({{"warning", text}});
  };
  apl::Result<Executable> executable = apl::make_error(apl::Code::bug_internal, {}, front.errors);
  auto cache = options.no_cache ? nullptr : std::make_shared<apl::ObjectCache>(cache_folder());
  if (!tuning)
    executable = tuning.error();
  else if (front.module)
    executable = Executable::make(*front.module, {options.backend,
                                                  options.temporary_folder,
                                                  options.compiler.disabled,
                                                  tuning->values,
                                                  cache,
                                                  options.plans,
                                                  plan_remarks,
                                                  {},
                                                  server_options(program.file, options),
                                                  options.use_cublas});
  for (std::size_t k = 0; k < program.cases.size(); ++k) {
    if (program.cases[k].measured) continue;
    if (!executable) {
      say({{"case", k},
           {"error", front.module ? apl::render(executable.error(), executable.error().file, "") : front.errors}});
      continue;
    }
    say({{"case", k}, {"runs", 0}});
    const auto progress = [&](const std::vector<double>& times, double seconds) {
      say({{"case", k},
           {"runs", times.size()},
           {"seconds", seconds},
           {"time", apl::suite::mean(times)},
           {"spread", apl::suite::relative_standard_error(times)}});
    };
    const Measured measured = bench_case(program.file, *front.module, *executable, program.cases[k], options, progress);
    nlohmann::json line{{"case", k}, {"error", measured.error}, {"times", measured.times}, {"bytes", measured.bytes}};
    if (options.profile) line.update({{"profile", measured.profile}, {"said", measured.said}});
    say(line);
  }
}

class BenchRun {
 public:
  explicit BenchRun(BenchOptions options) : options_(std::move(options)) {}

  int run() {
    auto folder = WorkFolder::make();
    if (!folder) return report(folder.error());
    options_.temporary_folder = folder->path();
    if (const auto found = find_cases(); !found) return report(found.error());
    if (auto writable = check_output(options_.json); !writable) return report(writable.error());
    std::deque<Child> children;
    for (BenchProgram& program : programs_) children.push_back(child_for(program));
    ChildLimits limits;
    limits.seconds = options_.timeout;
    limits.folder = options_.temporary_folder;
    const bool finished = run_children(children, limits);
    show_nothing();
    if (!finished) print_out("interrupted\n");
    if (const int status = options_.json.empty() ? kFine : emit(options_.json, json()); status != kFine) return status;
    return finished && !failed_ ? kFine : kBenchmarkFailed;
  }

 private:
  // Blocks are read as for tests, with the tags that concern measuring.
  apl::Status find_cases() {
    TestOptions tests;
    tests.backend = options_.backend;
    tests.entry = options_.entry;
    tests.excluded = options_.excluded;
    tests.excluded.emplace_back("nobench");
    tests.spec_file = options_.spec_file;
    std::vector<std::string> files = find_programs(options_.paths);
    if (!options_.ignored.empty()) {
      if (const auto valid = apl::suite::matches(options_.ignored, ""); !valid)
        return apl::make_error(apl::Code::command_bad_argument, {}, "--ignore-files: " + valid.error().message);
      std::erase_if(files, [&](const std::string& file) { return *apl::suite::matches(options_.ignored, file); });
    }
    if (!options_.arguments.empty()) {
      for (const std::string& file : files)
        programs_.push_back(
            {file,
             {{options_.entry.empty() ? "main" : options_.entry,
               {.name = fmt::format("{}", fmt::join(options_.arguments, " ")), .input = {}, .expected = {}},
               std::nullopt}}});
      return apl::Unit{};
    }
    for (const std::string& file : files) {
      const TestedProgram plan = find_tests(file, tests);
      BenchProgram program{file, {}};
      for (const Test& test : plan.tests) {
        if (test.kind == TestKind::bad_test) {
          print_out("{}{}", test.message, test.message.ends_with('\n') ? "" : "\n");
          failed_ = true;
        }
        if (test.what == Test::What::run && test.status == TestStatus::waiting &&
            test.test_case.expected.kind != apl::suite::Expected::Kind::error)
          program.cases.push_back({test.entry, test.test_case, std::nullopt});
      }
      if (!program.cases.empty()) programs_.push_back(std::move(program));
    }
    return apl::Unit{};
  }

  Child child_for(BenchProgram& program) {
    Child child;
    child.body = [this, &program](const auto& send) { bench_program(program, options_, send); };
    child.line = [this, &program](std::string_view text) {
      const auto line = nlohmann::json::parse(text, nullptr, false);
      if (line.is_object() && line.contains("warning")) print_error("{}", line["warning"].get<std::string>());
      if (!line.is_object() || line.value("case", program.cases.size()) >= program.cases.size()) return Clock::restarts;
      if (line.contains("runs")) {
        show(program, program.cases[line["case"].get<std::size_t>()], line);
        return Clock::restarts;
      }
      Measured measured;
      measured.error = line.value("error", std::string());
      measured.times = line.value("times", std::vector<double>());
      measured.bytes = line.value("bytes", std::int64_t{0});
      measured.profile = line.value("profile", nlohmann::json());
      measured.said = line.value("said", std::string());
      note(program, program.cases[line["case"].get<std::size_t>()], std::move(measured));
      return Clock::restarts;
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
    show_nothing();
    const std::string name = title(program, one) + " " + one.test_case.name;
    if (!measured.error.empty()) {
      failed_ = true;
      print_out("{}: {}\n", name, measured.error);
    } else {
      const std::vector<double>& times = measured.times;
      const auto [least, most] = std::minmax_element(times.begin(), times.end());
      print_out("{}: {:.0f} us (+- {:.1f}%; {:.0f} to {:.0f}; {} runs)\n", name, apl::suite::mean(times),
                100 * apl::suite::relative_standard_error(times), *least, *most, times.size());
    }
    flush_out();
    one.measured = std::move(measured);
  }

  // What runs, in a line of a terminal that is written over.
  void show(const BenchProgram& program, const BenchCase& one, const nlohmann::json& progress) const {
    if (!isatty(STDERR_FILENO)) return;
    const int runs = progress.value("runs", 0);
    const std::string times =
        runs == 0 ? "first run"
                  : fmt::format("{} (+- {:.1f}%), {} runs, {:.0f} s of {:.0f} s at most",
                                microseconds_text(progress.value("time", 0.0)), 100 * progress.value("spread", 0.0),
                                runs, progress.value("seconds", 0.0), options_.convergence_seconds);
    print_error("\r\x1b[K{} {}: {}", title(program, one), one.test_case.name, times);
  }
  static void show_nothing() {
    if (isatty(STDERR_FILENO)) write_error("\r\x1b[K");
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
        if (!options_.profile) continue;
        slot["profiling"] = one.measured->profile;
        slot["stderr"] = one.measured->said;
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
  command
      ->add_option("FILE", options->words,
                   "programs (.fut), and folders of them; NAME=VALUE, NAME=@FILE (values, or a matrix of a sparse "
                   "operand): arguments of the entry instead of its test blocks, arrays that are not given are random")
      ->required()
      ->check(
          [](const std::string& word) { return is_bench_argument(word) ? std::string() : CLI::ExistingPath(word); });
  options->add_to(*command);
  command->add_option("--size", options->sizes, "of random arguments, as n=1024")
      ->type_name("SIZE")
      ->allow_extra_args(false);
  command
      ->add_option("-r,--runs", options->runs,
                   "number of runs (default: 10 and 0.5 s at least, and on until the error is small)")
      ->check(CLI::PositiveNumber);
  command->add_option("--ignore-files", options->ignored, "leave out programs whose path matches this")
      ->type_name("REGEX");
  command->add_option("-e,--entry-point", options->entry, "measure only this entry");
  command->add_option("--exclude-case", options->excluded, "skip cases with this tag")
      ->type_name("TAG")
      ->allow_extra_args(false);
  command->add_flag("--no-convergence-phase", options->no_convergence, "do not run on until the error is small");
  command
      ->add_option("--convergence-max-seconds", options->convergence_seconds, "a case is not run again after so many")
      ->capture_default_str();
  command->add_option("--timeout", options->timeout, "seconds for a case, and for compiling a program")
      ->capture_default_str();
  command->add_flag("--skip-compilation", options->skip_compilation,
                    "programs are there as servers, named as the file without .fut");
  CLI::Option* profile = command->add_flag(
      "--profile", options->profile, "run programs as servers with --profile and --log, and write what they report");
  CLI::Option* json = command->add_option("--json", options->json, "write all times to this file")->type_name("FILE");
  profile->needs(json);
  command->callback([options, &exit] {
    options->read();
    for (const std::string& word : options->words)
      (is_bench_argument(word) ? options->arguments : options->paths).push_back(word);
    if (options->paths.empty()) throw CLI::RequiredError("FILE");
    const bool serves = options->profile || options->skip_compilation || options->serves();
    if (serves && !options->arguments.empty())
      throw CLI::ValidationError(
          "arguments are measured in this process: without --profile, --pass-option, --runner and --skip-compilation");
    if (options->arguments.empty() && !options->sizes.empty()) throw CLI::ValidationError("--size is for arguments");
    exit = BenchRun(*options).run();
  });
}

}  // namespace aplc
