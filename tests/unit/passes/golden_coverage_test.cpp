// Every pass of the tree has golden files, every remark code has one, and no remark has a code that is not declared.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>

#include "frontend/frontend.h"
#include "machine/tiles/plan.h"
#include "passes/pipeline.h"

namespace {

using Codes = std::map<std::string, std::set<std::string>>;  // by pass

std::string golden_text(const std::filesystem::path& path) {
  std::ifstream file(path);
  REQUIRE_MESSAGE(file.good(), path.string());
  return {std::istreambuf_iterator<char>(file), {}};
}

Codes declared() {
  Codes codes;
  const apl::PassRegistry registry = apl::PassRegistry::builtin();
  for (const apl::PassInfo& pass : registry.passes())
    for (const auto& [code, when] : pass.remark_codes) codes[pass.name].insert(code);
  return codes;
}

// Of the remarks that golden files have recorded: "missed fuse:width-mismatch, main: ...".
Codes recorded() {
  static const std::regex kRemark("\n(applied|missed|analysis) ([a-z0-9-]+):([a-z0-9-]+)");
  Codes codes;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(APL_SOURCE_DIR "/tests/golden")) {
    if (!entry.is_regular_file()) continue;
    const std::string text = golden_text(entry.path());
    for (std::sregex_iterator match(text.begin(), text.end(), kRemark), last; match != last; ++match)
      codes[(*match)[2]].insert((*match)[3]);
  }
  return codes;
}

}  // namespace

TEST_CASE("every declared remark code has a golden file") {
  const Codes golden = recorded();
  CHECK(declared().size() >= 5);
  for (const auto& [pass, codes] : declared())
    for (const std::string& code : codes)
      CHECK_MESSAGE((golden.contains(pass) && golden.at(pass).contains(code)),
                    "no golden file has a remark " << pass << ":" << code);
}

TEST_CASE("every remark has a code that its pass declares") {
  Codes emitted = recorded();
  int programs = 0;
  for (const char* folder : {"/examples", "/tests/programs", "/tests/explain"})
    for (const auto& entry : std::filesystem::recursive_directory_iterator(std::string(APL_SOURCE_DIR) + folder)) {
      if (entry.path().extension() != ".fut") continue;
      const std::string name = entry.path().string(), text = golden_text(entry.path());
      const auto module = apl::compile({name, text}, [](const apl::Diagnostic&) {});
      if (!module) continue;  // programs that show errors
      ++programs;
      for (const apl::Machine machine : {apl::Machine::cpu, apl::Machine::gpu}) {
        apl::Module copy = *module;
        apl::PipelineOptions options;
        options.verify_each = false;
        options.remarks = [&](const apl::Remark& remark) { emitted[remark.pass].insert(remark.code); };
        const auto pipeline =
            apl::parse_pipeline(apl::standard_pipeline(apl::Stage::memory, machine), apl::PassRegistry::builtin());
        REQUIRE(pipeline);
        CHECK_MESSAGE(apl::run_pipeline(copy, *pipeline, options), name);
      }
    }
  CHECK(programs >= 40);
  const Codes known = declared();
  for (const auto& [pass, codes] : emitted)
    for (const std::string& code : codes)
      CHECK_MESSAGE((known.contains(pass) && known.at(pass).contains(code)),
                    "pass " << pass << " does not declare its remark code " << code);
}

TEST_CASE("every variant of contractions that the model of tiles knows is an alternative in a golden file") {
  static const std::regex kAlternative("\n *([a-z]+) \\{\n");
  std::set<std::string> made;
  for (const auto& entry : std::filesystem::directory_iterator(APL_SOURCE_DIR "/tests/golden/tile-contraction")) {
    const std::string text = golden_text(entry.path());
    for (std::sregex_iterator match(text.begin(), text.end(), kAlternative), last; match != last; ++match)
      made.insert((*match)[1]);
  }
  for (int variant = APL_VARIANT_TILED; variant < APL_VARIANTS; ++variant)
    CHECK_MESSAGE(made.contains(apl_variant_name(variant)),
                  "tile-contraction makes no alternative '" << apl_variant_name(variant) << "' in a golden file");
}

TEST_CASE("every pass of passes.def has a folder of golden files") {
  const std::filesystem::path golden = std::filesystem::path(APL_SOURCE_DIR) / "tests" / "golden";
  const auto passes = apl::PassRegistry::builtin().passes();
  CHECK(!passes.empty());
  for (const apl::PassInfo& pass : passes) {
    const std::filesystem::path folder = golden / pass.name;
    REQUIRE_MESSAGE(std::filesystem::is_directory(folder), "tests/golden/" << pass.name << " is missing");
    const std::filesystem::directory_iterator files(folder);
    const bool any = std::any_of(begin(files), end(files), [](const auto& entry) {
      return entry.path().extension() == ".aplir" || entry.path().extension() == ".fut";
    });
    CHECK_MESSAGE(any, "tests/golden/" << pass.name << " has no golden file");
  }
}
