// Texts that do not parse are refused at the right location, and no bytes at all crash or hang the parser.
#include <doctest/doctest.h>

#include <chrono>
#include <random>
#include <string>

#include "ir/parse.h"
#include "ir/print.h"
#include "tests/unit/ir/texts.h"

namespace {

using namespace apl;

// A function with this statement, on line 3 from column 3.
std::string with_statement(std::string_view statement) {
  return "stage soac\nfun f [n] (A : [n]i32, x : i32) : {} = {\n  " + std::string(statement) + "\n  in {}\n}\n";
}

struct Refused {
  std::string text;
  Location place;
  std::string message;
};

}  // namespace

TEST_CASE("errors name the place and what was expected") {
  const std::vector<Refused> cases = {
      {"", {1, 1, 1, 1}, "expected `stage` and the stage: the first line of a module, found the end of the text"},
      {"stage gpu", {1, 7, 1, 9}, "expected a stage: `soac`, `kernel` or `memory`, found `gpu`"},
      {"stage soac\nlet", {2, 1, 2, 3}, "expected `fun` or `entry`, found `let`"},
      {"stage soac entry f (A : sparse(shape, foo) \"t\") : {}",
       {1, 39, 1, 41},
       "expected an array of a sparse parameter, as `shape`, `values`, `row_start` or `column`, found `foo`"},
      {"stage soac entry f (A : \"t\") : {sparse(A) \"t\"}",
       {1, 40, 1, 40},
       "expected a sparse parameter of the entry, found `A`"},
      {"stage soac of a", {1, 15, 1, 15}, "expected the name of the source file as a string, found `a`"},
      {"stage soac\n  $", {2, 3, 2, 3}, "unexpected character `$`"},
      {"stage soac\n\x80", {2, 1, 2, 1}, "unexpected byte 0x80"},
      {"stage soac of \"a\n\"", {1, 15, 1, 16}, "this string has no end on its line"},
      {"stage soac of \"\\q\"", {1, 16, 1, 17}, "unknown escape; known are \\\" \\\\ \\n \\t \\xHH"},
      {"stage soac fun f [n n]", {1, 21, 1, 21}, "expected `]` or `,`, found `n`"},
      {"stage soac fun f [n, n]", {1, 22, 1, 22}, "`n` is already bound here"},
      {"stage soac fun f [in]", {1, 19, 1, 20}, "`in` is a word of the language, not a name"},
      {"stage soac fun f [] (x i32)", {1, 24, 1, 26}, "expected `:` and a type, found `i32`"},
      {"stage soac fun f [] (x : i33)", {1, 26, 1, 28}, "expected a scalar type, found `i33`"},
      {"stage soac fun f [] (x : [n]i32)", {1, 27, 1, 27}, "`n` is not bound here"},
      {with_statement("let {y : i32} = z"), {3, 19, 3, 19}, "`z` is not bound here"},
      {with_statement("let {y : i32} = y"), {3, 19, 3, 19}, "`y` is not bound here"},
      {with_statement("let {x : i32} = x"), {3, 8, 3, 8}, "`x` is already bound here"},
      {with_statement("let {y : i32} = foo(x)"), {3, 19, 3, 21}, "there is no operation `foo`"},
      {with_statement("let {y : i32} = add(x)"), {3, 19, 3, 21}, "`add` takes 2 operands, not 1"},
      {with_statement("let {y : i32} = add(x, 1)"),
       {3, 26, 3, 26},
       "a constant needs the suffix of its type, such as `3i64`"},
      {with_statement("let {y : i32} = 1.x"), {3, 19, 3, 21}, "`1.x` is not a constant of any type"},
      {with_statement("let {y : i8} = 300i8"), {3, 18, 3, 22}, "`300i8` is not a constant of any type"},
      {with_statement("let {y : i32} = A[9223372036854775808]"), {3, 21, 3, 39}, "this number is too large"},
      {with_statement("let {y : i32} = A[1i64]"), {3, 21, 3, 24}, "expected an integer without suffix, found `1i64`"},
      {with_statement("let {y : i32} = A[mod(n, 2)]"),
       {3, 21, 3, 23},
       "`mod` is no function of sizes; these are ceil_div, floor_div, min, max"},
      {with_statement("let {y : i32} = A[0"), {4, 3, 4, 4}, "expected `]` or `,`, found `in`"},
      {with_statement("let {y : i32} = get_size(\"a\", big, 1)"),
       {3, 33, 3, 35},
       "expected tile_size, reg_tile_size, thread_block_size, grid_size, threshold or thread_count, found `big`"},
      {with_statement("return {}"),
       {3, 3, 3, 8},
       "expected `in` and the results: only a segmap ends with `return`, found `return`"},
      {with_statement("x"),
       {3, 3, 3, 3},
       "expected `let` or the end of the statements (`in`, in a kernel `return`), found `x`"},
      {with_statement("let {y : i32} = loop {z : i32 = x} while x { in {z} }"),
       {3, 44, 3, 44},
       "a while loop runs as long as its first parameter is true, so that one stands here"},
      {with_statement("let {y : i32} = if true { in {x} } in {y}"), {3, 38, 3, 39}, "expected `else`, found `in`"},
      {with_statement("let {y : [1]i32} = map(i < 1, {}, \\{} -> { in {1i32} }, {mul})"),
       {3, 60, 3, 62},
       "expected `\\` for a function, such as `\\{x : f32} -> { in {x} }`, found `mul`"},
      {with_statement("let {S : [n]i32} = shared(i32, {offset: 0; shape: [n]; strides: []})"),
       {3, 34, 3, 34},
       "this layout has 1 sizes and 0 strides"},
  };
  for (const Refused& refused : cases) {
    const auto module = parse_module(refused.text, "a.aplir");
    REQUIRE_MESSAGE(!module, refused.text);
    CHECK(module.error().message == refused.message);
    const Location& place = module.error().location;
    CHECK_MESSAGE(place == refused.place, refused.message << " at " << place.line << ":" << place.column << "-"
                                                          << place.end_line << ":" << place.end_column);
    CHECK(module.error().code == Code::ir_syntax);
    CHECK(module.error().file == "a.aplir");
  }
}

