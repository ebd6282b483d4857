#include "suite/test_block.h"

#include <doctest/doctest.h>

#include "suite/pattern.h"

namespace {

using apl::suite::Expected;
using apl::suite::Input;
using apl::suite::parse_test_blocks;
using apl::suite::TestSpec;
using Words = std::vector<std::string>;

TestSpec parsed(const std::string& text) {
  auto spec = parse_test_blocks(text);
  const std::string error = spec ? "" : spec.error().message;
  CAPTURE(error);
  REQUIRE(spec);
  return std::move(*spec);
}

}  // namespace

TEST_CASE("test block: a program without one has no cases") {
  CHECK(parsed("-- Adds.\ndef main = 1\n-- == not one\n").groups.empty());
  CHECK(parsed("").groups.empty());
}

TEST_CASE("test block: every part of a case") {
  const TestSpec spec = parsed(
      "-- What it does.\n-- ==\n-- tags { slow no_cuda }\n-- entry: f g\n"
      "-- \"small one\" nobench random input { [10]i32\n--   5i64 } auto output\n"
      "-- input @ data/a.in.gz output @ data/a.out\n"
      "-- input { [1, 2] \"}{\" }\n-- output { 3 }\n"
      "-- compiled input { 1 } error: Index .* out\n"
      "-- input { } \n"
      "-- structure gpu { SegMap 1 /SegMap/Loop 2 }\n-- structure { Screma 3 }\n"
      "-- warning: ^$\n"
      "def main = 1\n");
  CHECK(spec.tags == Words{"slow", "no_cuda"});
  REQUIRE(spec.groups.size() == 1);
  CHECK(spec.groups[0].entries == Words{"f", "g"});
  const auto& cases = spec.groups[0].cases;
  REQUIRE(cases.size() == 5);

  CHECK(cases[0].name == "small one");
  CHECK(cases[0].tags == Words{"nobench", "random"});
  CHECK(cases[0].line == 5);
  CHECK(cases[0].input.kind == Input::Kind::random);
  CHECK(cases[0].expected.kind == Expected::Kind::automatic);

  CHECK(cases[1].name == "data/a.in");
  CHECK(cases[1].input.kind == Input::Kind::file);
  CHECK(cases[1].input.text == "data/a.in.gz");
  CHECK(cases[1].expected.kind == Expected::Kind::file);
  CHECK(cases[1].expected.text == "data/a.out");

  CHECK(cases[2].input.text == "[1, 2] \"}{\"");
  CHECK(cases[2].name == "#2 (\"[1i32, 2i32] [125u8, 123u8]\")");
  CHECK(cases[2].expected.text == "3");

  CHECK(cases[3].has_tag("compiled"));
  CHECK(cases[3].expected.kind == Expected::Kind::error);
  CHECK(cases[3].expected.text == "Index .* out");

  CHECK(cases[4].input.text == "");
  CHECK(cases[4].expected.kind == Expected::Kind::nothing);

  REQUIRE(spec.structures.size() == 2);
  CHECK(spec.structures[0].pipelines == Words{"gpu"});
  CHECK(spec.structures[0].counts[1] == std::pair<std::string, int>{"/SegMap/Loop", 2});
  CHECK(spec.structures[1].pipelines.empty());
  CHECK(spec.warnings == Words{"^$"});
}

TEST_CASE("test block: further blocks add cases") {
  const TestSpec spec = parsed("-- ==\n-- input { 1 }\ndef a = 1\n-- Other.\n-- ==\n-- entry: g\n-- input { 2 }\n");
  REQUIRE(spec.groups.size() == 2);
  CHECK(spec.groups[0].entries == Words{"main"});
  CHECK(spec.groups[1].entries == Words{"g"});
}

TEST_CASE("test block: properties, of any block") {
  const TestSpec spec = parsed(
      "-- ==\n-- tags { slow }\n-- property: p q\n-- property: r\ndef a = 1\n-- ==\n-- input { 1 }\ndef b = 1\n"
      "-- ==\n-- property: s\n");
  CHECK(spec.properties == Words{"p", "q", "r", "s"});
  CHECK(spec.groups.size() == 1);
}

TEST_CASE("test block: only `-- ==` begins one, and what nearly does is noted") {
  const TestSpec spec =
      parsed("--==\n-- error: x\ndef a = 1\n--  ==\n-- error: x\ndef b = 1\n-- == \n-- input { 1 }\n");
  CHECK(spec.unread == std::vector<std::uint32_t>{1, 4});
  CHECK(!spec.compile_error);
  CHECK(spec.groups.size() == 1);
}

TEST_CASE("test block: a program that must not compile") {
  CHECK(*parsed("-- ==\n-- error: \"a\".*consumed\n").compile_error == "\"a\".*consumed");
  CHECK(*parsed("-- ==\n-- error:\n").compile_error == "");
}

TEST_CASE("test block: names are cut at 50 characters, blanks of types are one") {
  const auto random = apl::suite::default_name({Input::Kind::random, "[10]f32\n   i32"}, 3);
  CHECK(random == "[10]f32 i32");
  const auto values = apl::suite::default_name({Input::Kind::values, std::string("[1,2,3,4,5,6,7,8,9,10,11,12]")}, 0);
  CHECK(values == "#0 (\"[1i32, 2i32, 3i32, 4i32, 5i32, 6i32, 7i32, 8i32, 9...\")");
}

TEST_CASE("test block: errors have their place") {
  struct Wrong {
    const char *text, *message;
    std::uint32_t line;
  };
  const Wrong cases[] = {
      {"-- ==\n-- input { 1\n", "`{` without its `}`", 2},
      {"\n-- ==\n-- foo bar { 1 }\n", "expected `input`", 3},
      {"-- ==\n-- input { 1 } auto input { 2 }\n", "expected `output` after `auto`", 2},
      {"-- ==\n-- error: x\n-- more\n", "nothing may follow", 3},
      {"-- ==\n-- error: x\ndef a = 1\n-- ==\n-- input { 1 }\n", "no other block", 5},
      {"-- ==\n-- property:\n", "expected the names of entries", 2},
      {"-- ==\n-- property: p\n-- input { 1 }\n", "expected `property:` or the end of the block", 3},
      {"-- ==\n-- structure { SegMap }\n", "expected a number after SegMap", 2},
  };
  for (const Wrong& wrong : cases) {
    CAPTURE(wrong.text);
    auto spec = parse_test_blocks(wrong.text);
    REQUIRE(!spec);
    CHECK(spec.error().message.find(wrong.message) != std::string::npos);
    CHECK(spec.error().location.line == wrong.line);
  }
}

TEST_CASE("pattern: extended regular expressions, found anywhere, `.` matches a newline") {
  CHECK(*apl::suite::matches("a.*consumed", "\"a\" was\nconsumed here"));
  CHECK(*apl::suite::matches("", ""));
  CHECK(*apl::suite::matches("Index \\[4\\] out", "Error: Index [4] out of bounds"));
  CHECK(*apl::suite::matches("^$", ""));
  CHECK(!*apl::suite::matches("^$", "warning"));
  CHECK(!apl::suite::matches("(", "x"));
}
