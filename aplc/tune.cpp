// aplc tune FILE: measures tile numbers of the program's contractions, then other numbers of its kernels, on its
// datasets, and writes the best to FILE.tuning. Every measurement is kept in FILE.tuning-log at once: a run that was
// interrupted goes on where it was.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "aplc/driver.h"
#include "aplc/explain_plan.h"
#include "aplc/registry.h"
#include "aplc/test/children.h"
#include "aplc/test/executable.h"
#include "aplc/test/program.h"
#include "aplc/tune_cover.h"
#include "aplc/tune_log.h"
#include "aplc/tune_numbers.h"
#include "aplc/tune_space.h"
#include "machine/target/target.h"
#include "suite/timing.h"
#include "suite/values.h"

namespace aplc {
namespace {

constexpr int kTuneFailed = 1;
// Nothing more is measured of a contraction whose next candidate is expected to gain less, after so many.
constexpr double kWorthwhile = 0.005;
constexpr std::size_t kFewCandidates = 6;
// The best and what was before are measured again this often, in turns.
constexpr int kTurns = 3;
// A number of another kind than a tile's is changed if that gains so much: less is chance.
constexpr double kNumberPays = 0.03;

struct TuneOptions {
  std::string file;
  std::string backend = "c";
  std::string device;
  std::string entry;
  std::string tuning = "tuning";
  int most = 40;
  int runs = 5;
  double seconds = 50;
  double timeout = 120;
  bool per_dataset = false;
  bool again = false;
  bool no_cache = false;
  bool cover = false;
  CoverOptions covering;
  std::string temporary_folder;
};

struct Dataset {
  std::string entry;
  apl::suite::Case test_case;
  Sizes sizes;
};

double median(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times.empty() ? 0 : times[times.size() / 2];
}

class TuneRun {
 public:
  explicit TuneRun(TuneOptions options) : options_(std::move(options)) {}

  int run() {
    auto folder = WorkFolder::make();
    if (!folder) return aplc::report(folder.error());
    options_.temporary_folder = folder->path();
    front_ = run_front_end(options_.file);
    if (!front_.module) {
      print_error("{}", front_.said);
      return front_.exit_code;
    }
    const std::string usual = options_.backend == "c" ? usual_cpu() : std::string(apl::find_dialect("cuda")->record);
    const std::string record = !options_.device.empty() ? options_.device : usual;
    auto device = apl::find_device(record);
    if (!device) return aplc::report(device.error());
    device_ = *device;
    if (record == "cpu" && options_.device.empty()) device_ = apl::host_device();
    if (!find_datasets() && !options_.cover) return kCommandLine;
    if (!lower()) return kLimitation;
    if (auto writable = check_output(tuning_file(), Inputs::overwritten); !writable)
      return aplc::report(writable.error());
    if (options_.cover) return cover();
    log_ = std::make_unique<TuneLog>(
        tuning_file() + "-log",
        fmt::format("{:016x} {} {}", std::hash<std::string>()(front_.text), options_.backend, device_.name));
    if (!options_.again) log_->read();
    if (log_->size() > 0) print_out("{} measurements are known from {}-log\n", log_->size(), tuning_file());
    auto before = tuning_beside(options_.file, options_.tuning);
    if (!before) return aplc::report(before.error());
    print_error("{}", unknown_names(*before, front_));
    return tune(before->values);
  }

 private:
  static int fail(const std::string& message, int code) {
    print_error("aplc: error: {}\n", message);
    return code;
  }

  std::string tuning_file() const { return options_.file + "." + options_.tuning; }

  // Cases that the backend can run, with the sizes of their inputs.
  bool find_datasets() {
    TestOptions tests;
    tests.backend = options_.backend;
    tests.entry = options_.entry;
    for (const Test& test : find_tests(options_.file, tests).tests) {
      if (test.what != Test::What::run || test.status != TestStatus::waiting ||
          test.test_case.expected.kind == apl::suite::Expected::Kind::error)
        continue;
      const apl::Function* entry = front_.module->find_entry(test.entry);
      if (!entry) continue;
      auto inputs = case_inputs(options_.file, test.test_case.input, *entry);
      if (!inputs || !fit_inputs(*entry, *inputs)) {
        print_error("aplc: {}: dataset {} cannot be read, and is left out\n", test.entry, test.test_case.name);
        continue;
      }
      datasets_.push_back({test.entry, test.test_case, sizes_of(*entry, *inputs)});
    }
    if (datasets_.empty() && !options_.cover)
      print_error("aplc: error: {} has no datasets to measure\n", options_.file);
    return !datasets_.empty();
  }

