// Modules, imports and sum types: what programs in several files mean, and what is said of them.
#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "ir/interpret.h"
#include "ir/print.h"
#include "tests/unit/frontend/support.h"

namespace apl::frontend {

namespace {

using Files = std::map<std::string, std::string>;

// The first file is the program.
test::Outcome check_files(const std::string& main, const Files& files) {
  test::Outcome outcome;
  SourceFile source{.name = "dir/main.fut", .text = main};
  source.read = [&](const std::string& name) {
    const auto found = files.find(name);
    return found == files.end() ? std::nullopt : std::optional(found->second);
  };
  outcome.module = compile(source, [&](const Diagnostic& d) { outcome.diagnostics.push_back(d); });
  outcome.accepted = outcome.module.has_value();
  return outcome;
}

}  // namespace

TEST_CASE("imports are found beside the file that says so, each once") {
  const Files files = {{"dir/lib/a.fut", "import \"../b\" def a = b"},
                       {"dir/b.fut", "def b = 1i32 local def hidden = 2i32"},
                       {"b.fut", "def b = true"}};
  CHECK(check_files("import \"lib/a\" import \"b\" entry f = a + b", files).accepted);
  CHECK(check_files("module m = import \"../b\" entry f (x: bool) = x == m.b", files).accepted);
  // What a file imports it does not give on, nor what is local.
  CHECK_FALSE(check_files("import \"lib/a\" entry f = b", files).accepted);
  CHECK_FALSE(check_files("import \"b\" entry f = hidden", files).accepted);
  CHECK(check_files("import \"c\" entry f = b", {{"dir/b.fut", "def b = 1i32"}, {"dir/c.fut", "open import \"b\""}})
            .accepted);
}

TEST_CASE("an error in an imported file names it and the chain of imports") {
  const Files files = {{"dir/a.fut", "def x = 1i32\nimport \"b\""}, {"dir/b.fut", "\ndef y = 1i32 + true"}};
  const test::Outcome outcome = check_files("import \"a\"\nentry f = x + true", files);
  REQUIRE(outcome.diagnostics.size() == 2);
  CHECK(outcome.places() == std::vector<std::string>{"type.mismatch@2:15", "type.mismatch@2:16"});
  CHECK(outcome.diagnostics[0].file.empty());
  CHECK(outcome.diagnostics[1].file == "dir/b.fut");
  REQUIRE(outcome.diagnostics[1].notes.size() == 2);
  CHECK(outcome.diagnostics[1].notes[0].message == "dir/b.fut is imported at dir/a.fut:2:1");
  CHECK(outcome.diagnostics[1].notes[1].message == "dir/a.fut is imported at dir/main.fut:1:1");
}

TEST_CASE("a circle of imports and a missing file are errors at the import") {
  const test::Outcome circle =
      check_files("import \"a\"", {{"dir/a.fut", "import \"b\""}, {"dir/b.fut", "def x = 1i32\nimport \"a\""}});
  REQUIRE(circle.diagnostics.size() == 1);
  CHECK(circle.diagnostics[0].file == "dir/b.fut");
  CHECK(circle.diagnostics[0].location.line == 2);
  CHECK(circle.diagnostics[0].message == "Import cycle: dir/a.fut imports dir/b.fut imports dir/a.fut");
  CHECK_FALSE(check_files("import \"main\"", {{"dir/main.fut", "import \"main\""}}).accepted);
  const test::Outcome missing = check_files("import \"a\" entry f = 1i32", {});
  REQUIRE(missing.diagnostics.size() == 1);
  CHECK(missing.diagnostics[0].message == "Could not find import \"a\" at path dir/a.fut");
}

TEST_CASE("nothing of modules is left in the IR, and functions are called after them") {
  const test::Outcome outcome = test::compile_text(
      "module add (M: numeric) = { def inc (x: M.t) = M.(x + i32 1) }\n"
      "module ints = { module one = add i64 }\n"
      "entry f (x: i64) = ints.one.inc (ints.one.inc x)");
  REQUIRE(outcome.accepted);
  const std::string text = print(*outcome.module);
  CHECK(text.find("ints_one_inc") != std::string::npos);
  CHECK(text.find("module") == std::string::npos);
}

TEST_CASE("abstract types are types of their own wherever their module is used") {
  const std::string modules =
      "module type s = { type t val x : t val f : t -> i32 }\n"
      "module m : s = { type t = i32 def x = 1i32 def f (x: t) = x }\n"
      "module n : s = { type t = i32 def x = 2i32 def f (x: t) = x }\n"
      "module o = m : s\n"
      "module p : s with t = m.t = m\n";
  CHECK(test::compile_text(modules + "entry g = m.f m.x + p.f m.x").accepted);
  for (const char* wrong : {"m.f n.x", "m.f 1", "o.f m.x", "m.x + 1"}) {
    CAPTURE(wrong);
    CHECK_FALSE(test::compile_text(modules + "entry g = " + std::string(wrong)).accepted);
  }
}

TEST_CASE("a parametric module is checked whether it is applied or not, and said to be wrong once") {
  const std::string wrong = "module m (p: { type t val x : t }) = { def f = p.x + 1i32 }\n";
  CHECK(test::check_text(wrong).places() == std::vector<std::string>{"type.mismatch@1:48"});
  CHECK(test::check_text(wrong + "module a = m { type t = i32 def x = 1i32 } def g = a.f").places() ==
        std::vector<std::string>{"type.mismatch@1:48"});
}

TEST_CASE("what is missing from a match is said by an example") {
  struct Case {
    std::string text, missing;
  };
  const std::string types = "type t = #a i32 (#c | #d) | #b\n";
  for (const Case& c : std::vector<Case>{
           {"(x: t) = match x case #b -> 1", "#a _ _"},
           {"(x: t) = match x case #b -> 1 case #a _ #c -> 2", "#a _ #d"},
           {"(x: (t, t)) = match x case (#b, _) -> 1 case (_, #b) -> 2", "(#a _ _, #a _ _)"},
           {"(x: i32) = match x case 0 -> 1 case 1 -> 2", "2"},
           {"(x: {a: bool, b: bool}) = match x case {a = true, b = _} -> 1 case {a = _, b = true} -> 2",
            "{a = false, b = false}"},
           {"(x: bool) = match x case true -> 1", "false"},
       }) {
    CAPTURE(c.text);
    const test::Outcome outcome = test::check_text(types + "def f " + c.text);
    REQUIRE_FALSE(outcome.accepted);
    CHECK(outcome.messages().find("Unmatched cases in match expression: " + c.missing + "\n") != std::string::npos);
  }
  const test::Outcome complete = test::check_text(
      types +
      "def f (x: (t, bool)) = match x case (#a 1 #c, true) -> 1i32 case (#b, false) -> 2 case (_, true) -> 3\n"
      "case (#a _ _, false) -> 4");
  CHECK_MESSAGE(complete.accepted, complete.messages());
}

}  // namespace apl::frontend
