// Insertion points of the standard pipelines, and limits on how many applications of passes run.
#include <doctest/doctest.h>

#include "ir/parse.h"
#include "passes/pipeline.h"
#include "passes/plugin.h"

namespace apl {
namespace {

PassInfo nothing(const std::string& name) {
  PassInfo pass;
  pass.name = name;
  pass.run = [](Module&, PassContext&) -> Result<Change> { return Change::no; };
  return pass;
}

std::size_t at(const std::string& text, const std::string& pass) { return text.find(pass); }

TEST_CASE("each point stands where it says, in the pipelines of both machines") {
  for (const Machine machine : {Machine::gpu, Machine::cpu}) {
    PassRegistry registry = PassRegistry::builtin();
    for (const InsertionPointInfo& info : insertion_points()) {
      registry.add(nothing("at-" + std::string(info.name)));
      registry.insert(info.point, "at-" + std::string(info.name));
    }
    const std::string text = standard_pipeline(Stage::memory, machine, true, registry);
    REQUIRE(parse_pipeline(text, registry));
    std::size_t before = 0;
    for (const InsertionPointInfo& info : insertion_points()) {
      const std::size_t here = at(text, "at-" + std::string(info.name));
      CAPTURE(info.name);
      REQUIRE(here != std::string::npos);
      CHECK(here >= before);
      before = here;
    }
    CHECK(at(text, "at-start") < at(text, "inline"));
    CHECK(at(text, "at-soac-end") < at(text, "extract-kernels"));
    CHECK(at(text, "at-kernel-start") > at(text, "extract-kernels"));
    CHECK(at(text, "at-before-tiling") < at(text, "tile-contraction"));
    CHECK(at(text, "at-after-tiling") > at(text, "tile-contraction"));
    CHECK(at(text, "at-kernel-end") < at(text, "place-memory"));
    CHECK(at(text, "at-memory-end") > at(text, "place-memory"));
    // Of a shorter pipeline only what it passes.
    CHECK(at(standard_pipeline(Stage::soac, machine, true, registry), "at-kernel-start") == std::string::npos);
  }
}

TEST_CASE("without insertions nothing changes; several at a point stand in their order") {
  PassRegistry registry = PassRegistry::builtin();
  CHECK(standard_pipeline(Stage::memory, Machine::cpu, true, registry) ==
        standard_pipeline(Stage::memory, Machine::cpu, true));
  REQUIRE(insert_pipeline("soac-end:simplify", registry));
  REQUIRE(insert_pipeline("soac-end:cse,fuse", registry));
  CHECK(standard_pipeline(Stage::soac, Machine::cpu, false, registry).ends_with(",elide-copies,simplify,cse,fuse"));
}

TEST_CASE("what cannot be inserted leaves the registry as it was") {
  PassRegistry registry = PassRegistry::builtin();
  for (const char* text : {"soac-end", "nowhere:simplify", "soac-end:nothing", "soac-end:extract-kernels",
                           "memory-end:fuse", "soac-end:simplify{"}) {
    CAPTURE(text);
    CHECK_FALSE(insert_pipeline(text, registry));
    CHECK(registry.insertions().empty());
  }
}

constexpr const char* kText = "stage soac\n\nfun f [] (x : i32) : {i32} = { in {x} }\n";

TEST_CASE("a limit skips what is beyond it, but for what is required") {
  PassRegistry registry = PassRegistry::builtin();
  const auto pipeline = parse_pipeline("simplify,inline,cse,extract-kernels,simplify,place-memory", registry);
  REQUIRE(pipeline);
  struct Case {
    std::size_t limit;
    std::string ran;
  };
  for (const Case& c : {Case{0, "2inline 4extract-kernels 6place-memory "},
                        {1, "1simplify 2inline 4extract-kernels 6place-memory "},
                        {3, "1simplify 2inline 3cse 4extract-kernels 6place-memory "},
                        {9, "1simplify 2inline 3cse 4extract-kernels 5simplify 6place-memory "}}) {
    auto module = parse_module(kText, "f");
    REQUIRE(module);
    std::string ran, skipped;
    PipelineOptions options;
    options.limit = c.limit;
    options.before_pass = [&](const PassReport& report, const Module&) {
      ran += std::to_string(report.application) + report.pass + " ";
      CHECK(report.applications == 6);
    };
    options.skipped = [&](const PassReport& report) { skipped += report.pass + " "; };
    REQUIRE(run_pipeline(*module, *pipeline, options));
    CHECK(ran == c.ran);
    CHECK(module->stage == Stage::memory);
    CHECK(skipped.empty() == (c.limit >= 6));
  }
}

TEST_CASE("disabled passes are no applications") {
  const PassRegistry registry = PassRegistry::builtin();
  const auto pipeline = parse_pipeline("simplify,cse,simplify", registry);
  REQUIRE(pipeline);
  auto module = parse_module(kText, "f");
  REQUIRE(module);
  std::size_t applications = 0;
  PipelineOptions options;
  options.disabled = {"simplify"};
  options.before_pass = [&](const PassReport& report, const Module&) {
    applications += report.applications;
    CHECK(report.pass == "cse");
    CHECK(report.application == 1);
  };
  REQUIRE(run_pipeline(*module, *pipeline, options));
  CHECK(applications == 1);
}

}  // namespace
}  // namespace apl