  // The contractions, which the memory stage shows.
  bool lower() {
    lowered_ = *front_.module;
    const apl::Machine machine = options_.backend == "c" ? apl::Machine::cpu : apl::Machine::gpu;
    auto pipeline =
        apl::parse_pipeline(apl::standard_pipeline(apl::Stage::memory, machine, false, registry()), registry());
    if (!pipeline) return false;
    auto status = apl::run_pipeline(lowered_, *pipeline, {});
    if (!status) print_error("aplc: error: {}\n", status.error().message);
    return bool(status);
  }

  // Nothing is measured.
  int cover() {
    std::vector<std::pair<std::string, Sizes>> sizes;
    for (const Dataset& dataset : datasets_) sizes.emplace_back(dataset.entry, dataset.sizes);
    const Parameters numbers = covering_numbers(lowered_, sizes, device_, options_.covering);
    if (numbers.empty()) return fail("no contraction of this program is tiled", kTuneFailed);
    if (auto written = write_tuning(tuning_file(), numbers); !written) return aplc::report(written.error());
    print_out("{} is written\n", tuning_file());
    return kFine;
  }

  int tune(const Parameters& before) {
    Trial baseline = trial(before, true);
    if (stopped_) return interrupted();
    if (!baseline.error.empty()) return fail(baseline.error, kTuneFailed);
    if (auto written = log_->add(before, baseline); !written) return aplc::report(written.error());
    default_ = baseline;
    before_ = before;
    best_ = {before, baseline};
    for (const auto& [name, time] : baseline.times) best_of_[name] = best_;
    print_out("{}: {}{}\n", before.empty() ? "without tuning" : parameters_text(before),
              microseconds_text(geometric_mean(baseline.times)),
              baseline.times.size() > 1 ? ", the mean of the datasets" : "");
    say_what_is_too_short(baseline);
    std::vector<std::vector<TuneCandidate>> spaces = find_spaces();
    const std::vector<std::vector<Parameters>> numbers = find_numbers();
    if (spaces.empty() && numbers.empty())
      return fail("nothing is to be tuned: no contraction of these datasets is tiled, and no kernel has a number",
                  kTuneFailed);
    start_ = std::chrono::steady_clock::now();
    std::size_t total = 0, done = 0;
    for (const auto& space : spaces) total += space.size();
    std::size_t of_numbers = 0;
    for (const auto& space : numbers) of_numbers += space.size();
    for (const auto& space : spaces) {
      ExpectedGain expected;
      std::size_t of_space = 0;
      for (const TuneCandidate& candidate : space) {
        const double best = geometric_mean(best_.trial.times) * 1e-6;
        const double gain = expected.improvement(candidate.predicted, best);
        if (expected.count() >= kFewCandidates && gain < kWorthwhile) {
          print_out("the other {} candidates are not worth measuring: the next one is expected to gain {:.1f} %\n",
                    space.size() - of_space, 100 * gain);
          total -= space.size() - of_space;
          break;
        }
        ++of_space;
        if (is_over()) return finish();
        ++done;
        Parameters parameters = best_.parameters;
        for (const auto& [name, value] : candidate.parameters) parameters[name] = value;
        const Trial result = trial(parameters, false);
        if (stopped_) return interrupted();
        if (result.error.empty()) expected.add(candidate.predicted, geometric_mean(result.times) * 1e-6);
        report(done, total, of_numbers, candidate.parameters, result);
        consider(parameters, result);
        if (broken_) return aplc::report(*broken_);
      }
    }
    return tune_numbers(numbers);
  }

  double spent() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

  bool is_over() const {
    if (options_.seconds <= 0 || spent() <= options_.seconds) return false;
    print_out("{:.0f} s are over; a later run goes on from here\n", options_.seconds);
    return true;
  }

  // One number after the other, each with the best values of those before.
  int tune_numbers(const std::vector<std::vector<Parameters>>& numbers) {
    std::size_t total = 0, done = 0;
    for (const auto& space : numbers) total += space.size();
    for (const auto& space : numbers) {
      const Best before = best_;
      for (const Parameters& candidate : space) {
        if (is_over()) return finish();
        Parameters parameters = before.parameters;
        for (const auto& [name, value] : candidate) parameters[name] = value;
        const Trial result = trial(parameters, false);
        if (stopped_) return interrupted();
        ++done;
        report(done, total, 0, candidate, result);
        const double wanted = (1 - kNumberPays) * geometric_mean(before.trial.times);
        if (!result.error.empty() || geometric_mean(result.times) < wanted) consider(parameters, result);
        if (broken_) return aplc::report(*broken_);
      }
    }
    return finish();
  }

