#include "aplc/test/evaluate.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "aplc/driver.h"
#include "aplc/sparse/plans.h"
#include "aplc/test/executable.h"
#include "aplc/test/property.h"
#include "aplc/test/structure.h"
#include "ir/interpret.h"
#include "suite/pattern.h"
#include "suite/reference.h"
#include "suite/values.h"
#include "suite/wide_sums.h"

namespace aplc {
namespace {

using SteadyClock = std::chrono::steady_clock;
using apl::suite::Expected;

struct Verdict {
  TestKind kind = TestKind::none;  // none: passed
  std::string message;
};

double seconds_since(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

TestKind refusal(int code) {
  switch (code) {
    case kProgram: return TestKind::compile_error;
    case kLimitation: return TestKind::unsupported;
    case kCommandLine: return TestKind::bad_test;
    case kMachine: return TestKind::machine;
    default: return TestKind::bug;
  }
}

// Whether the text is as a pattern of the test wants it.
Verdict match(const std::string& pattern, const std::string& text, TestKind otherwise) {
  auto found = apl::suite::matches(pattern, text);
  if (!found) return {TestKind::bad_test, found.error().message};
  if (*found) return {};
  return {otherwise, fmt::format("expected /{}/, got: {}", pattern, text.empty() ? "nothing" : text)};
}

// While one lives, the time is that of a run.
class Counted {
 public:
  explicit Counted(const std::function<void(std::string_view)>& send) : send_(send) { send_(R"({"clock":true})"); }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  ~Counted() { send_(R"({"clock":false})"); }

 private:
  const std::function<void(std::string_view)>& send_;
};

class Evaluation {
 public:
  Evaluation(const TestedProgram& plan, const TestOptions& options, const std::function<void(std::string_view)>& send)
      : plan_(plan), options_(options), send_(send) {}

  void run(const std::vector<std::size_t>& tests) {
    const auto start = SteadyClock::now();
    apl::Result<Tuning> tuning = options_.no_tuning ? Tuning{} : tuning_beside(plan_.file, options_.tuning);
    if (!tuning) return all({TestKind::bad_test, apl::render(tuning.error(), tuning.error().file, "")});
    parameters_ = tuning->values;
    if (!options_.no_cache) cache_ = std::make_shared<apl::ObjectCache>(cache_folder());
    for (const auto& [name, value] : options_.compiler.parameters) parameters_[name] = value;
    front_ = run_front_end(plan_.file, parameters_, options_.compiler.front);
    if (const std::string warning = unknown_names(*tuning, front_); !warning.empty())
      send_(nlohmann::json{{"warning", warning}}.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    if (plan_.spec.compile_error) {
      for (std::size_t test : tests) result(test, error_test(), start);
      return;
    }
    if (!front_.module) return all({refusal(front_.exit_code), front_.errors});
    apl::Result<Executable> executable = apl::make_error(apl::Code::bug_internal, {}, "not made");
    if (options_.mode != TestMode::typecheck) {
      executable = Executable::make(*front_.module, planned_options());
      if (!executable) return all({refusal(exit_code(executable.error())), apl::render(executable.error(), "", "")});
    }
    if (options_.mode == TestMode::run)
      for (const std::string& name : untested_properties(*front_.module, plan_.spec.properties))
        if (options_.entry.empty() || options_.entry == name) send_(nlohmann::json{{"untested", name}}.dump());
    for (std::size_t test : tests) {
      nlohmann::json line{{"start", test}};
      send_(line.dump());
      switch (plan_.tests[test].what) {
        case Test::What::run: {
          const auto run_start = SteadyClock::now();
          result(test, run_test(plan_.tests[test], *executable), run_start);
          break;
        }
        case Test::What::property: {
          const auto run_start = SteadyClock::now();
          // A fourth of the time, so that what was found is reported.
          PropertyOptions of_property = options_.property;
          of_property.seed = options_.seed;
          of_property.shrink_seconds = options_.timeout / 4;
          const Counted counted(send_);
          PropertyVerdict verdict = test_property(*front_.module, *executable, plan_.tests[test].entry, of_property);
          result(test, {verdict.kind, std::move(verdict.message)}, run_start);
          break;
        }
        case Test::What::warning: {
          Verdict verdict;
          for (const std::string& pattern : plan_.spec.warnings)
            if (verdict.kind == TestKind::none) verdict = match(pattern, front_.warnings, TestKind::wrong_warning);
          result(test, verdict, start);
          break;
        }
        case Test::What::structure: structure(test, plan_.spec.structures[plan_.tests[test].structure], start); break;
        case Test::What::compile:
        case Test::What::error: result(test, {}, start); break;
      }
    }
  }

 private:
  ExecutableOptions planned_options() const {
    ExecutableOptions options = executable_options(options_.backend, options_.compiler.disabled);
    options.plans = options_.plans;
    options.use_cublas = options_.use_cublas;
    options.tiles = options_.tiles;
    options.remarks = sparse::print_plan_remark;
    if (options_.serves()) options.server = {true, options_.pass_options, "", options_.runner};
    return options;
  }
  ExecutableOptions executable_options(const std::string& backend, std::vector<std::string> disabled) const {
    return {backend, options_.temporary_folder, std::move(disabled), parameters_, cache_};
  }
  void result(std::size_t test, const Verdict& verdict, SteadyClock::time_point start) {
    send({{"test", test}, {"seconds", seconds_since(start)}}, verdict);
  }
  void all(const Verdict& verdict) { send({{"all", true}}, verdict); }
  void send(nlohmann::json line, const Verdict& verdict) {
    line["kind"] = std::string(to_text(verdict.kind));
    line["message"] = verdict.message;
    send_(line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }

  void structure(std::size_t test, const apl::suite::Structure& wanted, SteadyClock::time_point start) {
    const auto counts = count_structure(*front_.module, wanted, parameters_);
    if (!counts) return result(test, {TestKind::bug, apl::render(counts.error(), "", "")}, start);
    nlohmann::json line{{"test", test}, {"seconds", seconds_since(start)}, {"counts", *counts}};
    if (!is_portable(wanted)) {
      line["skipped"] = "not the same operations here";
      return send(std::move(line), {});
    }
    std::string differs;
    for (const auto& [path, count] : wanted.counts) {
      const auto ours = counts->find(path);
      if (ours != counts->end() && ours->second != count)
        differs += fmt::format("{}{} {} times, not {}", differs.empty() ? "" : ", ", path, ours->second, count);
    }
    send(std::move(line), {differs.empty() ? TestKind::none : TestKind::wrong_structure, differs});
  }

  // A pattern that asks for a location in the file is looked for with the file's name.
  std::string named(const std::string& pattern) const {
    const std::string name = std::filesystem::path(plan_.file).filename().string();
    return pattern.find(name + ":") == std::string::npos ? "" : name;
  }

  Verdict error_test() const {
    if (front_.module)
      return {TestKind::no_error, fmt::format("expected /{}/, it compiles", *plan_.spec.compile_error)};
    if (front_.exit_code != kProgram) return {refusal(front_.exit_code), front_.errors};
    return match(*plan_.spec.compile_error, front_.said, TestKind::wrong_message);
  }

  Verdict run_test(const Test& test, Executable& executable) const {
    const apl::Function* entry = front_.module->find_entry(test.entry);
    if (!entry) return {TestKind::bad_test, fmt::format("no entry `{}`", test.entry)};
    auto inputs = case_inputs(plan_.file, test.test_case.input, *entry, options_.seed);
    if (!inputs) {
      const int code = exit_code(inputs.error());
      return {code == kLimitation || code == kMachine ? refusal(code) : TestKind::bad_test,
              "input: " + inputs.error().message};
    }
    const Expected& expected = test.test_case.expected;
    apl::Status fits = fit_inputs(*entry, *inputs);
    const auto run = [&]() -> apl::Result<Values> {
      if (!fits) return std::move(fits).error();
      const Counted counted(send_);
      return executable.call(test.entry, *inputs);
    };
    apl::Result<Values> got = run();
    if (!got) {
      const int code = exit_code(got.error());
      if (code != kProgram) return {refusal(code), apl::render(got.error(), "", "")};
      if (expected.kind != Expected::Kind::error) return {TestKind::run_time_error, error_text(got.error())};
      return match(expected.text, error_text(got.error(), named(expected.text)), TestKind::wrong_message);
    }
    if (expected.kind == Expected::Kind::error)
      return {TestKind::no_error, fmt::format("expected /{}/, it ran", expected.text)};
    return compare(test, *inputs, *got);
  }

  Verdict compare(const Test& test, const Values& inputs, const Values& got) const {
    const Expected& expected = test.test_case.expected;
    apl::Result<Values> wanted = Values{};
    switch (expected.kind) {
      case Expected::Kind::values: wanted = apl::parse_values(expected.text, apl::OutOfRange::wrap); break;
      case Expected::Kind::file:
        wanted = apl::suite::read_values(std::filesystem::path(plan_.file).parent_path() / expected.text);
        break;
      case Expected::Kind::nothing:
      case Expected::Kind::automatic: {
        if (options_.backend == "interp" && options_.reference != "c") return {};  // it is the reference
        wanted = reference(test.entry, inputs);
        if (!wanted && options_.reference == "interp-or-c" && wanted.error().code == apl::Code::run_stopped) {
          wanted = compiled_reference(test.entry, inputs);
        } else if (wanted && options_.reference != "c") {
          const Verdict verdict = compare_sums(test.entry, inputs, got, *wanted);
          if (verdict.kind == TestKind::none) return verdict;
          // Another value of those that a scatter gives one element is right, too.
          const apl::Result<Values> checked = interpret(*front_.module, test.entry, inputs, nullptr, true);
          if (checked || checked.error().code != apl::Code::run_scattered_twice) return verdict;
          return no_reference(expected, checked.error());
        }
        if (wanted) break;
        return no_reference(expected, wanted.error());
      }
      case Expected::Kind::error: break;
    }
    if (!wanted) return {TestKind::bad_test, "expected output: " + wanted.error().message};
    auto differs = apl::suite::difference(got, *wanted);
    return differs ? Verdict{TestKind::wrong_result, *differs} : Verdict{};
  }

  Verdict no_reference(const Expected& expected, const apl::Diagnostic& why) const {
    if (expected.kind == Expected::Kind::nothing) return {TestKind::none, "not compared: " + why.message};
    return {TestKind::no_reference, fmt::format("{}: {}", options_.reference, why.message)};
  }

  // The interpreter on the program as the front end gave it: no pass is between. Sums are in f64, as one in f32 of ten
  // million numbers, one after the other, may be a hundredth off. Or, where that takes too long, C without tiling,
  // which shares the other passes with what it checks.
  apl::Result<Values> reference(const std::string& entry, const Values& inputs) const {
    if (options_.reference == "c") return compiled_reference(entry, inputs);
    apl::Result<Values> wide = interpret(apl::suite::with_wide_sums(*front_.module), entry, inputs, nullptr);
    // Where sums decide what is checked, the program's own do.
    if (!wide && exit_code(wide.error()) == kProgram && wide.error().code != apl::Code::run_stopped)
      return interpret(*front_.module, entry, inputs, nullptr);
    return wide;
  }

  apl::Result<Values> compiled_reference(const std::string& entry, const Values& inputs) const {
    auto plain = Executable::make(*front_.module, executable_options("c", {"tile-contraction"}));
    if (!plain) return std::move(plain).error();
    return plain->call(entry, inputs);
  }

  apl::Result<Values> interpret(const apl::Module& module, const std::string& entry, const Values& inputs,
                                apl::suite::Rounding* rounding, bool check_scatters = false) const {
    apl::InterpretOptions options;
    options.parameters = parameters_;
    options.check_scatters = check_scatters;
    const auto start = SteadyClock::now();
    options.stop = [&] { return seconds_since(start) > options_.reference_timeout; };
    if (rounding != nullptr)
      options.reduced = [=](apl::ScalarType type, std::int64_t terms) { rounding->reduced(type, terms); };
    return apl::interpret(module, entry, inputs, options);
  }

  // Where the result with sums in f64 is not the program's, sums in the program's types and order say how far they
  // round.
  Verdict compare_sums(const std::string& entry, const Values& inputs, const Values& got, const Values& wide) const {
    auto differs = apl::suite::difference(got, wide);
    if (!differs) return {};
    apl::suite::Rounding rounding;
    const apl::Result<Values> plain = interpret(*front_.module, entry, inputs, &rounding);
    if (plain && !apl::suite::difference(got, *plain)) return {};
    if (plain) differs = apl::suite::difference(got, wide, *plain, rounding);
    return differs ? Verdict{TestKind::wrong_result, *differs} : Verdict{};
  }

  const TestedProgram& plan_;
  const TestOptions& options_;
  const std::function<void(std::string_view)>& send_;
  FrontEnd front_;
  Parameters parameters_;
  std::shared_ptr<apl::ObjectCache> cache_;
};

}  // namespace

namespace {

// As in Futhark, an entry with #[prop] that no block names is a mistake of the program's.
void note_untested(TestedProgram& plan, const std::string& name) {
  const auto is_noted = [&](const Test& test) { return test.what == Test::What::property && test.entry == name; };
  if (std::any_of(plan.tests.begin(), plan.tests.end(), is_noted)) return;  // by a process before
  Test& test = plan.tests.emplace_back();
  test.what = Test::What::property;
  test.entry = name;
  test.status = TestStatus::failed;
  test.kind = TestKind::bad_test;
  test.message = fmt::format("`{}` has #[prop], and no test block says `property: {}`", name, name);
}

}  // namespace

void evaluate(const TestedProgram& plan, const std::vector<std::size_t>& tests, const TestOptions& options,
              const std::function<void(std::string_view)>& send) {
  Evaluation(plan, options, send).run(tests);
}

Applied apply_line(TestedProgram& plan, std::string_view text) {
  const auto line = nlohmann::json::parse(text, nullptr, false);
  if (!line.is_object()) return {};
  if (line.contains("start")) return {.started = line["start"].get<std::size_t>()};
  if (line.contains("clock")) return {.clock = line["clock"].get<bool>() ? Clock::runs : Clock::stands};
  if (line.contains("warning")) {
    print_error("{}", line["warning"].get<std::string>());
    return {};
  }
  if (line.contains("untested")) {
    note_untested(plan, line["untested"].get<std::string>());
    return {};
  }
  const TestKind kind = kind_from_text(line.value("kind", std::string("?")));
  auto note = [&](Test& test) {
    test.status = kind == TestKind::none ? TestStatus::passed : TestStatus::failed;
    test.kind = kind;
    test.message = line.value("message", std::string());
    test.seconds = line.value("seconds", 0.0);
    test.counts = line.value("counts", std::map<std::string, int>());
    if (!line.contains("skipped")) return;
    test.status = TestStatus::skipped;
    test.message = line.value("skipped", std::string());
  };
  if (line.contains("all")) {
    for (Test& test : plan.tests)
      if (test.status == TestStatus::waiting) note(test);
  } else if (line.value("test", plan.tests.size()) < plan.tests.size()) {
    note(plan.tests[line["test"].get<std::size_t>()]);
  }
  return {};
}

}  // namespace aplc
