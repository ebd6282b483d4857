#include "aplc/test/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "aplc/driver.h"
#include "aplc/registry.h"
#include "aplc/sparse/plans.h"

namespace aplc {
namespace {

constexpr auto kKinds = std::to_array<std::string_view>(
    {"", "compile error", "unsupported", "compiler bug", "wrong result", "false property", "run-time error", "no error",
     "wrong message", "no reference", "wrong warning", "wrong structure", "bad test", "crash", "time-out", "machine"});

// The reason to skip what has these tags; empty if there is none.
template <class Tagged>
std::string reason_to_skip(const Tagged& tagged, const TestOptions& options) {
  for (const char* tag : {"notest", "disable"})
    if (tagged.has_tag(tag)) return fmt::format("tag {}", tag);
  const std::string not_here = "no_" + (options.backend == "interp" ? std::string("interpreter") : options.backend);
  if (tagged.has_tag(not_here)) return fmt::format("tag {}", not_here);
  if (options.backend == "interp" && tagged.has_tag("compiled")) return "tag compiled";
  for (const std::string& tag : options.excluded)
    if (tagged.has_tag(tag)) return fmt::format("tag {} excluded", tag);
  return {};
}

void skip(Test& test, std::string reason) {
  test.status = TestStatus::skipped;
  test.message = std::move(reason);
}

// Test blocks that stand in a file of their own, as a program has them. A block goes on after a blank line, unless what
// comes is the description of the next one.
std::string commented(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size(); at += lines.back().size() + 1) {
    lines.push_back(text.substr(at, text.find('\n', at) - at));
  }
  const auto is_blank = [](const std::string& line) { return line.find_first_not_of(" \t\r") == std::string::npos; };
  const auto is_divider = [](const std::string& line) {
    return line.find_first_not_of(" \t\r=") == std::string::npos && line.find("==") != std::string::npos;
  };
  std::string result;
  for (auto line = lines.begin(); line != lines.end(); ++line) {
    const auto next = std::find_if_not(line, lines.end(), is_blank);
    const auto end = std::find_if(next, lines.end(), is_blank);
    const bool ends_block = is_blank(*line) && std::any_of(next, end, is_divider);
    result += ends_block ? "\n" : is_divider(*line) ? "-- ==\n" : "-- " + *line + "\n";
  }
  return result;
}

}  // namespace

apl::Result<CompilerOptions> CompilerOptions::read(const std::vector<std::string>& texts) {
  CompilerOptions options;
  std::vector<std::string> parameters;
  CLI::App app;
  app.set_help_flag();
  options.front.add_to(app);
  app.add_option("--param", parameters)->allow_extra_args(false);
  app.add_option("--disable", options.disabled)->allow_extra_args(false);
  try {
    std::vector<std::string> words(texts.rbegin(), texts.rend());  // as CLI11 wants them
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    return apl::make_error(apl::Code::command_bad_argument, {},
                           fmt::format("--pass-compiler-option: {}; the options are --safe, -W, --Werror, "
                                       "--param=NAME=VALUE and --disable=PASS",
                                       error.what()));
  }
  for (const std::string& text : parameters) {
    const auto parameter = parse_parameter(text);
    if (!parameter) return parameter.error();
    options.parameters.insert_or_assign(parameter->first, parameter->second);
  }
  return options;
}

void BlockOptions::add_to(CLI::App& command) {
  command.add_option("--backend", backend, "c, interp, emulate or cuda")
      ->check(CLI::IsMember({"c", "interp", "emulate", "cuda"}))
      ->capture_default_str();
  command.add_option("--plan", plans, sparse::kPlanHelp)->type_name("OPERAND=PLAN")->allow_extra_args(false);
  command.add_flag("--use-cublas", use_cublas, sparse::kCublasHelp);
  command.add_option("--tuning", tuning, "ending of the files with tuning parameters, FILE.ENDING")
      ->type_name("ENDING")
      ->capture_default_str();
  command.add_flag("--no-tuning", no_tuning, "do not read them");
  command
      .add_option("-p,--pass-option", pass_options,
                  "an option for the program, which is compiled to a server (c, cuda), as --param=main.T_a=8")
      ->type_name("OPTION")
      ->allow_extra_args(false);
  command
      .add_option("--runner", runner,
                  "a command that runs programs, compiled to servers (c, cuda): COMMAND PROGRAM ...")
      ->type_name("COMMAND");
  command
      .add_option("--pass-compiler-option", compiler_options,
                  "an option for compiling: --safe, -W, --Werror, --param=NAME=VALUE or --disable=PASS")
      ->type_name("OPTION")
      ->allow_extra_args(false);
  command.add_option("--seed", seed, "of random inputs of test blocks and properties")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command.add_option("--spec-file", spec_file, "test blocks for all programs, without the comments' dashes")
      ->type_name("FILE")
      ->check(CLI::ExistingFile);
  command.add_flag("--no-cache", no_cache, "compile even what was compiled before, and keep nothing");
}