  std::vector<std::vector<Parameters>> find_numbers() const {
    std::set<std::string> entries;
    for (const Dataset& dataset : datasets_) entries.insert(dataset.entry);
    return number_spaces(lowered_, entries, static_cast<int>(std::max(1U, std::thread::hardware_concurrency())));
  }

  // Datasets of which candidates would differ by chance.
  void say_what_is_too_short(const Trial& baseline) const {
    // A time is the difference of two readings, each of which is wrong by up to a step of the timer: after so many
    // steps it is known to 1 %.
    constexpr double kReadings = 2, kSteps = 100 * kReadings;
    constexpr double kCudaResolution = 0.5;  // of the events that measure calls on a GPU, as CUDA documents it
    const double step = options_.backend == "cuda" ? kCudaResolution : apl::suite::clock_resolution();
    for (const auto& [name, time] : baseline.times)
      if (time < kSteps * step)
        print_out(
            "{} takes {}, and the timer's resolution is {}: candidates cannot be told apart by less than {:.0f} %; "
            "take a larger dataset\n",
            name, microseconds_text(time), microseconds_text(step), 100 * kReadings * step / std::max(time, step));
  }

  // Of each contraction, as many as are wanted.
  std::vector<std::vector<TuneCandidate>> find_spaces() const {
    std::vector<std::vector<TuneCandidate>> spaces;
    std::set<std::string> entries;
    for (const Dataset& dataset : datasets_) entries.insert(dataset.entry);
    for (const std::string& entry : entries) {
      std::vector<std::vector<PlannedContraction>> contractions;  // of each, the datasets
      for (const Dataset& dataset : datasets_) {
        if (dataset.entry != entry) continue;
        auto found = find_planned(lowered_, entry, dataset.sizes, {});
        contractions.resize(found.size());
        for (std::size_t k = 0; k < found.size(); ++k) contractions[k].push_back(std::move(found[k]));
      }
      for (const auto& contraction : contractions) {
        auto space = tune_space(*lowered_.find_entry(entry), contraction, device_);
        if (space.size() > static_cast<std::size_t>(options_.most))
          space.resize(static_cast<std::size_t>(options_.most));
        if (!space.empty()) spaces.push_back(std::move(space));
      }
    }
    return spaces;
  }

  // `further`: candidates after these `total` ones. Each takes as long as those that were measured, also what is in the
  // log of an earlier run and takes none.
  void report(std::size_t done, std::size_t total, std::size_t further, const Parameters& changed,
              const Trial& result) {
    const double each = measured_seconds_ / static_cast<double>(std::max<std::size_t>(measured_, 1));
    double left = each * static_cast<double>(total - done + further);
    if (options_.seconds > 0) left = std::min(left, std::max(options_.seconds - spent(), 0.0));
    left += each * 2 * kTurns;
    const std::string said = result.error.empty() ? microseconds_text(geometric_mean(result.times))
                                                  : result.error.substr(0, result.error.find('\n'));
    print_out("[{}/{}, {:.0f} s left] {}: {} (best {})\n", done, total, std::ceil(left), parameters_text(changed), said,
              microseconds_text(geometric_mean(best_.trial.times)));
    flush_out();
  }

  void consider(const Parameters& parameters, const Trial& result) {
    if (!result.error.empty()) return;
    bool better = false;
    for (const auto& [name, time] : result.times)
      if (time < best_of_[name].trial.times[name]) best_of_[name] = {parameters, result};
    if (geometric_mean(result.times) < geometric_mean(best_.trial.times)) best_ = {parameters, result}, better = true;
    if (auto written = better ? write() : apl::Unit{}; !written) broken_ = written.error();
  }

  // Whole or not at all, after every improvement.
  apl::Status write() const {
    apl::Status ok = write_tuning(tuning_file(), best_.parameters);
    if (!options_.per_dataset || !ok) return ok;
    for (const auto& [name, best] : best_of_) {
      std::string safe = name;
      for (char& c : safe)
        if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '_') c = '_';
      ok = write_tuning(fmt::format("{}.{}.{}", options_.file, safe, options_.tuning), best.parameters);
      if (!ok) break;
    }
    return ok;
  }

