#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "frontend/syntax/parser.h"
#include "frontend/types/checked.h"
#include "tests/unit/frontend/support.h"

namespace apl::frontend {

namespace {

// The inferred type of the last definition, or the first message.
std::string type_of(const std::string& text) {
  std::string error;
  const DiagnosticSink sink = [&](const Diagnostic& d) {
    if (error.empty()) error = d.message;
  };
  auto checked = check_program(parse_program(text, sink), sink);
  if (!checked) return "error: " + error;
  return checked->store.to_text(checked->globals.back().type);
}

}  // namespace

TEST_CASE("types are inferred and generalised at definitions") {
  struct Case {
    std::string text, type;
  };
  for (const Case& c : std::vector<Case>{
           {"def f x = x", "t0 -> t0"},
           {"def f x y = (y, x)", "t0 -> t1 -> (t1, t0)"},
           {"def f x = x + 1", "i32 -> i32"},
           {"def f x = x + 1.0", "f64 -> f64"},
           {"def f (x: f32) = x + 1", "f32 -> f32"},
           {"def f x = x + 1u8", "u8 -> u8"},
           {"def f = 2 ** 3", "i32"},
           {"def f = length []", "i64"},
           {"def f (x: bool) y = x == y", "bool -> bool -> bool"},
           {"def f g x = g (g x)", "(t0 -> t0) -> t0 -> t0"},
           {"def f 'a (x: a) (g: a -> i32) = g x", "a -> (a -> i32) -> i32"},
           {"def dot xs ys = f32.sum (map2 (*) xs ys)", "[d0]f32 -> [d0]f32 -> f32"},
           {"def dot = \\xs ys -> reduce (+) 0 (map2 (*) xs ys)", "[d0]i32 -> [d0]i32 -> i32"},
           {"def f [n] (xs: [n]i32) = n", "[n]i32 -> i64"},
           {"def f (n: i64) = iota n", "(n: i64) -> [n]i64"},
           {"def f n x = replicate (n + 1) (x, x)", "(n: i64) -> t0 -> [n + 1](t0, t0)"},
           {"def f n = n |> iota", "(n: i64) -> [n]i64"},
           {"def f [n] [m] (xs: [n][m]f32) = transpose xs", "[n][m]f32 -> [m][n]f32"},
           {"def f [n] [m] (xs: [n][m]f32) = flatten xs", "[n][m]f32 -> [n * m]f32"},
           {"def f [n] [m] (xs: [n * m]f32) (ys: [n][m]i32) = unflatten xs :> [n][m]f32",
            "[n * m]f32 -> [n][m]i32 -> [n][m]f32"},
           {"def f = map (+ 1)", "[d0]i32 -> [d0]i32"},
           {"def f = zip [1, 2] [true, false]", "[2](i32, bool)"},
           {"def f = unzip (zip [1, 2] [true, false])", "([2]i32, [2]bool)"},
           {"def f (p: (i32, f32)) = p.1", "(i32, f32) -> f32"},
           {"def f = {b = 1, a = true}", "{a: bool, b: i32}"},
           {"def f = \\r -> r.x + (r : {x: i32}).x", "{x: i32} -> i32"},
           {"def f xs = map (\\(x, y) -> x && y) xs", "[d0](bool, bool) -> [d0]bool"},
           {"def f x = if x then 1 else 2i64", "bool -> i64"},
           {"def f n = loop acc = 1 for i < n do acc * i", "i32 -> i32"},
           {"def f (n: i64) = loop (a, b) = (0f32, n) while b > 0 do (a + 1, b - 1)", "i64 -> (f32, i64)"},
           {"def f (xs: [3]i32) = xs[0] + xs[1u8]", "[3]i32 -> i32"},
           {"def f [n] (xs: [n][4]i32) = xs[1:3, 0]", "[n][4]i32 -> [2]i32"},
           {"def f (n: i64) = let m = n * 2 in iota m", "(n: i64) -> [n * 2]i64"},
           {"def f = f32.(sum [sqrt 2, pi])", "f32"},
           {"def f = f32.i64 3 + 2 |> i64.f32", "i64"},
           {"def (+^) (x: f32) y = x - y def f a b = a +^ b", "f32 -> f32 -> f32"},
           {"type t = (i32, [3]f32) def f (x: t) = x.1", "(i32, [3]f32) -> [3]f32"},
           {"def n : i64 = 3 def f (xs: [n]i32) = xs", "[n]i32 -> [n]i32"},
           {"def f = let swap 'a 'b (a: a, b: b) = (b, a) in (swap (1, true), swap (2f32, 3u8))",
            "((bool, i32), (u8, f32))"},
           {"def f = tabulate_2d 2 3 (\\i j -> i * j)", "[2][3]i64"},
           {"def f [n] (xs: [n]i32) = take 2 xs", "[n]i32 -> [2]i32"},
           {"def f = 0..<5", "[5]i32"},
           {"def f (n: i64) = 1...n", "(n: i64) -> [n]i64"},
           {"def f = \"ab\"", "[2]u8"},
       }) {
    CAPTURE(c.text);
    CHECK(type_of(c.text) == c.type);
  }
}

TEST_CASE("sizes that branches, loops, lets and updates decide are unknown outside, and no more than that") {
  struct Case {
    std::string text, type;
  };
  for (const Case& c : std::vector<Case>{
           {"def f [n] [m] (c: bool) (xs: [n]i32) (ys: [m]i32) = if c then xs else ys",
            "bool -> [n]i32 -> [m]i32 -> [this 'if']i32"},
           {"def f [n] (c: bool) (xs: [n]i32) (ys: [n]i32) = if c then xs else ys",
            "bool -> [n]i32 -> [n]i32 -> [n]i32"},
           {"def f c = if c then let n = 2 in (iota (n + 1), 1) else ([0, 1, 2], 2)", "bool -> ([3]i64, i32)"},
           // That a branch has a size does not make it the other's.
           {"def f [n] (c: bool) (xs: [n]i32) = if c then xs else [1, 2]", "bool -> [n]i32 -> [this 'if']i32"},
           // A size that nothing says yet is resolved by the other branch.
           {"def f (c: bool) (xs: []i32) = if c then xs else [1, 2]", "bool -> [d0]i32 -> [this 'if']i32"},
           {"def f (c: bool, xs: []i32, ys: []i32) = if c then xs else ys",
            "(bool, [d0]i32, [d1]i32) -> [this 'if']i32"},
           {"def f (xs: []i32) (ys: []i32) = loop a = xs for i < 3i32 do if a[0] > i then ys else a",
            "[d0]i32 -> [d1]i32 -> [this loop]i32"},
           {"def f [n] (p: {a: [n]i32, b: []i32}) = loop a = p.a for i < 3i32 do if a[0] > i then p.b else a",
            "{a: [n]i32, b: [d1]i32} -> [this loop]i32"},
           // Something else needs the sizes to be one.
           {"def f (xs: []i32) (ys: []i32) = loop a = map2 (+) xs ys for i < 3i32 do if a[0] > i then ys else a",
            "[d0]i32 -> [d0]i32 -> [d0]i32"},
           {"def f (c: bool) = loop x = [1, 2, 3] for _i < 3i32 do if c then map (+ 1) x else [1]",
            "bool -> [this loop]i32"},
           {"def f (n: i32) = loop x = replicate 4 1 for i < n do if i > 2 then x else [1, 2, 3, 4]", "i32 -> [4]i32"},
           {"def f (xs: [0]i32) = loop ys = xs for _i < 3i32 do ys ++ ys", "[0]i32 -> [this loop]i32"},
           {"def f [n] (xs: [n]i32) = loop xs for i < 3i64 do xs with [0] = 1", "[n]i32 -> [n]i32"},
           {"def f [n] (xs: [n]i32) = loop xs for i < 3i64 do xs ++ xs", "[n]i32 -> [this loop]i32"},
           {"def f [n] [m] (xs: [n]i32) (ys: [m]i32) = loop (xs, ys) for i < 3i64 do (ys, xs)",
            "[n]i32 -> [m]i32 -> ([this loop]i32, [this loop]i32)"},
           {"def f [n] (xs: [n]i32) (ys: [n]i32) = loop (xs, ys) for i < 3i64 do (ys, xs)",
            "[n]i32 -> [n]i32 -> ([n]i32, [n]i32)"},
           {"def f (xs: []i32) = loop ys = [] for x in xs do xs", "[d0]i32 -> [this loop]i32"},
           {"def f (k: i64) = loop (n, xs: [n]i64) = (1, [0]) for i < k do (n + 1, iota (n + 1))",
            "i64 -> (i64, [this loop]i64)"},
           {"def f xs = let [n] (ys: [n]i32) = xs in (n, ys)", "[d0]i32 -> (i64, [d0]i32)"},
           {"def f (k: i64) (xs: *[]i32) (ys: []i32) = xs with [1:k] = ys", "i64 -> [d0]i32 -> [d1]i32 -> [d0]i32"},
           {"def f [n] [m] (r: {a: [n]i32, b: bool}) (ys: [m]i32) = r with a = ys",
            "{a: [n]i32, b: bool} -> [m]i32 -> {a: [m]i32, b: bool}"},
           {"def f (g: i64 -> []i64) = length (g 1) def h = f (\\n -> iota (n + 1)) + f (\\n -> [n])", "i64"},
           {"def f [n] (xs: [n]i32) = xs :> []i32", "[n]i32 -> [n]i32"},
           {"def f [n] : [n]i64 = 0..1..<n", "[n]i64"},
           {"def f (n: i64) (m: i64) (b: bool) = replicate n (replicate m b) def g = uncurry f",
            "(i64, i64) -> bool -> [this result][this result]bool"},
       }) {
    CAPTURE(c.text);
    CHECK(type_of(c.text) == c.type);
  }
}

TEST_CASE("the redomap of a contraction may be a parameter") {
  CHECK(type_of("def tc 't_x 't_y 't_z [a] [b] [q] (redomap: [q]t_x -> [q]t_y -> t_z)\n"
                "       (X: [a][q]t_x) (Y: [b][q]t_y) : [a][b]t_z =\n"
                "  map (\\xs -> map (\\ys -> redomap xs ys) Y) X\n"
                "def f = tc (\\xs ys -> map2 (*) xs ys |> f32.sum)") == "[d0][d1]f32 -> [d2][d1]f32 -> [d0][d2]f32");
}

TEST_CASE("what is wrong is refused with its code and place") {
  struct Case {
    std::string text, place, message;
  };
  for (const Case& c : std::vector<Case>{
           {"def f = x", "type.unknown-name@1:9", "Unknown name \"x\""},
           {"def f (x: foo) = 1", "type.unknown-name@1:11", "Unknown type \"foo\""},
           {"def f = f32.foo 1", "type.unknown-name@1:9",
            "Unknown name \"f32.foo\": module \"f32\" does not define it"},
           {"def f = 1 + true", "type.mismatch@1:13",
            "Cannot apply \"+\" to \"true\": argument 2 does not have expected type"},
           {"def f (x: i32) : f32 = x", "type.mismatch@1:24", "expected f32, got i32"},
           {"def f (x: i32) = f32.sqrt x", "type.mismatch@1:27", "expected f32, got i32"},
           {"def f = 1 2", "type.mismatch@1:9",
            "Cannot apply expression as function, as it has non-function type: number"},
           {"def g (x: i32) (y: i32) = x def f = g 1 2 3", "type.mismatch@1:37",
            "Cannot apply \"g\" to 3 arguments: function accepts only 2 arguments"},
           {"def f = if 1 then 2 else 3", "type.mismatch@1:12", "condition of 'if'"},
           {"def f = if true then 1 else false", "type.mismatch@1:29", "Branches differ in type"},
           {"def f b = (if b then i32.abs else i32.sgn) 1", "type.mismatch@1:22", "may not be of function type"},
           {"def f xs = map (\\x -> \\y -> x + y) xs", "type.mismatch@1:16", "functional"},
           {"def f x = x x", "type.mismatch@1:13", "Occurs"},
           {"def f 't (x: t) = x == x", "type.mismatch@1:19", "equality"},
           {"def f 't (x: t) = x + 1", "type.mismatch@1:19", "expected"},
           {"def f 'a 'b (x: a) (y: b) : (a, b) = (y, x)", "type.mismatch@1:38",
            "Function body does not have expected type"},
           {"def f (x: i32) (x: i32) = x", "syntax.error@1:17", "\"x\" is also bound"},
           {"def f 'a 'a (x: a) = x", "syntax.error@1:10", "also bound"},
           {"def f = {a = 1}.b", "type.mismatch@1:9", "has no field \"b\""},
           {"def f r = r.x", "type.ambiguous@1:11", "ambiguous"},
           {"def f (xs: []i32) = let [n] ys = xs in n", "type.ambiguous@1:25", "Size [n] unused"},
           {"def f = let [n] [m] (xss: [n][m]i64) = [] in (n, m)", "type.ambiguous@1:17", "Ambiguous size \"m\""},
           {"def f : i32 = 1000000000000", "type.mismatch@1:15", "out of bounds"},
           {"def f : f32 = 1e40", "type.mismatch@1:15", "out of bounds"},
           {"def main 't (x: t) = x", "type.mismatch@1:5", "Entry point functions may not be polymorphic"},
           {"entry e (g: i32 -> i32) = g 1", "type.mismatch@1:7", "function type"},
           {"entry e [n] (x: i32) : [n]i32 = replicate n x", "type.ambiguous@1:7", "Entry point"},
           {"def f [n] (x: i32) = x", "type.ambiguous@1:7", "Size [n] unused in pattern"},
           {"def f = f32.sum ???", "warning.ambiguous@1:17", "Ambiguous size arising from use as function argument"},
           {"def f [n] (g: [n]i64 -> i64) : i64 = n def h = f (\\xs -> xs[0])", "type.ambiguous@1:48",
            "Ambiguous size"},
           {"def f (xs: []i32, b: bool) = map (\\i : [b]i32 -> replicate 3 i) xs", "type.mismatch@1:41", "bool"},
           {"def f = loop x = 1 for i < true do x", "type.mismatch@1:28", "bound of a loop"},
           {"def f x = x[0, 1, true]", "type.mismatch@1:19", "An index must be an integer"},
       }) {
    CAPTURE(c.text);
    const test::Outcome outcome = test::check_text(c.text);
    REQUIRE(!outcome.diagnostics.empty());
    CHECK(outcome.places().front().starts_with(c.place));
    CHECK(outcome.messages().find(c.message) != std::string::npos);
  }
}

TEST_CASE("sizes that do not match are refused, with notes where each comes from") {
  struct Case {
    std::string text, place, message, note;
  };
  for (const Case& c : std::vector<Case>{
           {"def f [n] [m] (xs: [n]i32) (ys: [m]i32) = zip xs ys", "type.size-mismatch@1:50",
            "Sizes \"n\" and \"m\" do not match", "size \"m\" is declared here"},
           {"def f [n] (xs: [n]i32) : [n]i64 = iota (length xs)", "type.size-mismatch@1:35",
            "Sizes \"n\" and \"length xs\" do not match", "\"xs\" is bound here"},
           {"def f [n] [m] (g: [n + m]i32 -> i64) (xs: [n]i32) (ys: [m]i32) = g (xs ++ ys)\n"
            "def g (_: [7]i32) = 7i64\ndef main = f g",
            "type.size-mismatch@3:14", "expected [?n + ?m]i32 -> i64, got [7]i32 -> i64",
            "nothing says yet what the size parameter \"n\" of this is"},
           {"def f (xs: [4]f32) (ys: [5]f32) = map2 (*) xs ys", "type.size-mismatch@1:47",
            "Sizes \"4\" and \"5\" do not match", ""},
           {"def f [n] (A: [n][n]f32) (B: [n][3]f32) = map2 (map2 (+)) A B", "type.size-mismatch@1:61",
            "Sizes \"n\" and \"3\" do not match", "size \"n\" is declared here"},
           {"def main (b: bool) (n: i64) (m: i64) : [2]i64 = if b then iota n else iota m", "type.size-mismatch@1:49",
            "expected [2]i64, got [this 'if']i64",
            "known only once this is evaluated: the branches have the types [n]i64 and [m]i64"},
           {"def main n : [n]bool = loop (arr: [n]bool) = replicate n true for i < 10 do replicate 3 true",
            "type.size-mismatch@1:77", "Loop body does not have expected type", "size \"n\""},
           {"def main [n] [m] (xs: [n]i32) (ys: [m]i32) = map2 (+) (if true then xs else ys) xs",
            "type.size-mismatch@1:81", "Sizes \"this 'if'\" and \"n\" do not match",
            "the branches have the types [n]i32 and [m]i32"},
           {"def main [m] (xs: [m]i32) (n: i64) = loop (ys: [n]i32) = xs for i < 3 do replicate n ys[0]",
            "type.size-mismatch@1:44", "Initial loop values do not have expected type: expected [n]i32, got [m]i32",
            ""},
           {"def main [n] (xs: [n]i32) (ys: [n]i32) = loop (xs, ys) for i < 3 do (xs, map2 (+) xs ys ++ ys)",
            "type.size-mismatch@1:69", "Loop body does not have expected type", "an iteration may change it"},
           {"def f [n] (xs: [n]f32) (fs: [n - 1 + 1]f32) : [n - 1 + 1]f32 = fs\n"
            "def g (xs: []f32) (fs: []f32) = loop xs for i < 1 do f xs fs",
            "type.size-mismatch@2:38", "Loop-variant size", ""},
           {"def main n m = let [k] (xss: [k][k]i64) = replicate n (iota m) in k", "type.size-mismatch@1:25",
            "Sizes \"n\" and \"m\" do not match", ""},
           {"def main (n: i64) : [n]i64 = 1..2..<n + 1", "type.size-mismatch@1:30", "\"this range\"",
            "it is the unknown length of range 1..2..<n + 1"},
           {"def f xs n = zip xs (iota n)", "type.size-mismatch@1:21", "scope-violation", "size \"n\""},
           {"def main (xs: []i32) = let n = 2 + 3 in zip (iota n) xs", "type.size-mismatch@1:54", "\"n\"", ""},
           {"def f xs = map iota xs", "type.size-mismatch@1:16", "scope-violation", ""},
           {"def f xs = map (\\n -> iota n) xs", "type.size-mismatch@1:16", "scope-violation", ""},
           {"def f [n] [m] (xs: [n][m]f32) : [m][n]f32 = xs", "type.size-mismatch@1:45", "do not match", ""},
       }) {
    CAPTURE(c.text);
    const test::Outcome outcome = test::check_text(c.text);
    REQUIRE(!outcome.diagnostics.empty());
    CHECK(outcome.places().front().starts_with(c.place));
    CHECK(outcome.messages().find(c.message) != std::string::npos);
    CHECK(outcome.messages().find(c.note) != std::string::npos);
  }
}

TEST_CASE("several type errors are reported in one run, each once") {
  const test::Outcome outcome = test::check_text(
      "def a (x: i32) : f32 = x\n"
      "def b = foo 1\n"
      "def c = a true + b\n"
      "def d [n] [m] (xs: [n]i32) (ys: [m]i32) = map2 (+) xs ys\n");
  CHECK(outcome.places() == std::vector<std::string>{"type.mismatch@1:24", "type.unknown-name@2:9",
                                                     "type.mismatch@3:11", "type.size-mismatch@4:55"});
}

TEST_CASE("a definition that does not parse causes no errors elsewhere") {
  const test::Outcome outcome = test::check_text("def a = (1\ndef b = a + 1\ndef c = true + 1\n");
  CHECK(outcome.places() == std::vector<std::string>{"syntax.error@2:1", "type.mismatch@3:9"});
}

TEST_CASE("every signature of the prelude parses and every member has a use") {
  // A use of each name with too few arguments type checks where its signature does.
#define APL_BUILTIN(id, name, arity, constraint, signature) CHECK(parse_signature(signature).type != nullptr);
#define APL_MEMBER(id, name, arity, domain, signature) CHECK(parse_signature(signature).type != nullptr);
#include "frontend/prelude.def"
  for (const char* module : {"i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "f32", "f64"}) {
    const std::string m(module);
    const std::string text = "def f (x: " + m + ") = (" + m + ".max x (" + m + ".abs x), " + m + ".sum [x, x], " + m +
                             ".highest, " + m + ".i32 3, i64." + m + " x)";
    CAPTURE(text);
    CHECK(test::check_text(text).messages() == "");
  }
}

}  // namespace apl::frontend
