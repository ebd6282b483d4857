// Printer and parser are inverse.
#include <doctest/doctest.h>

#include <set>
#include <string>

#include "ir/parse.h"
#include "ir/print.h"
#include "ir/walk.h"
#include "tests/testing.h"
#include "tests/unit/ir/texts.h"

namespace {

using namespace apl;

constexpr PrintOptions kLocations{.locations = true};

Module parsed(std::string_view text) {
  auto module = parse_module(text, "test.aplir");
  if (!module) FAIL(render(module.error(), "test.aplir", text));
  return *module;
}

std::string without_locations(std::string text) {
  for (std::size_t at; (at = text.find(" @")) != std::string::npos;) {
    const std::size_t digit = text[at + 2] - '0';
    if (digit > 9) {
      text.replace(at, 2, " &");  // a memory binding: hidden from this loop
      continue;
    }
    text.erase(at, text.find_first_not_of("0123456789:-", at + 2) - at);
    for (const std::string_view from = " from "; text.compare(at, from.size(), from) == 0;)
      text.erase(at, text.find_first_not_of("0123456789:-", at + from.size()) - at);
  }
  for (char& c : text)
    if (c == '&') c = '@';
  return text;
}

}  // namespace

TEST_CASE("printed texts parse and print to themselves, byte for byte") {
  for (std::string_view text : test_texts::kAll) {
    const Module module = parsed(text);
    const std::string printed = print(module, kLocations);
    CHECK_MESSAGE(printed == text, testing::text_diff(text, printed));
    const std::string plain = print(module);
    CHECK(plain == without_locations(std::string(text)));
    CHECK(print(parsed(plain)) == plain);
    const auto different = testing::difference(module, parsed(plain));
    CHECK_MESSAGE(!different, different.value_or(""));
  }
}

TEST_CASE("the texts have every operation") {
  std::set<std::size_t> seen;
  for (std::string_view text : test_texts::kAll)
    for (const FunctionPtr& f : parsed(text).functions)
      for_each_stm(*f->body, [&](const Stm& stm) { seen.insert(stm.op.index()); });
  CHECK(seen.size() == std::variant_size_v<AnyOp> - 1);  // all but std::monostate
}

TEST_CASE("every scalar operation has its text") {
  std::string text = "stage soac\n\nfun f [] (a : i32) : {} = {\n";
  int count = 0;
  const auto add = [&](std::string_view name, std::string_view arguments) {
    text += "  let {x" + std::to_string(count++) + " : i32} = " + std::string(name) + std::string(arguments) + "\n";
  };
#define APL_UNARY(name, text, domain) add(text, "(a)");
#define APL_BINARY(name, text, domain) add(text, "(a, a)");
#define APL_COMPARE(name, text, domain) add(text, "(a, a)");
#include "ir/ops.def"
  text += "  in {}\n}\n";
  CHECK(print(parsed(text)) == text);
}

TEST_CASE("blanks, comments and one-line texts change nothing") {
  const std::string_view text = test_texts::kNested;
  std::string loose;
  for (char c : text) {
    if (c == '\n') {
      loose += " -- a comment { \" \r\n\t";
    } else {
      loose += c;
    }
  }
  CHECK(print(parsed(loose), kLocations) == text);
}

TEST_CASE("names are hints: clashes get numbers, and names in disjoint scopes may be equal") {
  const Module module = parsed(R"ir(
    stage soac
    fun f [n] (xs : [n]i32) : {[n]i32, [n]i32} = {
      let {ys : [n]i32} = map(i < n, {xs}, \{x : i32} -> { let {y : i32} = neg(x) in {y} })
      let {zs : [n]i32} = map(i < n, {xs}, \{x : i32} -> { let {zs : i32} = neg(x) in {zs} })
      in {ys, zs}
    })ir");
  CHECK(print(module) == R"ir(stage soac

fun f [n] (xs : [n]i32) : {[n]i32, [n]i32} = {
  let {ys : [n]i32} =
    map(i < n, {xs},
      \{x : i32} -> { let {y : i32} = neg(x) in {y} })
  let {zs : [n]i32} =
    map(i_1 < n, {xs},
      \{x_1 : i32} -> { let {zs_1 : i32} = neg(x_1) in {zs_1} })
  in {ys, zs}
}
)ir");
}

TEST_CASE("any hint becomes a name") {
  Function function;
  function.name = "f";
  const std::vector<std::string> hints = {"",  "+^",  "let", "x",  "x",    "x_1", "x_1", "x_7_7", "1a",
                                          "é", "f32", "a b", "x'", "copy", "in",  "_1",  "_"};
  for (const std::string& hint : hints)
    function.params.push_back(function.values.add(Type::scalar(ScalarType::i32), hint));
  function.body = make_body({}, {});
  const std::string text = print(function);
  CHECK(text ==
        "fun f [] (x : i32, __ : i32, let_1 : i32, x_1 : i32, x_2 : i32, x_3 : i32, x_4 : i32, x_7_7 : i32, "
        "_1a : i32, ___1 : i32, f32_1 : i32, a_b : i32, x' : i32, copy : i32, in_1 : i32, _1 : i32, _ : i32) : {} = {\n"
        "  in {}\n}\n");
  CHECK(print(parsed("stage soac\n\n" + text)) == "stage soac\n\n" + text);
}

TEST_CASE("the order of value numbers does not show in the text") {
  // The same function, once with the numbers of m and n exchanged.
  std::string texts[2];
  for (int swap : {0, 1}) {
    Function f;
    f.name = "f";
    Value first = f.values.add(Type::scalar(ScalarType::i64), swap ? "n" : "m");
    Value second = f.values.add(Type::scalar(ScalarType::i64), swap ? "m" : "n");
    const Value m = swap ? second : first;
    const Value n = swap ? first : second;
    f.sizes = {m, n};
    f.results = {Type::array(ScalarType::f32, {Poly(m) * n + Poly(n) * n + poly_min(m, n) + ceil_div(m, n) + m})};
    f.body = make_body({}, {});
    texts[swap] = print(f);
  }
  CHECK(texts[0] == texts[1]);
}

TEST_CASE("pieces are printed with the function's names") {
  const Module module = parsed(test_texts::kKernel);
  const Function& f = *module.functions[0];
  CHECK(print(f.type(f.params[1]), f) == "[q][n]f32");
  CHECK(print(Poly(f.sizes[0]) * f.sizes[1] - 1, f) == "m*n - 1");
  CHECK(print(Operand(f.params[0]), f) == "A");
  CHECK(print(f.body->stms[0], f) == "let {T : i64} = get_size(\"mm.T\", reg_tile_size, 2)");
  CHECK(print(Operand(Value{999}), f) == "?999");
  CHECK(print(Poly(Value{999}) + 1, f) == "?999 + 1");
}

TEST_CASE("what has no text yet is printed all the same") {
  Function f;
  f.name = "f";
  const Value x = f.values.add(Type::scalar(ScalarType::i32), "x");
  CHECK(print(Stm{{x}, std::monostate{}, {}, {}, {}}, f) == "let {x : i32} = nothing");
  CHECK(print(Stm{{Value{7}}, Loop{{x}, {}, {}, 0, nullptr}, {}, {}, {}}, f).find("loop {x : i32 = } while x {") !=
        std::string::npos);
  Screma screma;
  screma.widths = {Poly(3)};
  CHECK(print(Stm{{}, screma, {}, {}, {}}, f).find("map(? < 3, {},") != std::string::npos);
}
