#include "tests/golden_runner/check.h"

#include <fmt/format.h>

#include <filesystem>

#include "ir/verify.h"
#include "runtime/program/sparse_tiles.h"
#include "tests/golden_runner/source.h"
#include "tests/testing.h"

namespace apl::golden {

namespace {

class Check {
 public:
  Check(const File& file, const PassRegistry& registry) : file_(file) {
    options_.parameters = file.parameters;
    options_.registry = registry;
  }

  Outcome run() {
    auto input = input_module(file_);
    if (!input) {
      refused(input.error());
      return std::move(outcome_);
    }
    // Tests run anywhere in the file system: only the file's own name may show in the output.
    if (file_.is_source()) input->file = std::filesystem::path(file_.path).filename().string();
    const std::vector<Diagnostic> broken = verify(*input);
    if (!broken.empty()) {
      refused(broken.front());
      return std::move(outcome_);
    }
    law("the input does not round-trip", testing::round_trips(*input));
    const auto ran = testing::run_module(file_.pipeline, *input, options_);
    if (!ran) {
      refused(ran.error());
      return std::move(outcome_);
    }
    if (file_.error) fail(fmt::format("expected an error {}, but the pipeline succeeded", *file_.error));
    outcome_.recorded = ran->output;
    if (!ran->remark_text.empty()) outcome_.recorded += "\n-- REMARKS\n" + ran->remark_text;
    output(*ran);
    return std::move(outcome_);
  }

 private:
  void fail(std::string why) { outcome_.failures.push_back(std::move(why)); }

  void law(std::string_view what, const testing::Verdict& verdict) {
    if (!verdict) fail(fmt::format("{}: {}", what, verdict.explanation));
  }

  // The run ended with an error: what the file expects, or a failure.
  void refused(Diagnostic error) {
    const bool expected = file_.error == code_text(error.code);
    error.file = std::filesystem::path(error.file.empty() ? file_.path : error.file).filename().string();
    const std::string text = render(error, error.file, file_.head);
    if (!expected) {
      fail(file_.error ? fmt::format("expected an error {}, but the error is:\n{}", *file_.error, text) : text);
      return;
    }
    outcome_.recorded = text.ends_with('\n') ? text : text + "\n";
  }

  void output(const testing::PipelineRun& run) {
    for (const Diagnostic& broken : verify(run.after))
      fail("the output is not well-formed: " + render(broken, "output", {}));
    law("the output does not round-trip", testing::round_trips(run.after));
    for (const std::string& want : file_.wants)
      law(fmt::format("WANT: {}", want), testing::has_structure(run.after, want));
    if (file_.idempotent) idempotence(run);
    if (!file_.no_law.empty()) return;
    testing::LawOptions options;
    options.parameters = file_.parameters;
    options.sizes = file_.sizes;
    options.tiles = program::tile_maker();
    law("input and output differ in meaning", testing::same_meaning(run.before, run.after, options));
  }

  void idempotence(const testing::PipelineRun& run) {
    const auto again = testing::run_module(file_.pipeline, run.after, options_);
    if (!again) {
      fail("IDEMPOTENT: the second run fails: " + render(again.error(), file_.path, {}));
    } else if (again->output != run.output) {
      fail("IDEMPOTENT: the second run changes the output:\n" +
           testing::text_diff(run.output, again->output, "first", "second"));
    }
  }

  const File& file_;
  testing::RunOptions options_;
  Outcome outcome_;
};

}  // namespace

Outcome run(const File& file, const PassRegistry& registry) { return Check(file, registry).run(); }

std::string compare(const File& file, const Outcome& outcome) {
  if (!file.recorded) return "nothing is recorded yet: run with --update, and review";
  const std::string diff = testing::text_diff(*file.recorded, outcome.recorded, "recorded", "now");
  return diff.empty() ? "" : "the output is not what is recorded:\n" + diff;
}

}  // namespace apl::golden
