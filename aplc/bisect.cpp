// aplc bisect CMD FILE: the application of a pass that makes a command fail.
//
// The command is run on the IR after some of the passes, and the number of passes that it needs to fail is found by
// halving. Where the failure shows only in what a backend makes of all passes, the command is one of aplc's with
// --opt-limit={limit}, and the passes are those that it says it ran.
#include <fmt/format.h>

#include <charconv>
#include <functional>
#include <map>
#include <memory>
#include <regex>

#include "aplc/command.h"
#include "aplc/driver.h"
#include "aplc/registry.h"
#include "ir/print.h"
#include "ir/text_diff.h"

namespace aplc {
namespace {

struct BisectOptions : CompileOptions {
  std::string command, pipeline = "memory", output;
  double timeout = 60;
  bool diff = false;
};

constexpr std::string_view kLimit = "{limit}";

std::string passes_text(std::size_t count) { return fmt::format("{} application{}", count, count == 1 ? "" : "s"); }

// The smallest number of applications for which the command fails, if it succeeds for 0 and fails for `last`.
class Search {
 public:
  using Try = std::function<apl::Result<CommandOutcome>(std::size_t)>;
  Search(Try run, std::vector<bool> same) : run_(std::move(run)), same_(std::move(same)) {}

  // same[k]: application k changed nothing, so that the command does after k what it does after k - 1.
  apl::Result<std::size_t> run(std::size_t last) {
    auto first = fails(0);
    if (!first) return std::move(first).error();
    if (*first)
      return apl::make_error(apl::Code::command_not_reproduced, {},
                             "the command fails without the passes, too: none that can be left out is to blame");
    auto end = fails(last);
    if (!end) return std::move(end).error();
    if (!*end)
      return apl::make_error(
          apl::Code::command_not_reproduced, {},
          fmt::format("the command succeeds after all {}, too: there is no failure to look for", passes_text(last)));
    std::size_t good = 0, bad = last;
    while (good + 1 < bad) {
      const std::size_t middle = good + (bad - good) / 2;
      auto failed = fails(middle);
      if (!failed) return std::move(failed).error();
      (*failed ? bad : good) = middle;
    }
    return bad;
  }

 private:
  apl::Result<bool> fails(std::size_t count) {
    while (count > 0 && count < same_.size() && same_[count]) --count;
    if (const auto known = known_.find(count); known != known_.end()) return known->second;
    auto outcome = run_(count);
    if (!outcome) return std::move(outcome).error();
    const bool failed = outcome->exit_code != 0 || outcome->timed_out;
    print_error("bisect: after {:>2} {}: {}\n", count, count == 1 ? "application " : "applications",
                outcome->timed_out ? std::string("does not end")
                : failed           ? fmt::format("fails with exit code {}", outcome->exit_code)
                                   : std::string("succeeds"));
    return known_[count] = failed;
  }