void BlockOptions::read() {
  auto options = CompilerOptions::read(compiler_options);
  if (!options) throw CommandError(std::move(options).error());
  compiler = *std::move(options);
}

std::string_view to_text(TestKind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

TestKind kind_from_text(std::string_view text) {
  const auto found = std::find(kKinds.begin(), kKinds.end(), text);
  return found == kKinds.end() ? TestKind::bug : static_cast<TestKind>(found - kKinds.begin());
}

std::string_view to_text(TestStatus status) {
  switch (status) {
    case TestStatus::passed: return "passed";
    case TestStatus::failed: return "failed";
    case TestStatus::skipped: return "skipped";
    case TestStatus::waiting: break;
  }
  return "not run";
}

std::string_view to_text(Test::What what) {
  switch (what) {
    case Test::What::run: return "run";
    case Test::What::property: return "property";
    case Test::What::compile: return "compile";
    case Test::What::error: return "error";
    case Test::What::warning: return "warning";
    case Test::What::structure: return "structure";
  }
  return "";
}

TestedProgram find_tests(const std::string& file, const TestOptions& options) {
  TestedProgram plan;
  plan.file = file;
  auto text = read_file(options.spec_file.empty() ? file : options.spec_file);
  if (text && !options.spec_file.empty()) text = commented(*text);
  auto spec = text ? apl::suite::parse_test_blocks(*text) : apl::Result<apl::suite::TestSpec>(text.error());
  if (!spec) {
    Test& test = plan.tests.emplace_back();
    test.what = Test::What::compile;
    test.status = TestStatus::failed;
    test.kind = TestKind::bad_test;
    test.message = apl::render(spec.error(), options.spec_file.empty() ? file : options.spec_file, text ? *text : "");
    return plan;
  }
  plan.spec = std::move(*spec);
  for (const std::uint32_t line : plan.spec.unread) {
    apl::Diagnostic warning = apl::make_error(apl::Code::warning_no_effect, {line, 1, line, 1},
                                              "this comment begins no test block: one begins with `-- ==`");
    warning.severity = apl::Severity::warning;
    print_error("{}", apl::render(warning, options.spec_file.empty() ? file : options.spec_file, *text));
  }
  const auto is_empty = [](const apl::suite::TestSpec& all) {
    return all.tags.empty() && !all.compile_error && all.properties.empty() && all.groups.empty() &&
           all.structures.empty() && all.warnings.empty();
  };
  if (!options.spec_file.empty() && is_empty(plan.spec)) {
    Test& test = plan.tests.emplace_back();
    test.status = TestStatus::failed;
    test.kind = TestKind::bad_test;
    test.message = fmt::format("{} has no test block: a line `==`, and cases after it", options.spec_file);
    return plan;
  }
  if (plan.spec.compile_error) {
    plan.tests.emplace_back().what = Test::What::error;
  } else if (options.mode == TestMode::run) {
    for (const apl::suite::CaseGroup& group : plan.spec.groups)
      for (const std::string& entry : group.entries)
        for (const apl::suite::Case& test_case : group.cases) {
          if (!options.entry.empty() && options.entry != entry) continue;
          Test& test = plan.tests.emplace_back();
          test.entry = entry;
          test.test_case = test_case;
          if (std::string reason = reason_to_skip(test_case, options); !reason.empty()) skip(test, std::move(reason));
        }
    for (const std::string& property : plan.spec.properties) {
      if (!options.entry.empty() && options.entry != property) continue;
      Test& test = plan.tests.emplace_back();
      test.what = Test::What::property;
      test.entry = property;
    }
  }
  if (!plan.spec.warnings.empty()) plan.tests.emplace_back().what = Test::What::warning;
  for (std::size_t k = 0; options.structure && k < plan.spec.structures.size(); ++k) {
    Test& test = plan.tests.emplace_back();
    test.what = Test::What::structure;
    test.structure = k;
  }
  // A program of which nothing is run must compile at least.
  const bool runs = std::any_of(plan.tests.begin(), plan.tests.end(), [](const Test& test) {
    return test.status == TestStatus::waiting && test.what != Test::What::warning && test.what != Test::What::structure;
  });
  if (!runs && (options.entry.empty() || !plan.tests.empty() || plan.spec.groups.empty()))
    plan.tests.emplace_back().what = Test::What::compile;
  if (std::string reason = reason_to_skip(plan.spec, options); !reason.empty())
    for (Test& test : plan.tests) skip(test, reason);
  return plan;
}

std::vector<std::string> find_programs(const std::vector<std::string>& paths) {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code problem;
    if (!fs::is_directory(path, problem)) {
      files.push_back(path);
      continue;
    }
    std::vector<std::string> inside;
    for (fs::recursive_directory_iterator at(path, problem), end; !problem && at != end; at.increment(problem))
      if (at->path().extension() == ".fut" && at->is_regular_file(problem)) inside.push_back(at->path().string());
    std::sort(inside.begin(), inside.end());
    files.insert(files.end(), inside.begin(), inside.end());
  }
  return files;
}

}  // namespace aplc