  static apl::Status write_tuning(const std::string& file, const Parameters& parameters) {
    std::string text;
    for (const auto& [name, value] : parameters) text += fmt::format("{}={}\n", name, value);
    return write_file(file, text, Inputs::overwritten);  // the numbers of before are where these start
  }

  int finish() {
    // Measured once more, side by side: the machine may have been busy when the first of them was measured.
    if (best_.parameters != before_) {
      if (!measure_again()) return stopped_ ? interrupted() : fail("the best cannot be measured again", kTuneFailed);
      if (geometric_mean(best_.trial.times) >= geometric_mean(default_.times)) best_ = {before_, default_};
    }
    if (auto written = write(); !written) return aplc::report(written.error());
    print_out("best: {} {}\n{} is written\n", microseconds_text(geometric_mean(best_.trial.times)),
              best_.parameters.empty() ? "without tuning" : "with " + parameters_text(best_.parameters), tuning_file());
    // What the numbers lost that would have been chosen without these.
    for (const auto& [name, time] : default_.times) {
      const double more = 100 * (time / std::max(best_.trial.times.at(name), 1e-3) - 1);
      print_out("{}: {} before, {:.1f} % {} than the best\n", name, microseconds_text(time), std::abs(more),
                more < 0 ? "less" : "more");
    }
    return kFine;
  }

  // The numbers of before and the best ones, in turns: of each dataset the least of the medians counts.
  bool measure_again() {
    Trial before, best;
    const auto take = [](Trial& all, const Trial& one) {
      for (const auto& [name, time] : one.times) {
        const auto [known, is_new] = all.times.emplace(name, time);
        if (!is_new) known->second = std::min(known->second, time);
      }
      return one.error.empty();
    };
    for (int turn = 0; turn < kTurns; ++turn)
      if (!take(before, fresh_trial(before_, false)) || !take(best, fresh_trial(best_.parameters, false))) return false;
    default_ = std::move(before);
    best_.trial = std::move(best);
    return !stopped_;
  }

  int interrupted() const {
    print_out("interrupted; what was measured is in {}-log\n", tuning_file());
    return kTuneFailed;
  }

  // Compiles and measures in a process of its own, unless it is known. The first one makes the results that the others
  // are compared with.
  Trial trial(const Parameters& parameters, bool first) {
    if (!first)
      if (const Trial* known = log_->find(parameters)) return *known;
    const double begin = spent();
    Trial result = fresh_trial(parameters, first);
    ++measured_;
    measured_seconds_ += spent() - begin;
    if (!stopped_ && !first)
      if (auto written = log_->add(parameters, result); !written) broken_ = written.error();
    return result;
  }

  // The same whether it is known or not.
  Trial fresh_trial(const Parameters& parameters, bool first) {
    Trial result;
    std::deque<Child> children;
    Child child;
    child.body = [&](const auto& send) { measure(parameters, first, send); };
    child.line = [&](std::string_view text) {
      const auto line = nlohmann::json::parse(text, nullptr, false);
      if (!line.is_object()) return Clock::unchanged;
      if (line.contains("error")) result.error = line["error"].get<std::string>();
      if (line.contains("case")) result.times[line["case"].get<std::string>()] = line["time"].get<double>();
      return Clock::unchanged;
    };
    child.end = [&](const Outcome& outcome) {
      if (outcome.kind == Outcome::Kind::timed_out) result.error = "time-out";
      if (outcome.kind == Outcome::Kind::crashed) result.error = "crash: " + outcome.message;
    };
    children.push_back(std::move(child));
    ChildLimits limits;
    limits.seconds = options_.timeout;
    limits.folder = options_.temporary_folder;
    stopped_ = !run_children(children, limits);
    if (result.error.empty() && result.times.size() != datasets_.size())
      result.error = "not all datasets were measured";
    return result;
  }

  std::string dataset_name(std::size_t k) const { return datasets_[k].entry + ":" + datasets_[k].test_case.name; }

