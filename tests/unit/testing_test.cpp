// The test kit tested: it says yes to what is right, and no to what is wrong.
#include <doctest/doctest.h>

#include "ir/parse.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "tests/testing.h"

namespace {

using namespace apl;

constexpr std::string_view kNests = R"ir(stage kernel

entry f (A : "[n][m]f32") : {"[n]f32"}
fun f [n, m] (A : [n][m]f32) : {[n]f32} = {
  let {r : [n]f32} =
    segmap(thread) (i < n) {
      let {row : [m]f32} = A[i]
      let {s : f32} =
        redomap(k < m, {row},
          \{x : f32} -> { let {y : f32} = mul(x, x) in {y} },
          {commutative \{a : f32, b : f32} -> { let {c : f32} = add(a, b) in {c} }, {0.0f32}})
      let {t : f32} =
        loop {acc : f32 = s} for j < 3 {
          let {next : f32} = add(acc, acc)
          let {big : bool} = lt(next, 1.0f32)
          let {z : f32} =
            if big {
              let {u : f32} = neg(next)
              in {u}
            } else {
              in {next}
            }
          in {z}
        }
      return {returns t}
    }
  in {r}
}
)ir";

Module parsed_module(std::string_view text) {
  auto module = parse_module(text, "test.aplir");
  if (!module) FAIL(render(module.error(), "test.aplir", text));
  const auto broken = verify(*module);
  if (!broken.empty()) FAIL(render(broken.front(), "test.aplir", text));
  return *module;
}

// `text` with one piece replaced: what a wrong transformation might leave.
std::string edited(std::string_view text, std::string_view piece, std::string_view by) {
  std::string result(text);
  const std::size_t at = result.find(piece);
  REQUIRE(at != std::string::npos);
  return result.replace(at, piece.size(), by);
}

}  // namespace

TEST_CASE("structure counts operations by their direct parents") {
  const Module module = parsed_module(kNests);
  const std::vector<std::pair<std::string, std::size_t>> cases = {
      {"segmap", 1},
      {"segmap(thread)", 1},
      {"segmap(block)", 0},
      {"/segmap", 1},
      {"/redomap", 0},
      {"redomap", 1},
      {"screma", 1},
      {"map", 0},
      {"segmap/redomap", 1},
      {"segmap/add", 0},
      {"add", 2},
      {"binary", 3},
      {"redomap/add", 1},
      {"segmap/redomap/mul", 1},
      {"/segmap/redomap/mul", 1},
      {"segmap(thread)/screma/binary", 2},
      {"loop", 1},
      {"loop(for)", 1},
      {"loop(while)", 0},
      {"loop/if", 1},
      {"if/neg", 1},
      {"loop/neg", 0},
      {"unary", 1},
      {"compare", 1},
      {"index", 1},
  };
  for (const auto& one : cases) {
    const std::string path = one.first;
    CHECK_MESSAGE(testing::count_structure(module, path) == one.second, path);
  }
}

TEST_CASE("structure expectations hold, fail with what was found, and reject misspelt names") {
  const Module module = parsed_module(kNests);
  CHECK(testing::has_structure(module, "segmap/loop 1  add 2\n/segmap/if 0"));
  CHECK(testing::has_structure(module, ""));
  const auto wrong = testing::has_structure(module, "loop 2 add 2");
  CHECK(!wrong);
  CHECK(wrong.explanation.find("loop occurs 1 times, not 2\n") == 0);
  CHECK(wrong.explanation.find("/segmap(thread)/loop/if 1") != std::string::npos);
  CHECK(testing::has_structure(module, "segmpa 0").explanation == "'segmpa' in 'segmpa' names no operation");
  CHECK(testing::has_structure(module, "segmap//loop 0").explanation == "'' in 'segmap//loop' names no operation");
  CHECK(testing::has_structure(module, "segmap").explanation == "'segmap' is followed by '', not by a count");
  CHECK(testing::has_structure(module, "segmap 1x").explanation == "'segmap' is followed by '1x', not by a count");
}

