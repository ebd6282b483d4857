// aplc opt FILE: IR (or source) in, a pipeline over it, IR out.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "aplc/compare_results.h"
#include "aplc/driver.h"
#include "aplc/expectations.h"
#include "aplc/registry.h"
#include "ir/print.h"

namespace aplc {
namespace {

struct OptOptions : CompileOptions {
  std::string pipeline, output;
  bool locations = false;
  bool split = false;
  bool verify_diagnostics = false;
  bool compare_results = false;
  std::string compare_with;
};

constexpr std::string_view kSeparator = "-- -----";

// The parts between lines that begin with the separator. Each has empty lines for what is before it, so that the lines
// of its diagnostics are those of the file.
std::vector<std::string> split_input(const std::string& text) {
  std::vector<std::string> parts(1);
  std::size_t lines = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    ++lines;
    if (text.compare(begin, kSeparator.size(), kSeparator) == 0) {
      parts.emplace_back(lines, '\n');
    } else {
      parts.back().append(text, begin, end - begin);
    }
    begin = end;
  }
  return parts;
}

std::string without_leading_lines(const std::string& text) {
  const std::size_t begin = text.find_first_not_of('\n');
  return begin == std::string::npos ? "" : text.substr(begin);
}

// One part, printed to `output`; the exit code.
int run_part(const OptOptions& options, const std::string& text, std::string& output) {
  Session session(options);
  std::vector<apl::Diagnostic> diagnostics;
  std::vector<Expectation> expected;
  if (options.verify_diagnostics) {
    auto read = read_expectations(text);
    if (!read) {
      session.report(read.error());
      return session.exit_code();
    }
    expected = std::move(*read);
    session.set_sink([&](const apl::Diagnostic& diagnostic) { diagnostics.push_back(diagnostic); });
  }
  bool ok = session.read_text(text);
  const apl::Module before = session.module();
  const std::string pipeline = expand_pipeline(options.pipeline);
  if (ok && !pipeline.empty()) ok = session.run(pipeline);
  if (options.verify_diagnostics) {
    Session reporter(options);
    for (apl::Diagnostic& error : compare_diagnostics(expected, diagnostics, session.remarks())) {
      error.file = options.file;
      reporter.report(error);
    }
    if (reporter.exit_code() != kFine) return reporter.exit_code();
  }
  if (ok && options.compare_results)
    if (const auto same = compare_results(before, session.module(), session.parameters()); !same) {
      session.report(same.error());
      return session.exit_code();
    }
  if (ok && !options.compare_with.empty()) {
    OptOptions other_options = options;
    other_options.file = options.compare_with;
    Session other(other_options);
    if (!other.read()) return other.exit_code();
    if (const auto same = compare_results(other.module(), session.module(), session.parameters()); !same) {
      session.report(same.error());
      return session.exit_code();
    }
  }
  if (ok) output += apl::print(session.module(), {.locations = options.locations});
  return options.verify_diagnostics ? kFine : session.exit_code();
}

int run(const OptOptions& options) {
  auto text = read_file(options.file);
  if (!text) {
    Session session(options);
    session.report(text.error());
    return session.exit_code();
  }
  const std::vector<std::string> parts = options.split ? split_input(*text) : std::vector{std::move(*text)};
  std::string output;
  int exit = kFine;
  for (std::size_t k = 0; k < parts.size(); ++k) {
    // Nothing between two separators, or behind the last.
    if (parts.size() > 1 && without_leading_lines(parts[k]).empty()) continue;
    std::string part;
    const int status = run_part(options, parts[k], part);
    if (!output.empty() && !part.empty()) output += fmt::format("\n{}\n\n", kSeparator);
    output += part;
    if (exit == kFine) exit = status;
  }
  if (exit != kFine && !options.split) return exit;
  const int written = output.empty() && exit != kFine ? kFine : emit(options.output, output);
  return exit != kFine ? exit : written;
}

}  // namespace

std::string expand_pipeline(const std::string& pipeline) {
  for (const apl::Stage stage : {apl::Stage::soac, apl::Stage::kernel, apl::Stage::memory})
    if (pipeline == apl::to_text(stage)) return apl::standard_pipeline(stage, apl::Machine::gpu, false, registry());
  return pipeline;
}

void add_opt(CLI::App& app, int& exit) {
  auto options = std::make_shared<OptOptions>();
  CLI::App* command = app.add_subcommand("opt", "run passes over a program and print the textual IR");
  options->add_to(*command);
  options->observe.add_printing_to(*command);
  command->get_option("FILE")->required(false)->description(
      "program: .fut (Futhark source) or .aplir (textual IR); - or nothing for standard input, either of them");
  command->add_option(
      "-p,--pipeline", options->pipeline,
      "passes, as simplify,fuse (default: none); soac, kernel or memory for the standard pipeline up to that stage");
  command->add_option("-o,--output", options->output, "file to write (default: standard output)");
  command->add_flag("--locations", options->locations, "print source locations");
  command->add_flag("--split-input-file", options->split,
                    "the file has several programs with lines `-- -----` between them; each is compiled on its own");
  command->add_flag("--verify-diagnostics", options->verify_diagnostics,
                    "check that what is reported is what comments expect, as -- expected-error@+1 {{text}}");
  command->add_flag("--compare-results", options->compare_results,
                    "interpret the program before and after the passes on random inputs; an error if results differ");
  command
      ->add_option("--compare-with", options->compare_with,
                   "interpret the result and another program on random inputs; an error if results differ")
      ->type_name("FILE");
  command->callback([options, &exit] {
    if (options->file.empty()) options->file = "-";
    options->keep_remarks = options->verify_diagnostics;
    exit = run(*options);
  });
}

}  // namespace aplc
