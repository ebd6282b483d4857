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
  CHECK(outcome.places() == std::vector<std::string>{"type.mismatch@2:16", "type.mismatch@2:15"});
  CHECK(outcome.diagnostics[1].file.empty());
  CHECK(outcome.diagnostics[0].file == "dir/b.fut");
  REQUIRE(outcome.diagnostics[0].notes.size() == 2);
  CHECK(outcome.diagnostics[0].notes[0].message == "dir/b.fut is imported at dir/a.fut:2:1");
  CHECK(outcome.diagnostics[0].notes[1].message == "dir/a.fut is imported at dir/main.fut:1:1");
}

TEST_CASE("what follows from an error in another definition is not said, and an import's error comes first") {
  const Files files = {{"dir/a.fut", "import \"b\" def twice x = helper (helper x)"},
                       {"dir/b.fut", "def helper x = map (\\y -> undefined_name y) x def one k = 1f32 + missing * k"}};
  const test::Outcome outcome =
      check_files("import \"a\" import \"b\"\nentry f (xs: []i32) = helper xs\nentry g (x: i64) = one x", files);
  CHECK(outcome.places() == std::vector<std::string>{"type.unknown-name@1:27", "type.unknown-name@1:66"});
  for (const Diagnostic& diagnostic : outcome.diagnostics) CHECK(diagnostic.file == "dir/b.fut");
  // What is written is believed, and what has nothing to do with it is said, last.
  const test::Outcome two = check_files("import \"a\"\ndef g (x: f32) = f x\ndef h (y: bool) = y + 1i32",
                                        {{"dir/a.fut", "def f (n: i32) : i32 = missing n"}});
  REQUIRE(two.diagnostics.size() == 3);
  CHECK(two.diagnostics[0].file == "dir/a.fut");
  CHECK(two.diagnostics[1].location.line == 2);
  CHECK(two.diagnostics[2].location.line == 3);
}

TEST_CASE("a parametric module is judged where nothing is known of its argument, not once more where it is applied") {
  const std::string text =
      "module type space = { type v val zero : v val add : v -> v -> v }\n"
      "module arrays (S: { val n : i64 }) = { type v = [S.n]i32 def zero : v = rep 0 def add (a: v) (b: v) : v =\n"
      "  map2 (+) a b }\n"
      "module state (V: space) = { type s = {w: V.v, m: V.v} def initial (w: V.v) : s = {w, m = V.zero} }\n"
      "module m = state (arrays { def n = 3i64 })\n"
      "entry f = (m.initial (rep 1)).m";
  const test::Outcome outcome = test::check_text(text);
  CHECK_MESSAGE(outcome.accepted, outcome.messages());
  // What it does with its own arrays is judged all the same.
  CHECK_FALSE(
      test::check_text("def zeros = [0i32] module m (P: {}) = { def f (x: i32) = zeros } module n = m {}").accepted);
}

TEST_CASE("messages about modules name what is required and what there is") {
  struct Case {
    std::string text, message;
  };
  for (const Case& c : std::vector<Case>{
           {"module m = { def f 'a (x: a) = ([x])[0] } : { val f '^a : a -> a }", "Module type specifies val f 'a"},
           {"module p (P: { type v [n] 't }) = {} module m = p { type v 't = [2]t }",
            "it defines type v 't, but the module type requires type v [n] 't"},
           {"module o = (\\(X: { type t = i64 val x : t }) -> { def x = X.x }): (X: { type t val x : t }) -> { val x : "
            "X.t }\nmodule l = o { type t = bool def x : t = true }",
            "requires type t = i64"},
           {"module type t = { module m: { val x : i32 } } module n : t = { module m (P: {}) = { def x = 1i32 } }",
            "parametric"},
           {"module type s = { module inner: { type t } } module m : s with inner.t = bool = { module inner = { type t "
            "= i32 } }",
            "Module defines type inner.t = i32, but module type requires type inner.t = bool"},
           {"module type c = { type t val x : t } module type o = { module m: (X: c) -> c } module n : o = { module m "
            "(X: "
            "c with t = i64) : c = { type t = i64 def x = X.x + 1 } }",
            "but module type requires type m.t = i64"},
           {"module type s = { module m: (X: { type t val x : t }) -> { val y : i32 } } module n : s = { module m (X: "
            "{ "
            "type t val x : t }) = { def y = X.x } }",
            "Module type specifies val m.y : i32, but module provides"},
           {"module type s = { type t '^a } module type u = s with t 'a = a", "Cannot refine a type"},
           {"module type s = { val f : (quux: i32) -> (quux: i32) -> i32 }", "\"quux\" also bound at 1:28"},
       }) {
    CAPTURE(c.text);
    const test::Outcome outcome = test::check_text(c.text);
    CHECK_FALSE(outcome.accepted);
    CHECK_MESSAGE(outcome.messages().find(c.message) != std::string::npos, outcome.messages());
  }
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