TEST_CASE("deep nesting is an error, not an exhausted stack") {
  const auto nested = [](std::string_view open, int depth) {
    std::string text = "let {y : i64} = size(";
    for (int k = 0; k < depth; ++k) text += open;
    return with_statement(text);
  };
  for (std::string_view open : {"(", "min(1, ", "-("}) {
    const auto module = parse_module(nested(open, 100000), "a");
    REQUIRE(!module);
    CHECK(module.error().message.find("nested more than") == 0);
  }
  std::string blocks;
  for (int k = 0; k < 100000; ++k) blocks += "let {} = if true {";
  const auto module = parse_module(with_statement(blocks), "a");
  REQUIRE(!module);
  CHECK(module.error().message.find("nested more than") == 0);
}

TEST_CASE("polynomials that explode when multiplied out are an error") {
  std::string square = "let {y : i64} = size((n + 1)";
  std::string sums = "let {y : i64} = size((A + x + n)";
  std::string opaque = "min(n, 3)";
  for (int k = 0; k < 1000; ++k) square += "*(n + 1)";
  for (int k = 0; k < 40; ++k) sums += "*(A + x + n + min(A, x))";
  for (int k = 0; k < 60; ++k) opaque.insert(0, "min((").append(" + 1)*(n + x), A)");
  for (const std::string& text : {square + ")", sums + ")", "let {y : i64} = size(" + opaque + ")"}) {
    const auto module = parse_module(with_statement(text), "a");
    REQUIRE(!module);
    CHECK(module.error().message == "this polynomial is too large");
  }
}

TEST_CASE("a thousand mutations of texts never crash, and what still parses prints and parses again") {
  const std::uint64_t seed = 20240611;
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  int accepted = 0;
  for (int round = 0; round < 1000; ++round) {
    std::string text(test_texts::kAll[below(test_texts::kAll.size())]);
    const std::size_t mutations = 1 + below(2);
    for (std::size_t k = 0; k < mutations; ++k) {
      const std::size_t at = below(text.size());
      switch (below(7)) {
        case 0: text[at] = static_cast<char>(below(256)); break;
        case 1: text.erase(at, 1 + below(8)); break;
        case 2: text.insert(at, text.substr(below(text.size()), 1 + below(12))); break;
        case 3: text[at] = "{}()[]\"\\-<@*0z"[below(14)]; break;
        case 4: text.resize(at + 1); break;
        default:
          // Another number: this one often still parses.
          if (const auto digit = text.find_first_of("0123456789", at); digit != std::string::npos)
            text[digit] = static_cast<char>('0' + below(10));
      }
    }
    const auto module = parse_module(text, "mutated");
    if (!module) {
      CHECK(module.error().location.line > 0);
      continue;
    }
    ++accepted;
    const std::string printed = print(*module, {.locations = true});
    const auto again = parse_module(printed, "again");
    REQUIRE_MESSAGE(again, again.error().message << "\n" << printed);
    CHECK(print(*again, {.locations = true}) == printed);
  }
  CHECK(accepted > 50);  // else this says nothing about the printer
}
