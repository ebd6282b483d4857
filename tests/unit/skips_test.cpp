// Cases that need what a machine may lack are in a suite of their own, and say so by tests::skip.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>

TEST_CASE("a case that cannot run is skipped, not passed") {
  static const std::regex kMessage("MESSAGE\\(\"skip"), kSkip("tests::skip\\("),
      kSuite("test_suite\\(\"(nvrtc|nvcc|clang|device)\"\\)");
  int skips = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(APL_SOURCE_DIR "/tests/unit")) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() != ".cpp" || name == "main.cpp" || name == "skips_test.cpp") continue;
    std::ifstream file(entry.path());
    const std::string text(std::istreambuf_iterator<char>(file), {});
    CHECK_MESSAGE(!std::regex_search(text, kMessage), name);
    if (!std::regex_search(text, kSkip)) continue;
    ++skips;
    CHECK_MESSAGE(std::regex_search(text, kSuite), name);
  }
  CHECK(skips >= 4);
}