  Try run_;
  std::vector<bool> same_;
  std::map<std::size_t, bool> known_;
};

int fail(Session& session, const apl::Diagnostic& error) {
  session.report(error);
  return session.exit_code();
}

// With --opt-limit in the command.
int bisect_command(const BisectOptions& options) {
  const auto command = [&](std::size_t limit) {
    std::string text = options.command;
    for (std::size_t at; (at = text.find(kLimit)) != std::string::npos;)
      text.replace(at, kLimit.size(), std::to_string(limit));
    return options.file.empty() ? text : command_on(text, options.file);
  };
  constexpr std::size_t kAll = 1'000'000;
  auto whole = run_command(command(kAll), options.timeout);
  if (!whole) return aplc::report(whole.error());
  std::map<std::size_t, std::string> names;
  static const std::regex kLine(R"(opt-limit: (?:ran|skipped) (\S+) \(application (\d+) of (\d+)\))");
  for (std::sregex_iterator match(whole->errors.begin(), whole->errors.end(), kLine), end; match != end; ++match)
    names[std::stoul((*match)[2])] = (*match)[1];
  if (names.empty())
    return aplc::report(apl::make_error(
        apl::Code::command_not_reproduced, {},
        "the command does not say which passes it runs: it needs a command of aplc with --opt-limit={limit} whose "
        "standard error is not redirected"));
  Search search([&](std::size_t limit) { return run_command(command(limit), options.timeout); }, {});
  const auto found = search.run(names.rbegin()->first);
  if (!found) return aplc::report(found.error());
  print_out("the command fails from application {} of {} on: {}\n", *found, names.rbegin()->first, names[*found]);
  return kFine;
}

// On files with the IR after some of the passes.
int bisect_files(const BisectOptions& options) {
  Session session(options);
  if (!session.read()) return session.exit_code();
  if (auto writable = check_output(options.output); !writable) return aplc::report(writable.error());
  auto pipeline = apl::parse_pipeline(expand_pipeline(options.pipeline), registry());
  if (!pipeline) return fail(session, pipeline.error());
  std::vector<apl::Module> modules{session.module()};
  std::vector<std::string> names{""}, texts{""};
  std::vector<bool> same{false};
  apl::PipelineOptions run;
  run.parameters = session.parameters();
  run.disabled = options.disabled;
  run.verify_each = options.verify_each;
  run.after_pass = [&](const apl::PassReport& report, const apl::Module& module) {
    modules.push_back(module);
    names.push_back(report.pass);
    same.push_back(report.change == apl::Change::no);
  };
  std::size_t steps = 0;
  run.before_pass = [&](const apl::PassReport& report, const apl::Module&) { steps = report.application; };
  apl::Module module = session.module();
  if (const auto status = apl::run_pipeline(module, *pipeline, run); !status) {
    // The pass is known without any command.
    session.report(status.error());
    if (steps >= modules.size())
      print_error("bisect: application {} fails by itself; earlier ones are looked at\n", steps);
    if (modules.size() < 2) return session.exit_code();
  }
  auto folder = WorkFolder::make();
  if (!folder) return fail(session, folder.error());
  Search search(
      [&](std::size_t count) -> apl::Result<CommandOutcome> {
        const std::string name = fmt::format("{}/after_{}.aplir", folder->path(), count);
        if (auto written = write_file(name, apl::print(modules[count])); !written) return std::move(written).error();
        return run_command(command_on(options.command, name), options.timeout);
      },
      same);
  const auto found = search.run(modules.size() - 1);
  if (!found) return fail(session, found.error());
  print_out("the command fails from application {} of {} on: {}\n", *found, modules.size() - 1, names[*found]);
  if (options.diff)
    print_out("{}", apl::text_diff(apl::print(modules[*found - 1]), apl::print(modules[*found]),
                                   "before " + names[*found], "after " + names[*found]));
  if (options.output.empty()) return kFine;
  apl::Pipeline one = *pipeline;
  const auto at = [&] {  // disabled passes are no applications
    std::size_t count = 0, k = 0;
    for (;; ++k) {
      const std::string& name = one.registry.passes()[one.order[k]].name;
      if (std::find(options.disabled.begin(), options.disabled.end(), name) == options.disabled.end() &&
          ++count == *found)
        return k;
    }
  }();
  one.order = {one.order[at]};
  one.options = {one.options[at]};
  return emit(options.output, fmt::format("-- Replay: aplc opt -p '{}' '{}'\n{}", one.to_text(), options.output,
                                          apl::print(modules[*found - 1])));
}

}  // namespace

void add_bisect(CLI::App& app, int& exit) {
  auto options = std::make_shared<BisectOptions>();
  CLI::App* command = app.add_subcommand("bisect", "find the pass after which a command fails");
  command
      ->add_option(
          "CMD", options->command,
          "shell command that fails (exit code other than 0) on wrong IR; the file's name replaces {} or comes "
          "last. With {limit}, a command of aplc with --opt-limit={limit} that needs no file")
      ->required();
  options->add_to(*command);
  command->get_option("FILE")->required(false);
  command
      ->add_option("-p,--pipeline", options->pipeline,
                   "passes, as for `aplc opt`; soac, kernel or memory for the standard pipeline up to that stage")
      ->capture_default_str();
  command->add_option("--timeout", options->timeout, "seconds after which the command has failed")
      ->capture_default_str();
  command->add_flag("--diff", options->diff, "print what the pass changed");
  command->add_option("-o,--output", options->output,
                      "file for the IR before the pass, with the command that replays it");
  command->callback([options, &exit] {
    if (options->command.find(kLimit) != std::string::npos) {
      exit = bisect_command(*options);
    } else if (options->file.empty()) {
      throw CLI::RequiredError("FILE");
    } else {
      exit = bisect_files(*options);
    }
  });
}

}  // namespace aplc
