#include "frontend/syntax/parser.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/unit/frontend/support.h"

namespace apl::frontend {

namespace {

struct Parsed {
  Program program;
  std::vector<Diagnostic> diagnostics;
};

Parsed parse(const std::string& text) {
  Parsed result;
  result.program = parse_program(text, [&](const Diagnostic& d) { result.diagnostics.push_back(d); });
  return result;
}

// How an expression groups, with parentheses around every operation inside another.
std::string grouped(const std::string& expression) {
  const Parsed parsed = parse("def f = " + expression);
  if (!parsed.diagnostics.empty()) return parsed.diagnostics.front().message;
  return to_text(*std::get<Definition>(parsed.program.declarations.at(0).node).body, Parentheses::all);
}

const Definition& first(const Parsed& parsed) { return std::get<Definition>(parsed.program.declarations.at(0).node); }

template <class Node>
const Node& body(const Parsed& parsed) {
  return std::get<Node>(first(parsed).body->node);
}

}  // namespace

TEST_CASE("operators bind by the table of precedences") {
  struct Case {
    std::string text, grouped;
  };
  for (const Case& c : std::vector<Case>{
           {"a + b * c", "a + (b * c)"},
           {"a * b + c", "(a * b) + c"},
           {"a - b - c", "(a - b) - c"},
           {"a ** b ** c", "(a ** b) ** c"},
           {"a * b ** c", "a * (b ** c)"},
           {"a / b % c // d %% e", "(((a / b) % c) // d) %% e"},
           {"a << b + c", "a << (b + c)"},
           {"a & b << c", "a & (b << c)"},
           {"a | b ^ c & d", "((a | b) ^ c) & d"},
           {"a == b & c", "a == (b & c)"},
           {"a < b == c", "(a < b) == c"},
           {"a && b == c", "a && (b == c)"},
           {"a || b && c", "a || (b && c)"},
           {"a <| b || c", "a <| (b || c)"},
           {"a <| b <| c", "a <| (b <| c)"},
           {"a |> b |> c", "(a |> b) |> c"},
           {"a |> b <| c", "a |> (b <| c)"},
           {"f <| g <| 2 * x", "f <| (g <| (2 * x))"},
           {"xs |> f + 1", "xs |> (f + 1)"},
           {"a `f` b |> c", "a f (b |> c)"},
           {"a `f` b `g` c", "(a f b) g c"},
           {"a +^ b * c", "a +^ (b * c)"},
           {"a ++ b == c", "(a ++ b) == c"},
           {"a >>= b + c", "a >>= (b + c)"},
           {"a i32.+ b i32.* c", "a i32.+ (b i32.* c)"},
           {"f x y + g z", "f x y + g z"},
           {"f (g x) a[0]", "f (g x) a[...]"},
           {"-x ** y", "-x ** y"},
           {"- f x + y", "-(f x) + y"},
           {"!a && b", "!a && b"},
           {"f r.x.0", "f r.x.0"},
       }) {
    CAPTURE(c.text);
    const std::string got = grouped(c.text);
    CHECK(got == c.grouped);
  }
}

TEST_CASE("unary minus binds like application") {
  const Parsed parsed = parse("def f = -x ** y");
  const auto& power = body<Infix>(parsed);
  CHECK(power.op.text == "**");
  CHECK(std::holds_alternative<Negate>(power.x->node));
}

TEST_CASE("let, if, loop and lambda extend as far right as they can") {
  const Parsed let = parse("def f = let x = 1 in x + 2");
  CHECK(std::holds_alternative<LetExpr>(first(let).body->node));
  const Parsed sum = parse("def f = 1 + if c then 2 else 3 + 4");
  CHECK(std::holds_alternative<IfExpr>(body<Infix>(sum).y->node));
  const Parsed call = parse("def f = map \\x -> x + 1");
  CHECK(std::holds_alternative<LambdaExpr>(body<Call>(call).arguments.at(0)->node));
  const Parsed parsed = parse("def f = loop acc = 0 for i < n do acc + i");
  const auto& loop = body<LoopExpr>(parsed);
  CHECK(std::holds_alternative<ForLess>(loop.form));
  CHECK(std::holds_alternative<Infix>(loop.body->node));
}

TEST_CASE("a chain of lets is one node, 'in' between them may be missing") {
  const Parsed parsed = parse("def f = let a = 1 let b = 2 in let c = 3 in a");
  REQUIRE(parsed.diagnostics.empty());
  const auto& let = body<LetExpr>(parsed);
  CHECK(let.bindings.size() == 2);
  CHECK(std::holds_alternative<LetExpr>(let.body->node));
}

TEST_CASE("sections") {
  for (const char* text : {"(+)", "(-)", "(+ 1)", "(1 +)", "(1 -)", "(i32.*)", "(`f` x)", "(x `f`)", "(a + b *)"}) {
    CAPTURE(text);
    const Parsed parsed = parse(std::string("def f = ") + text);
    REQUIRE(parsed.diagnostics.empty());
    CHECK(std::holds_alternative<Section>(first(parsed).body->node));
  }
  const Parsed negation = parse("def f = (-x)");
  CHECK(std::holds_alternative<Negate>(first(negation).body->node));
  for (const char* text : {"(.x.0)", "(.[0])", "(.a[0].b)"}) {
    const Parsed parsed = parse(std::string("def f = ") + text);
    CHECK(std::holds_alternative<AccessSection>(first(parsed).body->node));
  }
}

TEST_CASE("definitions of every form") {
  for (const char* text : {
           "def f [n] 't (xs: [n]t) (g: t -> t) : [n]t = map g xs",
           "entry main (x: i32, y: i32) : (i32, i32) = (y, x)",
           "let f x = x",
           "def (+^) (x: i32) (y: i32) = x",
           "def x +^ y = x",
           "def (x: i32) +^ (y: i32) : i32 = x",
           "def x `op` y = x",
           "type t = (i32, [3]f32)",
           "#[noinline] #[a(b, c(d))] def f = 1",
           "def f ({x, y = (a, b)}: {x: i32, y: (i32, i32)}) = a",
           "def f = \\x (y: i32) : i32 -> x",
           "def f = xs with [0] = 1 with [1] = 2",
           "def f = xs[1:n:2, ::-1, 0, :]",
           "def f = 0..2...10",
           "def f = let xs[0] = 1 in xs",
           "def f = let g [n] (xs: [n]i32) = n in g",
           "def f = (x : i32, y :> [3]i32,)",
           "def f = assert (x == 1) x",
           "def f = #[unsafe] #[sequential] map f xs",
           "def f = loop (a, b) = (0, 1) while a < b do (b, a)",
           "def f = loop acc for x in xs do acc",
           "def f : *[n]i32 = x",
           "def f (g: (n: i64) -> [n]i32) = 1",
           "def f = f32.(x + y)",
           "def f = {a = 1, b}",
       }) {
    CAPTURE(text);
    const Parsed parsed = parse(text);
    CHECK((parsed.diagnostics.empty() ? "" : parsed.diagnostics.front().message) == "");
    CHECK(parsed.program.declarations.size() == 1);
  }
}

TEST_CASE("several errors are reported in one run") {
  const Parsed parsed = parse(
      "def a = 1 +\n"
      "def b = (2\n"
      "def c = 3\n"
      "def d x y\n"
      "  let z = 1 in z\n"
      "def e = let x = 1\n"
      "def f = 4\n");
  std::vector<std::string> messages;
  for (const Diagnostic& d : parsed.diagnostics) messages.push_back(d.message);
  CHECK(messages == std::vector<std::string>{
                        "Unexpected token: 'def', expected an expression",
                        "Unexpected token: 'def', expected ')'",
                        "Unexpected token: 'let', expected '='",
                        "Unexpected \"def\" - missing \"in\"?",
                    });
  CHECK(parsed.diagnostics[0].location.line == 2);
  CHECK(parsed.diagnostics[2].location == Location{5, 3, 5, 5});
  // What is right is still there: c, f, and d, whose body was read all the same.
  CHECK(parsed.program.declarations.size() == 3);
}

TEST_CASE("errors name the place and what was expected") {
  struct Case {
    std::string text, place, message;
  };
  for (const Case& c : std::vector<Case>{
           {"def = 1", "syntax.error@1:5", "Unexpected token: '=', expected a name"},
           {"def f (x = 1", "syntax.error@1:10", "Unexpected token: '=', expected ')'"},
           {"foo", "syntax.error@1:1", "Unexpected token: 'foo', expected a declaration"},
           {"def f = if x then y", "syntax.error@1:20", "Unexpected end of file, expected 'else'"},
           {"def f = a @ b", "syntax.error@1:11", "this character means nothing here"},
           {"def x ! y = 1", "syntax.error@1:7", "'!' is a prefix operator and cannot be used as infix operator"},
           {"def (a, b) = 1", "syntax.error@1:5", "Cannot bind patterns at top level; bind a single name instead"},
           {"def f x = match x", "syntax.error@1:18", "Unexpected end of file, expected 'case'"},
           {"module m = def", "syntax.error@1:12", "Unexpected token: 'def', expected a module"},
           {"module type t = { val x }", "syntax.error@1:25", "Unexpected token: '}', expected ':'"},
           {"import lib", "syntax.error@1:8", "Unexpected token: 'lib', expected the path of a file in quotes"},
           {"type t = #a | b", "syntax.error@1:15", "Unexpected token: 'b', expected a constructor"},
       }) {
    CAPTURE(c.text);
    const test::Outcome outcome = test::check_text(c.text);
    REQUIRE(!outcome.diagnostics.empty());
    CHECK(outcome.places().front() == c.place);
    CHECK(outcome.diagnostics.front().message == c.message);
  }
}

TEST_CASE("nesting is limited, wherever it is") {
  for (const char* open :
       {"(", "[", "{x=", "f(", "\\x -> ", "if a then b else ", "-", "!", "let x = ", "x[", "(x, ", "#[a] "}) {
    CAPTURE(open);
    std::string text = "def f = ";
    for (int k = 0; k < 20000; ++k) text += open;
    CHECK_FALSE(test::check_text(text).accepted);
  }
  std::string types = "def f (x: ";
  for (int k = 0; k < 20000; ++k) types += "[";
  CHECK_FALSE(test::check_text(types).accepted);
  std::string sum = "def f = 1";
  for (int k = 0; k < 20000; ++k) sum += " + 1";
  CHECK_FALSE(test::check_text(sum).accepted);
}

}  // namespace apl::frontend
