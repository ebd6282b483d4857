// What to test of a pass: that it fires, where it must not, what it says, and that it keeps the meaning.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <apl/ir/parse.h>
#include <apl/testing.h>

#include "hello_pass.h"

namespace {

apl::testing::RunOptions with_hello() {
  apl::testing::RunOptions options;
  options.registry.add(hello_pass());
  return options;
}

// A negation in a map, and one of it in the next.
constexpr const char* kTwoMaps = R"(stage soac

entry main (xs : "[n]i32") : {"[n]i32"}
fun main [n] (xs : [n]i32) : {[n]i32} = {
  let {ys : [n]i32} =
    map(i < n, {xs},
      \{x : i32} -> { let {y : i32} = neg(x) in {y} })
  let {zs : [n]i32} =
    map(j < n, {ys},
      \{y_1 : i32} -> { let {z : i32} = neg(y_1) in {z} })
  in {zs}
}
)";

TEST_CASE("alone it sees no double negation across maps, behind fuse it does") {
  const auto alone = apl::testing::run_text("hello", kTwoMaps, with_hello());
  REQUIRE(alone);
  CHECK(apl::testing::has_structure(alone->after, "neg 2"));
  CHECK(alone->remarks.size() == 1);
  CHECK(alone->remarks[0].kind == apl::RemarkKind::analysis);

  const auto fused = apl::testing::run_text("fuse,hello,simplify", kTwoMaps, with_hello());
  REQUIRE(fused);
  const auto structure = apl::testing::has_structure(fused->after, "neg 0");
  CHECK_MESSAGE(structure, structure.explanation);
  CHECK(fused->remark_text.find("1 double negation is gone") != std::string::npos);
}

TEST_CASE("law: it keeps the meaning, for all sizes that are interesting") {
  const auto run = apl::testing::run_text("fuse,hello", kTwoMaps, with_hello());
  REQUIRE(run);
  const auto same = apl::testing::same_meaning(run->before, run->after, "main");
  CHECK_MESSAGE(same, same.explanation);
}

TEST_CASE("running it again changes nothing") {
  const auto once = apl::testing::run_text("fuse,hello,simplify", kTwoMaps, with_hello());
  REQUIRE(once);
  const auto again = apl::testing::run_module("hello", once->after, with_hello());
  REQUIRE(again);
  const std::string difference = apl::testing::text_diff(once->output, again->output);
  CHECK_MESSAGE(difference.empty(), difference);
  CHECK(apl::testing::round_trips(again->after));
}

TEST_CASE("a mistake in a test's text is a diagnostic") {
  const auto broken = apl::testing::run_text("hello", "stage soac\n\nfun f [] (x : i32) : {i32} = { in {y} }\n");
  REQUIRE_FALSE(broken);
  CHECK(broken.error().location.line == 3);
}

}  // namespace
