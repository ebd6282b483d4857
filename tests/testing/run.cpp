#include <fmt/format.h>

#include "ir/parse.h"
#include "ir/print.h"
#include "passes/pipeline.h"
#include "tests/testing.h"

namespace apl::testing {

namespace {

std::string_view to_text(RemarkKind kind) {
  switch (kind) {
    case RemarkKind::applied: return "applied";
    case RemarkKind::missed: return "missed";
    case RemarkKind::analysis: return "analysis";
  }
  return "?";
}

// Unlike a message on a terminal this says the kind and the function, which tests want to see.
std::string line_of(const Remark& remark) {
  std::string place = remark.function;
  if (remark.location) place += fmt::format(" {}:{}", remark.location.line, remark.location.column);
  std::string text =
      fmt::format("{} {}:{}, {}: {}", to_text(remark.kind), remark.pass, remark.code, place, remark.message);
  for (std::size_t k = 0; k < remark.facts.size(); ++k)
    text += fmt::format("{}{}={}", k == 0 ? " {" : ", ", remark.facts[k].first, remark.facts[k].second);
  if (!remark.facts.empty()) text += '}';
  if (!remark.suggestion.empty()) text += "\n  hint: " + remark.suggestion;
  return text + "\n";
}

}  // namespace

Result<PipelineRun> run_module(std::string_view pipeline_text, Module module, const RunOptions& options) {
  PipelineRun run{module, std::move(module), {}, {}, {}};
  const bool none = pipeline_text.empty() || pipeline_text == "none";
  Pipeline pipeline{options.registry, {}, {}};
  if (!none) {
    auto parsed = parse_pipeline(pipeline_text, options.registry);
    if (!parsed) return parsed.error();
    pipeline = *std::move(parsed);
  }
  PipelineOptions pipeline_options;
  pipeline_options.parameters = options.parameters;
  pipeline_options.remarks = [&](const Remark& remark) { run.remarks.push_back(remark); };
  const Status status = run_pipeline(run.after, pipeline, pipeline_options);
  if (!status) return status.error();
  run.output = print(run.after);
  for (const Remark& remark : run.remarks) run.remark_text += line_of(remark);
  return run;
}

Result<PipelineRun> run_text(std::string_view pipeline, std::string_view text, const RunOptions& options) {
  auto module = parse_module(text, "input");
  if (!module) return module.error();
  return run_module(pipeline, *std::move(module), options);
}

}  // namespace apl::testing
