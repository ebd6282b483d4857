// Rules of the language that are no matter of types alone, and what is only worth a warning.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "ir/print.h"
#include "tests/unit/frontend/support.h"

namespace apl::frontend {

TEST_CASE("what the language forbids is refused") {
  struct Case {
    std::string text, place, message;
  };
  for (const Case& c : std::vector<Case>{
           {"def (&&) (x: bool) (y: bool) = x", "type.may-not-be-redefined@1:5", "may not be redefined"},
           {"def (||) (x: bool) (y: bool) = x", "type.may-not-be-redefined@1:5", "||"},
           {"def x: u8 = -1", "type.mismatch@1:14", "Literal -1 out of bounds for inferred type u8."},
           {"def x: i64 = 18446744073709551616", "type.mismatch@1:14",
            "Literal 18446744073709551616 out of bounds for inferred type i64."},
           {"def x: u64 = -0x1_0000_0000_0000_0000", "type.mismatch@1:15", "out of bounds for inferred type u64."},
           {"def x: f16 = 100000000000000000000", "type.mismatch@1:14", "out of bounds for inferred type f16."},
           {"type^ row = [2]i32 type t = [3]row", "type.mismatch@1:29", "\"row\" is declared lifted"},
           {"type~ row = [2]i32 type t = [3]row", "type.mismatch@1:29", "\"row\" is declared size-lifted"},
           {"type~ t = #a ([]i32) | #b ([]i32) def f (xs: []i32) = let x: t = #a xs in 1i32", "type.ambiguous@1:59",
            "Ambiguous size of this explicit type ascription"},
           {"def f (x: i32) = let ap g y = g y in ap (ap (i32.+) x) x", "type.mismatch@1:42",
            "Cannot apply \"ap\" to functions with results of several types"},
           {"def f (n: i64) : i64 -> i64 = \\x -> f (n - 1) x", "type.mismatch@1:5",
            "The result of the recursive function \"f\" is not first-order"},
           {"def f (g: i64 -> i64) (n: i64) : i64 = f (\\x -> g x) n", "type.mismatch@1:42",
            "which must be passed unchanged"},
           {"def f (g: i64 -> i64) (n: i64) : i64 = let h = f g in h n", "type.mismatch@1:48",
            "is not fully saturated: 1 of 2 arguments are given"},
           {"def f (g: i64 -> i64) (n: i64) : i64 = let h = f in h g n", "type.mismatch@1:48",
            "has a higher-order parameter: it may only be applied"},
           {"def f (n: i64) : i64 = if n == 0 then 1 else n * f (n - 1)", "unsupported.construct@1:50",
            "the recursive function \"f\" cannot be compiled yet"},
           {"module m : { type~ t val c : t } = { type~ t = [1]i32 def c : t = [1] } def f (_: i32) = copy m.c",
            "type.mismatch@1:95", "the abstract type m.t is lifted: its sizes may vary"},
           {"type^ t = []bool -> bool", "type.ambiguous@1:11", "anonymous size not used constructively"},
           {"type^ t = {f: []bool -> bool, n: []i32}", "type.ambiguous@1:11", "anonymous size not used constructively"},
           {"type t [n] = i32", "type.ambiguous@1:8", "Size parameter \"[n]\" of type \"t\" is unused"},
           {"type^ t = (n: i64) -> (n: i64) -> i32", "syntax.error@1:24", "\"n\" also bound at 1:12"},
           {"def f = let [n] f: f32 -> [n]f32 = \\x -> [x] in f 1", "type.ambiguous@1:13",
            "Cannot bind [n] as it is never used as the size of a concrete (non-function) value."},
           {"type opt 't = #some t | #none def f b (x: i64) = if b then #some (iota x) else #none :> opt ([2]i64)",
            "type.ambiguous@1:80", "Ambiguous size of what this size coercion is applied to"},
           {"def f (c: bool) : #a = if c then #a else 0", "type.mismatch@1:42", "Cannot unify"},
           {"def f (n: f64) (a: [n]i32) = a", "type.mismatch@1:21", "Size \"n\" does not have expected type"},
           {"def f (g: i64 -> i64) = g {a = 1i64}", "type.mismatch@1:27", "with type that must be a record"},
           {"type t = [2](i32 -> i32)", "type.mismatch@1:10",
            "Cannot create array with elements of lifted type i32 -> i32"},
           {"module m = \\(p: {type^ a}) -> {def v : []p.a = []}", "type.mismatch@1:40", "might contain function"},
           {"def x: i8 = 128", "type.mismatch@1:13", "Literal 128 out of bounds for inferred type i8."},
           {"def f (n: i64, b: bool): [n]i64 = iota n", "type.size-mismatch@1:26", "refers to the name \"n\""},
           {"def f (_x: i32) = _x", "type.unknown-name@1:19", "variables prefixed with underscore"},
           {"def f {_x = y} = y + 1i32", "type.mismatch@1:8", "Did you mean \"x=_\"?"},
           {"def f (x: i32) = {a = x, a = 2}", "syntax.error@1:26", "Duplicate fields in record"},
           {"type t = {a: i32, a: i32}", "syntax.error@1:19", "Duplicate fields in record type"},
           {"type t = i32 type t = i64", "syntax.error@1:19", "Duplicate definition of type \"t\""},
           {"type t = i32 -> i32", "type.mismatch@1:10", "Non-lifted type abbreviations may not contain functions."},
           {"type t = {a: []i32}", "type.mismatch@1:14", "an array of \"t\" needs a size"},
           {"entry f [n] (xs: [n + 1]i32) = xs[0]", "type.ambiguous@1:7", "only used non-constructively"},
           {"def f (r: {a: i32}): {b: i32} = r", "type.mismatch@1:33", "unshared fields: a, b."},
           {"def f (r: (i32, {a: i64})): (i32, {a: i32}) = r", "type.mismatch@1:47", "record field \"1.a\""},
           {"def f (r: {a: i32}) = r with a = true", "type.mismatch@1:34",
            "record field \"a\" does not have expected type but type bool: expected i32, got bool"},
           {"def f (g: i32 -> i32) = g true", "type.mismatch@1:27", "Cannot apply \"g\" to \"true\""},
           {"def f (x: i32) (b: bool) = let g y = y in (g x, g b)", "type.mismatch@1:51",
            "Cannot apply \"g\" to \"b\""},
           {"def f [n] (xs: [n]i32) = let g 'a (f: a -> a) (x: a) = f x in g (\\ys -> ys ++ ys) xs",
            "type.size-mismatch@1:65", "Occurs check"},
           {"def g 'a 'b (f: a -> b) (x: a) = f x def f (n: i64) = g iota n", "type.size-mismatch@1:57",
            "Existential size \"n\""},
           {"def f : (i64, i64) -> ?[n][m].(b: bool) -> *[n][m]bool =\n  \\(n, m) (b: bool) -> replicate n (replicate "
            "m b)",
            "type.size-mismatch@2:3", "Existential size \"n\""},
           {"def f (x: i32) =\n  let y = x\n\ndef g = 1i32", "syntax.error@4:1", "Unexpected \"def\""},
           {"def g (k: i64): [k]i64 = iota k def f (n: i64) = map g (iota n)", "type.size-mismatch@1:54",
            "instantiated with a type containing anonymous sizes"},
           {"def g (k: i64): []i64 = iota k def f (n: i64) = map g (iota n)", "type.size-mismatch@1:53",
            "instantiated with a type containing anonymous sizes"},
           {"def f (n: i64) = let g = \\(k: i64) -> iota k in map g (iota n)", "type.size-mismatch@1:53",
            "Existential size \"k\""},
           {"def g (k: i64): [k]i64 = iota k def f [n] (h: (i64 -> [n]i64) -> i64) = h g", "type.size-mismatch@1:75",
            "Sizes \"n\" and \"k\" do not match"},
           {"def f x = let g 'b (y: b) = if true then y else x in g", "type.mismatch@1:49", "The type \"b\" would"},
           {"def f x = let g 'b (y: b) = (y, x) let h = g x in let k 'c (z: c) = if true then x else z in k",
            "type.mismatch@1:89", "The type \"c\" would"},
           {"def f (n: i64) = (filter (> 0) >-> length) (iota n)", "type.size-mismatch@1:19",
            "Existential size would appear in function parameter of return type"},
           {"def f (g: i64 -> []i32) (h: []i32 -> i32) = g >-> h", "type.size-mismatch@1:45", "\">->\" to \"g\""},
           {"def p '^a '^b (f: a -> b) x = (f x, f x) def g n = let (x, y) = p iota n in zip x y",
            "type.size-mismatch@1:83", "do not match"},
           {"def p '~b (f: i64 -> b) = [f 1]", "type.mismatch@1:27", "b is size-lifted and cannot be an array element"},
           {"def p 'b (f: i64 -> b) = f 1 def q '~b (f: i64 -> b) = p f", "type.mismatch@1:58",
            "b is size-lifted and cannot be an array element"},
           {"def p '~b (x: b) = x def f = p (+ 1i32)", "type.mismatch@1:32", "is functional"},
           {"def f x y = x == y", "type.mismatch@1:15", "does not support equality"},
           {"def f x y = x == (1i32, y)", "type.mismatch@1:15", "does not support equality"},
           {"def f = (!=)", "type.mismatch@1:10", "does not support equality"},
           {"def f x y = not (id x == id y)", "type.mismatch@1:23", "does not support equality"},
           {"def f (x: (i32, i32)) = let (a, 1) = x in a", "type.mismatch@1:29", "Refutable pattern not allowed here"},
           {"def f = \\((true, -1i8, 'a') : (bool, i8, i32)) -> 1i32", "type.mismatch@1:11",
            "Refutable pattern not allowed here. Unmatched cases: (false, _, _)"},
           {"entry f [n] (g: [n]i64 -> i64) = g (iota n)", "type.mismatch@1:7", "[n] only used non-constructively"},
           {"entry f (x: i32) = (x, (+ x))", "type.mismatch@1:7", "\"f\" gives a function"},
           {"def f [n] (x: i32) = x", "type.ambiguous@1:7", "Size [n] unused in pattern"},
       }) {
    CAPTURE(c.text);
    const test::Outcome outcome = test::check_text(c.text);
    CHECK_FALSE(outcome.accepted);
    REQUIRE_FALSE(outcome.places().empty());
    CHECK(outcome.places().front() == c.place);
    CHECK(outcome.messages().find(c.message) != std::string::npos);
  }
}

TEST_CASE("what looks like the forbidden is accepted") {
  for (const std::string& text : std::vector<std::string>{
           "def x: i8 = -128 def y: u8 = -0 def z: i64 = -9223372036854775808",
           "def f (n: i64) (b: bool): [n]i64 = iota n",
           "def f (n: i64, b: bool) = iota n",
           "def f [n] (xs: [n + 1]i32) = xs[0] entry g [n] (xs: [n]i32) (ys: [n + 1]i32) = xs",
           "def g (a: i64) (b: i64) = tabulate_2d a b (\\i j -> i + j) "
           "def f (n: i64) (b: bool) = let ap h = h n n in length (if b then ap g else ap (\\k _ -> replicate k [k]))",
           "type~ t = #a ([]i32) | #b def f (xs: []i32) = let x: t = #a xs in match x case #a _ -> 1i32 case #b -> 2",
           "def f (x: i32) (b: bool) = let g 'a (y: a) = y in (g x, g b)",
           "def f (xs: []i32) (ys: []i32) = let g [n] (zs: [n]i32) = n in (g xs, g ys)",
           "type t [n] = [n]i32",
           "type t [n] = [2 ** n]i64 def f (n: i64) : t [n] = iota (2 ** n) def g = length (f 3)",
           "type^ t [n] = {a: [n]i32, f: [n]i32 -> i32} type~ u = {a: []i32, b: ?[k].[k]bool}",
           "type^ f = bool -> []bool",
           "def f (k: (n: i64) -> [n]i32 -> i32) = k 2 [1, 2] def g = let h _ _ = 3i32 in f h",
           "type^ r 'p = {s: (k: i64) -> [k]p -> p} def f : r () = let s _ _ = () in {s}",
           "def g (k: i64): [k]i64 = iota k def f (h: (n: i64) -> [n]i64) = h 3 def e = f g",
           "def g (k: i64): [k]i64 = iota k def f (n: i64) = map (\\i -> length (g i)) (iota n)",
           "def g (k: i64): [k]i64 = iota k def f (h: i64 -> []i64) = h 3 def e = f g",
           "def g (k: i64) (_: i64): [k]i64 = iota k def f 'a (h: i64 -> a) = h 2 def e = f (g 3)",
           "def eq (x: i32) y = x == y def f x y = x + y == 3i32",
           "def f (xs: []i32) = let g x y = x == y in map2 g xs xs",
           "def f [n] (xs: [n]i32) = let g 'b (y: b) = (y, xs) in g xs",
       }) {
    CAPTURE(text);
    const test::Outcome outcome = test::check_text(text);
    for (const Diagnostic& diagnostic : outcome.diagnostics) CHECK(diagnostic.code == Code::unsupported_construct);
  }
}

TEST_CASE("errors come in the order of lines, and none is a consequence of another") {
  struct Case {
    std::string text;
    std::vector<std::string> places;
  };
  for (const Case& c : std::vector<Case>{
           {"def b = 1i32 + true\ndef a = 1 + (\ndef c = 2i32 + false",
            {"type.mismatch@1:16", "syntax.error@3:1", "type.mismatch@3:16"}},
           {"type t = []i32\ndef f (x: t) = 1 + 2 3\n", {"type.mismatch@1:10", "type.mismatch@2:20"}},
           {"module m = { def f = 1i32 + true }\ndef g = m.f + m.g", {"type.mismatch@1:29", "type.unknown-name@2:15"}},
           {"module m (p: { type t }) = { def f (x: p.t) = x + 1 }\nmodule n = m i32\ndef g = n.f 1i32",
            {"type.mismatch@1:47"}},
           {"module m (p: { val x : i32 }) = { def f = p.x }\nmodule n = m { def y = 1i32 }\ndef g = n.f",
            {"type.mismatch@2:12"}},
           {"open import \"no such file\"\ndef g = y + 1i32", {"type.unknown-name@1:6"}},
           {"def f (x: [m]i32) = x", {"type.unknown-name@1:12"}},
           {"def f (x: i32): [m + 1]i32 = rep x", {"type.unknown-name@1:18"}},
           {"def f (x: [true]i32) = x", {"type.mismatch@1:12"}},
           {"def f 't (x: t) (y: t) : t = (x + 1) * (x + y)", {"type.mismatch@1:31", "type.mismatch@1:41"}},
           {"def f (xs: []f32) = f32.sum xs + f64.sum xs", {"type.mismatch@1:42"}},
           {"def f (xs: []i32) = map (\\r -> r.a) (filter true xs)", {"type.mismatch@1:45"}},
           {"def f (x: i32) = let [n] (xs: [n + m]i32) = [x] in xs", {"type.unknown-name@1:36"}},
       }) {
    CAPTURE(c.text);
    const test::Outcome outcome = test::check_text(c.text);
    CHECK_FALSE(outcome.accepted);
    CHECK(outcome.places() == c.places);
  }
}

TEST_CASE("a size is needed only after it is computed") {
  const test::Outcome section = test::check_text("def f (n: i64) = ([1] ++) <| map i32.i64 (2..4...n)");
  CHECK(section.places() == std::vector<std::string>{"type.causality-check@1:18"});
  const test::Outcome empty =
      test::check_text("def f (n: i64) = let a = [] let b = [2..4...n] in if n > 2 then a[0] == b[0] else true");
  CHECK(empty.places().front() == "type.causality-check@1:73");
  CHECK(empty.messages().find("Causality check") != std::string::npos);
  const test::Outcome operand = test::check_text("def f xs (mat: [][]i32) = map (filter (> 0) xs ++) mat");
  CHECK(operand.places() == std::vector<std::string>{"type.causality-check@1:31"});
  const test::Outcome loop =
      test::check_text("def f : []i32 = ([1] ++) <| loop (xs: []i32) = [] for i < 9 do xs ++ xs");
  CHECK(loop.places() == std::vector<std::string>{"type.causality-check@1:17"});
  CHECK(test::check_text("def f (n: i64) = let xs = 2..4...n in map2 (+) xs xs").accepted);
  CHECK(test::check_text("def f (n: i64) = map (+ 1) (2..4...n)").accepted);
}

TEST_CASE("warnings have a place and a code, and refuse nothing") {
  struct Case {
    std::string text;
    std::vector<std::string> places;
  };
  for (const Case& c : std::vector<Case>{
           {"def f (x: *i32) = x", {"warning.no-effect@1:11"}},
           {"def f (n: i64) = iota (let m = n in m)", {"warning.no-effect@1:23"}},
           {"def f (n: i64) (xs: []i32) = xs[:let m = n in m]", {"warning.no-effect@1:34"}},
           {"def f (n: i64) = iota (n / 2)", {}},
           {"def f (x: *{a: i32, b: []i32}) = x", {}},
           {"def f (xs: []i32) (ys: []i32) = length xs == length ys", {}},
           {"def f [n] (xs: [n]i32) (ys: [n]i32) = xs == ys", {"warning.deprecated@1:42"}},
           {"def f x y = x * y", {"warning.ambiguous@1:5"}},
           {"def f (x: i64) = x * 2", {}},
           {"def f (n: i32) = 1..1..<n", {"warning.empty-range@1:18"}},
           {"def f (xs: []i32) (i: i64) = #[warn(safety_checks)] (xs[i] + 1)", {"warning.safety-check@1:54"}},
           {"def g (xs: []i32) (i: i64) = xs[i] def f (xs: []i32) = #[warn(safety_checks)] map (g xs)",
            {"warning.safety-check@1:30"}},
           {"def f (xs: []i32) = #[warn(safety_checks)] map (+ 1) xs", {}},
           {"def f (xs: []i32) (i: i64) = #[warn(safety_checks)] #[unsafe] xs[i]", {}},
           {"def f (n: i64) = #[unroll] loop x = 0i32 for i < n do x + 1", {"warning.unroll@1:28"}},
           {"def f (n: i64) = #[unroll] loop x = 0i32 for i < 4i64 do x + 1", {}},
           {"def f (xs: []i32) = #[no_tilling] map (+ 1) xs", {"warning.attribute-unknown@1:23"}},
           {"#[sprase(xs)] entry f (xs: []i32) = map (+ 1) xs", {"warning.attribute-unknown@1:3"}},
           {"#[mylab_skew(1, a(b))] def f (x: i32) = x", {"warning.attribute-unknown@1:3"}},
           {"def f (x: i32) = #[inline] #[interleaved] x",
            {"warning.attribute-ignored@1:20", "warning.attribute-ignored@1:30"}},
           {"def f (x: i64) = #[param] #[param(a, b)] x",
            {"warning.attribute-ignored@1:20", "warning.attribute-ignored@1:29"}},
           {"#[sequential] #[constant(x)] entry f (x: i32) = x",
            {"warning.attribute-ignored@1:3", "warning.attribute-ignored@1:17"}},
           {"def f (x: i32) = #[incremental_flattening(only_inner)] #[opaque] x", {}},
           {"#[trace] def f (x: i32) = #[trace(x)] #[break] x",
            {"warning.attribute-ignored@1:3", "warning.no-effect@1:29", "warning.attribute-ignored@1:41"}},
           // Host code traces what an entry or a constant does, outside of what may be a kernel's function.
           {"entry f (xs: []i32) = map trace xs", {"warning.no-effect@1:27"}},
           {"entry f (xs: []i32) = map (\\x -> #[trace] x) xs", {"warning.no-effect@1:36"}},
           {"entry f (x: i32) = let g (y: i32) = trace y in g x", {"warning.no-effect@1:37"}},
           {"entry f (x: i32) = #[trace(tag)] (trace x + 1)", {}},
           {"def c = trace 3i32 entry f (x: i32) = x + c", {}},
           {"def trace (x: i32) = x def f (xs: []i32) = map trace xs", {}},
           {"#[noinline] #[warn(safety_checks)] def f (x: i32) = #[noinline] #[sequential_inner] x", {}},
       }) {
    CAPTURE(c.text);
    const test::Outcome outcome = test::check_text(c.text);
    CHECK(outcome.accepted);
    CHECK(outcome.places() == c.places);
    for (const Diagnostic& diagnostic : outcome.diagnostics) CHECK(diagnostic.severity == Severity::warning);
  }
}

TEST_CASE("assertions are told as they are written") {
  const test::Outcome outcome = test::compile_text("def main (x: i32) = assert (x % 2 != 0 && (x + 1) * 2 > 3) x");
  REQUIRE(outcome.module);
  CHECK(print(*outcome.module).find("x % 2 != 0 && (x + 1) * 2 > 3") != std::string::npos);
}

}  // namespace apl::frontend