TEST_CASE("difference sees through names and numbers, and nothing else") {
  const Module module = parsed_module(kNests);
  CHECK(!testing::difference(
      module, parsed_module(edited(kNests, "let {row : [m]f32} = A[i]", "let {row : [m]f32} = A[i] @1:1-1:2"))));
  std::string renamed(kNests);
  for (std::size_t at; (at = renamed.find("next")) != std::string::npos;) renamed.replace(at, 4, "succ");
  CHECK(!testing::difference(module, parsed_module(renamed)));
  const std::vector<std::pair<std::string_view, std::string_view>> edits = {
      {"add(acc, acc)", "add(acc, s)"},
      {"commutative ", ""},
      {"j < 3", "j < 4"},
      {"0.0f32", "-0.0f32"},
      {"let {r : [n]f32}", "let {r : *[n]f32}"},
      {"returns t", "returns s"},
      {"A[i]", "checked A[i]"},
      {"entry f", "entry g"},
      {"stage kernel", "stage kernel of \"f.fut\""}};
  for (const auto& edit : edits) {
    const auto piece = edit.first, by = edit.second;
    const auto other = parse_module(edited(kNests, piece, by), "edited");
    REQUIRE(other);
    CHECK_MESSAGE(testing::difference(module, *other), by);
  }
  const auto where = testing::difference(module, parsed_module(edited(kNests, "add(acc, acc)", "mul(acc, acc)")));
  REQUIRE(where);
  CHECK(
      *where ==
      "function f: bodies differ:\nlet {next : f32} = add(acc, acc)\n---- and ----\nlet {next : f32} = mul(acc, acc)");
}

TEST_CASE("arguments have the given sizes, are small integers, and follow the seed") {
  const Module module = parsed_module(R"ir(stage soac
    entry f (A : "", k : "", h : "", b : "", u : "") : {}
    fun f [n, m] (A : [n][2*m]f32, k : i64, h : [k]f16, b : [m]bool, u : [m]u8) : {} = { in {} })ir");
  const Function& f = *module.functions[0];
  const auto first = testing::random_arguments(f, {{"n", 50}, {"m", 3}, {"k", 40}}, 7);
  REQUIRE(first);
  REQUIRE(first->size() == 5);
  CHECK((*first)[0].shape == std::vector<std::int64_t>{50, 6});
  CHECK((*first)[1].to_text() == "40i64");
  CHECK((*first)[2].shape == std::vector<std::int64_t>{40});
  bool negative = false;
  for (std::int64_t k = 0; k < 300; ++k) {
    const double x = (*first)[0].at(k).as_float();
    CHECK((x >= -4 && x <= 4 && x == static_cast<int>(x)));
    negative = negative || x < 0;
  }
  CHECK(negative);
  for (std::int64_t k = 0; k < 40; ++k) CHECK(std::abs((*first)[2].at(k).as_float()) <= 2);
  CHECK(*testing::random_arguments(f, {{"n", 50}, {"m", 3}, {"k", 40}}, 7) == *first);
  CHECK(*testing::random_arguments(f, {{"n", 50}, {"m", 3}, {"k", 40}}, 8) != *first);
  CHECK(testing::random_arguments(f, {}, 1));
  CHECK(testing::random_arguments(f, {{"q", 1}}, 1).error().message ==
        "the sizes are q=1, but the sizes and integers of `f` are n m k");
  CHECK(!testing::random_arguments(f, {{"n", 1 << 20}, {"m", 1 << 20}}, 1));
}

TEST_CASE("the law holds for a module and itself, and for one that reorders") {
  const Module module = parsed_module(kNests);
  const auto same = testing::same_meaning(module, module, "f");
  CHECK_MESSAGE(same, same.explanation);
  const auto every = testing::same_meaning(module, parsed_module(edited(kNests, "add(a, b)", "add(b, a)")));
  CHECK_MESSAGE(every, every.explanation);
}