  void measure(const Parameters& parameters, bool first, const std::function<void(std::string_view)>& send) {
    const auto say = [&](const nlohmann::json& line) {
      send(line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    };
    const auto fail = [&](const apl::Diagnostic& error) { say({{"error", error.message}}); };
    auto cache = options_.no_cache ? nullptr : std::make_shared<apl::ObjectCache>(cache_folder());
    auto executable =
        Executable::make(*front_.module, {options_.backend, options_.temporary_folder, {}, parameters, cache});
    if (!executable) return fail(executable.error());
    for (std::size_t k = 0; k < datasets_.size(); ++k) {
      const Dataset& dataset = datasets_[k];
      const apl::Function* entry = front_.module->find_entry(dataset.entry);
      auto inputs = case_inputs(options_.file, dataset.test_case.input, *entry);
      if (!inputs) return fail(inputs.error());
      if (auto fits = fit_inputs(*entry, *inputs); !fits) return fail(fits.error());
      auto got = executable->call(dataset.entry, *inputs);
      if (!got) return fail(got.error());
      const std::string reference = fmt::format("{}/{}.results", options_.temporary_folder, k);
      if (first) {
        std::string text;
        for (const apl::HostValue& value : *got) text += value.to_binary();
        if (auto written = write_file(reference, text); !written) return fail(written.error());
      } else {
        auto wanted = apl::suite::read_values(reference);
        if (!wanted) return fail(wanted.error());
        if (auto differs = apl::suite::difference(*got, *wanted)) return say({{"error", "wrong result: " + *differs}});
      }
      auto times = executable->benchmark(dataset.entry, *inputs, options_.runs);
      if (!times) return fail(times.error());
      say({{"case", dataset_name(k)}, {"time", median(*times)}});
    }
  }

  struct Best {
    Parameters parameters;
    Trial trial;
  };

  TuneOptions options_;
  FrontEnd front_;
  apl::Module lowered_;
  apl_device device_{};
  std::vector<Dataset> datasets_;
  std::unique_ptr<TuneLog> log_;
  Best best_;
  Parameters before_;  // that the run started with
  Trial default_;      // with these
  std::chrono::steady_clock::time_point start_;
  std::size_t measured_ = 0;  // trials that were not in the log
  double measured_seconds_ = 0;
  std::map<std::string, Best> best_of_;  // by dataset
  bool stopped_ = false;
  std::optional<apl::Diagnostic> broken_;  // what was measured cannot be kept
};

}  // namespace

void add_tune(CLI::App& app, int& exit) {
  auto options = std::make_shared<TuneOptions>();
  CLI::App* command = app.add_subcommand(
      "tune", "measure tile numbers and other numbers of kernels on a program's datasets, and keep the best");
  command->footer(
      "Writes FILE.tuning, which test and bench read, after every improvement, and FILE.tuning-log with all that was "
      "measured: a run that was interrupted goes on where it was. Results are compared with those without tuning.");
  command->add_option("FILE", options->file, "program (.fut) with test blocks")->required()->check(CLI::ExistingFile);
  command->add_option("--backend", options->backend, "c, emulate or cuda")
      ->check(CLI::IsMember({"c", "emulate", "cuda"}))
      ->capture_default_str();
  command->add_option("--device", options->device, "machine whose model orders the candidates: a name or file")
      ->type_name("NAME|FILE");
  command->add_option("--entry-point", options->entry, "tune only this entry");
  command->add_option("--most", options->most, "candidates of each contraction, the most promising ones")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("-r,--runs", options->runs, "runs of each dataset; their median counts")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command
      ->add_option("--seconds", options->seconds, "stop after so long (0: when no candidate is left that is worth it)")
      ->capture_default_str();
  command->add_option("--timeout", options->timeout, "seconds for a candidate")->capture_default_str();
  command->add_option("--tuning", options->tuning, "ending of the file")->type_name("ENDING")->capture_default_str();
  command->add_flag("--per-dataset", options->per_dataset, "also write FILE.DATASET.tuning with the best for each");
  command->add_flag("--again", options->again, "measure again what is in the log");
  command->add_flag("--no-cache", options->no_cache, "compile even what was compiled before, and keep nothing");
  command->add_flag(
      "--cover", options->cover,
      "measure nothing: write a few plans of each contraction for datasets and random sizes, by the model");
  command
      ->add_option("--plans", options->covering.most,
                   fmt::format("--cover: plans of a contraction, {} at most", APL_MAX_PLANS))
      ->check(CLI::Range(1, APL_MAX_PLANS))
      ->capture_default_str();
  command->add_option("--within", options->covering.within, "--cover: of the time of each size's best plan")
      ->check(CLI::Range(1.0, 100.0))
      ->capture_default_str();
  command->add_option("--random", options->covering.random, "--cover: random sizes beside those of the datasets")
      ->check(CLI::Range(0, 120))
      ->capture_default_str();
  command->callback([options, &exit] { exit = TuneRun(*options).run(); });
}

}  // namespace aplc
