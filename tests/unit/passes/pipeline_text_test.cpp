// Pipeline text: what parses, what it means, what the errors say.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "passes/pipeline.h"

namespace {

using namespace apl;

PassInfo named(std::string name, std::vector<PassOption> options = {}) {
  PassInfo pass;
  pass.name = std::move(name);
  pass.options = std::move(options);
  pass.run = [](Module&, PassContext&) -> Result<Change> { return Change::no; };
  return pass;
}

PassRegistry registry() {
  PassRegistry result;
  result.add(named("simplify"));
  result.add(named(
      "tile", {{"size", std::int64_t{16}, "rows"}, {"guards", true, "guards"}, {"mode", std::string("auto"), "mode"}}));
  result.add(named("cse"));
  return result;
}

std::vector<std::string> names(const Pipeline& pipeline) {
  std::vector<std::string> result;
  for (const std::size_t k : pipeline.order) result.push_back(pipeline.registry.passes()[k].name);
  return result;
}

TEST_CASE("a pipeline is passes in order, with the options' defaults filled in") {
  const auto pipeline = parse_pipeline("simplify, tile{size=4 guards=false}\n,simplify,tile", registry());
  REQUIRE(pipeline);
  CHECK(names(*pipeline) == std::vector<std::string>{"simplify", "tile", "simplify", "tile"});
  CHECK(std::get<std::int64_t>(pipeline->options[1].at("size")) == 4);
  CHECK(std::get<bool>(pipeline->options[1].at("guards")) == false);
  CHECK(std::get<std::string>(pipeline->options[1].at("mode")) == "auto");
  CHECK(std::get<std::int64_t>(pipeline->options[3].at("size")) == 16);
}

TEST_CASE("text without a pass is the empty pipeline") {
  for (const char* text : {"", "  ", "\n"}) {
    const auto pipeline = parse_pipeline(text, registry());
    REQUIRE(pipeline);
    CHECK(pipeline->order.empty());
    CHECK(pipeline->to_text().empty());
  }
}

TEST_CASE("a flag alone is true, values may stand in quotes, and braces may be empty") {
  const auto pipeline = parse_pipeline(R"(tile{guards mode="a b}\"c\\"},cse{})", registry());
  REQUIRE(pipeline);
  CHECK(std::get<bool>(pipeline->options[0].at("guards")));
  CHECK(std::get<std::string>(pipeline->options[0].at("mode")) == "a b}\"c\\");
}

TEST_CASE("to_text and parse_pipeline are inverse") {
  for (const char* text : {"simplify", "simplify,cse", "tile{size=-3}", "tile{guards=false mode=fast},cse",
                           R"(tile{mode="two words"})", R"(tile{mode=""})", R"(tile{mode="}\"\\"})"}) {
    const auto pipeline = parse_pipeline(text, registry());
    REQUIRE_MESSAGE(pipeline, text);
    CHECK(pipeline->to_text() == text);
    const auto again = parse_pipeline(pipeline->to_text(), registry());
    REQUIRE(again);
    CHECK(again->order == pipeline->order);
    CHECK(again->options == pipeline->options);
  }
}

TEST_CASE("errors name the place, the reason, and the near name") {
  struct Case {
    const char* text;
    unsigned column;
    const char* message;
    const char* hint;
  };
  const Case cases[] = {
      {"simplfy", 1, "there is no pass 'simplfy'", "did you mean 'simplify'?"},
      {"cse,tiel", 5, "there is no pass 'tiel'", "did you mean 'tile'?"},
      {"cse,unrelated", 5, "there is no pass 'unrelated'", ""},
      {"cse,", 5, "expected the name of a pass", ""},
      {",cse", 1, "expected the name of a pass", ""},
      {"cse simplify", 5, "expected ',' between passes, found 's'", ""},
      {"cse}", 4, "expected ',' between passes, found '}'", ""},
      {"tile{size=4", 5, "the '{' after 'tile' is never closed", ""},
      {"tile{sise=4}", 6, "pass 'tile' has no option 'sise'", "did you mean 'size'?"},
      {"cse{fast}", 5, "pass 'cse' has no option 'fast'", ""},
      {"tile{size}", 6, "option 'size' needs a value: size=an integer", ""},
      {"tile{size=four}", 11, "option 'size' takes an integer, not 'four'", ""},
      {"tile{size=4x}", 11, "option 'size' takes an integer, not '4x'", ""},
      {"tile{size=99999999999999999999}", 11, "option 'size' takes an integer", ""},
      {"tile{size=}", 11, "option 'size' takes an integer, not ''", ""},
      {"tile{guards=maybe}", 13, "option 'guards' takes true or false, not 'maybe'", ""},
      {"tile{size=1 size=2}", 13, "option 'size' is given twice", ""},
      {"tile{mode=\"open}", 11, "the text is never closed", ""},
      {"tile{=4}", 6, "expected an option of 'tile', found '='", ""},
  };
  for (const Case& c : cases) {
    const auto pipeline = parse_pipeline(c.text, registry());
    REQUIRE_MESSAGE(!pipeline, c.text);
    const Diagnostic& error = pipeline.error();
    CHECK_MESSAGE(error.code == Code::command_bad_pipeline, c.text);
    CHECK_MESSAGE(error.location.column == c.column, c.text);
    CHECK_MESSAGE(error.message.find(c.message) != std::string::npos, c.text << ": " << error.message);
    CHECK_MESSAGE(error.hint == c.hint, c.text);
  }
}

TEST_CASE("the usual pipelines parse, and each is the beginning of the next") {
  const PassRegistry builtin = PassRegistry::builtin();
  for (const Machine machine : {Machine::cpu, Machine::gpu}) {
    std::string before;
    for (const Stage stage : {Stage::soac, Stage::kernel, Stage::memory}) {
      const std::string text(standard_pipeline(stage, machine));
      REQUIRE(parse_pipeline(text, builtin));
      CHECK(text.starts_with(before));
      before = text;
    }
  }
}

TEST_CASE("passes of the tree have distinct names, a summary, and remark codes that are told once") {
  const PassRegistry builtin = PassRegistry::builtin();
  REQUIRE(!builtin.passes().empty());
  for (const PassInfo& pass : builtin.passes()) {
    CHECK(builtin.find(pass.name) == &pass);
    CHECK_MESSAGE(!pass.summary.empty(), pass.name);
    for (std::size_t k = 0; k < pass.remark_codes.size(); ++k) {
      for (std::size_t j = 0; j < k; ++j) CHECK(pass.remark_codes[j].first != pass.remark_codes[k].first);
    }
  }
  CHECK(builtin.find("no-such-pass") == nullptr);
}

}  // namespace
