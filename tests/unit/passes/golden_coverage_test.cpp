// Every pass of the tree has golden files.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "passes/pass.h"

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