TEST_CASE("the law catches wrong transformations, with a counterexample") {
  const Module module = parsed_module(kNests);
  const std::vector<std::pair<std::string_view, std::string_view>> wrong = {
      {"mul(x, x)", "add(x, x)"},
      {"add(acc, acc)", "add(acc, 1.0f32)"},
      {"{0.0f32}", "{1.0f32}"},
      {"j < 3", "j < 2"},
      {"A[i]", "A[n - i - 1]"},
      {"A[i]", "A[min(i, 4)]"},  // wrong for n > 5 only
      {"A[i]", "A[i + 1]"},      // out of bounds
      {"k < m, {row}", "k < m - 1, {row}"},
  };
  for (const auto& edit : wrong) {
    const auto piece = edit.first, by = edit.second;
    auto other = parse_module(edited(kNests, piece, by), "edited");
    REQUIRE(other);
    const auto verdict = testing::same_meaning(module, *other, "f");
    CHECK_MESSAGE(!verdict, by);
  }
  const auto verdict = testing::same_meaning(module, parsed_module(edited(kNests, "{0.0f32}", "{1.0f32}")), "f");
  CHECK(verdict.explanation.find("arguments of `f`:") != std::string::npos);
  CHECK(verdict.explanation.find("before: ") != std::string::npos);
  CHECK(verdict.explanation.find("after:  ") != std::string::npos);
}

TEST_CASE("a law that compares nothing is broken") {
  const Module fails = parsed_module(R"ir(stage soac
    entry f () : {"i32"}
    fun f [] () : {i32} = {
      let {c : unit} = assert(false, "never")
      let {x : i32} = #{c} 1i32
      in {x}
    })ir");
  const auto nothing = testing::same_meaning(fails, fails, "f");
  CHECK(!nothing);
  CHECK(nothing.explanation.find("nothing could be compared") == 0);
  CHECK(!testing::same_meaning(fails, fails, "g"));
  CHECK(!testing::same_meaning(parsed_module("stage soac"), parsed_module("stage soac")));
  testing::LawOptions none;
  none.only_these_sizes = true;
  CHECK(!testing::same_meaning(parsed_module(kNests), parsed_module(kNests), "f", none));
}

TEST_CASE("pipelines run on text; errors come back") {
  const auto same = testing::run_text("none", kNests);
  REQUIRE(same);
  CHECK(same->output == kNests);
  CHECK(same->remark_text.empty());
  CHECK(!testing::difference(same->before, same->after));
  CHECK(testing::run_text("none", "stage").error().code == Code::ir_syntax);
  CHECK(testing::run_text("no-such-pass", kNests).error().code == Code::command_bad_pipeline);
}

TEST_CASE("a pass from outside the tree runs, and its remarks are kept in order") {
  testing::RunOptions options;
  PassInfo pass;
  pass.name = "outside";
  pass.summary = "says two things";
  pass.run = [](Module&, PassContext& context) -> Result<Change> {
    context.remark({RemarkKind::missed,
                    "outside",
                    "too-small",
                    {3, 5, 3, 9},
                    "f",
                    "not done",
                    {{"n", "3"}, {"m", "4"}},
                    "use more"});
    context.remark({RemarkKind::applied, "outside", "done", {}, "f", "done", {}, ""});
    return Change::no;
  };
  options.registry.add(pass);
  const auto run = testing::run_text("outside", kNests, options);
  REQUIRE(run);
  CHECK(run->remarks.size() == 2);
  CHECK(run->remark_text ==
        "missed outside:too-small, f 3:5: not done {n=3, m=4}\n  hint: use more\n"
        "applied outside:done, f: done\n");
}

TEST_CASE("text differences are shown as unified diffs") {
  CHECK(testing::text_diff("a\nb\n", "a\nb\n").empty());
  CHECK(testing::text_diff("a\nb\nc\n", "a\nx\nc\n", "old", "new") ==
        "--- old\n+++ new\n@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n");
  CHECK(testing::text_diff("", "a\n") == "--- expected\n+++ actual\n@@ -0,0 +1,1 @@\n+a\n");
  CHECK(testing::text_diff("a", "a\n") ==
        "--- expected\n+++ actual\n@@ -1,1 +1,1 @@\n-a\n\\ no newline at the end\n+a\n");
  std::string a;
  std::string b;
  for (int k = 0; k < 40; ++k) {
    a += std::to_string(k) + "\n";
    b += std::to_string(k == 5 || k == 30 ? -k : k) + "\n";
  }
  CHECK(testing::text_diff(a, b) ==
        "--- expected\n+++ actual\n@@ -3,7 +3,7 @@\n 2\n 3\n 4\n-5\n+-5\n 6\n 7\n 8\n"
        "@@ -28,7 +28,7 @@\n 27\n 28\n 29\n-30\n+-30\n 31\n 32\n 33\n");
}
