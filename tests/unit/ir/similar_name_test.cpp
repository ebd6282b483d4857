#include "ir/similar_name.h"

#include <doctest/doctest.h>

#include "ir/text_diff.h"

namespace apl {
namespace {

TEST_CASE("similar names: one or two letters away, and the nearest of several") {
  const std::vector<std::string> names{"explain", "opt", "run", "reduce", "simplify", "x"};
  struct Case {
    const char* word;
    const char* similar;
  };
  for (const Case& c : {Case{"expalin", "explain"},
                        {"redcue", "reduce"},
                        {"rnu", "run"},
                        {"optt", "opt"},
                        {"simplfi", "simplify"},
                        {"simplify", "simplify"}}) {
    CAPTURE(c.word);
    CHECK(similar_name(c.word, names) == std::optional<std::string>(c.similar));
  }
  for (const char* far : {"tune", "smplf", "", "q", "explanation"}) {
    CAPTURE(far);
    CHECK_FALSE(similar_name(far, names).has_value());
  }
}

TEST_CASE("text differences: common ends stay outside of the hunks") {
  CHECK(text_diff("a\nb\n", "a\nb\n") == "");
  CHECK(text_diff("a\nb\nc\n", "a\nx\nc\n", "old", "new") == "--- old\n+++ new\n@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n");
  std::string before, after;
  for (int k = 0; k < 30000; ++k) {
    before += std::to_string(k) + "\n";
    after += (k == 20000 ? std::string("here") : std::to_string(k)) + "\n";
  }
  CHECK(text_diff(before, after) ==
        "--- before\n+++ after\n@@ -19998,7 +19998,7 @@\n 19997\n 19998\n 19999\n-20000\n+here\n 20001\n 20002\n "
        "20003\n");
  // Too different for the table: replaced as a whole.
  std::string other;
  for (int k = 0; k < 30000; ++k) other += "o" + std::to_string(k) + "\n";
  const std::string diff = text_diff(before, other);
  CHECK(diff.find("@@ -1,30000 +1,30000 @@\n-0\n") != std::string::npos);
}

}  // namespace
}  // namespace apl
