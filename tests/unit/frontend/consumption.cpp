// What programs may consume: each rule with a program that it refuses and one that it just lets pass.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/unit/frontend/support.h"

namespace apl::frontend {

TEST_CASE("what is consumed wrongly is refused, with the place and the variable") {
  struct Case {
    std::string text, place, message;
  };
  for (const Case& c : std::vector<Case>{
           // in-place updates
           {"def f (xs: *[]i32) = let ys = xs with [0] = 1 in xs", "consume.use-after-consume@1:50",
            "Using variable \"xs\", but this was consumed at 1:31"},
           {"def f (xs: *[]i32) = let ys = xs let xs[0] = 1 in ys", "consume.use-after-consume@1:51", "\"xs\""},
           {"def f (xs: []i32) = xs with [0] = 1", "consume.not-consumable@1:21",
            "Consuming variable \"xs\", which is not consumable."},
           {"def eat (xs: *[]i64) : i64 = xs[0] def f (ns: *[]i64) (xs: [eat ns]f32) = xs[0]",
            "consume.not-consumable@1:65", "Consuming variable \"ns\", which is not consumable."},
           {"def f (xs: *[][]i32) = xs with [0] = xs[1]", "consume.update-aliases@1:38",
            "Source array for in-place update \"xs\" might alias update value"},
           {"def f (r: {a: []i32}) = r with a[0] = 1", "consume.not-consumable@1:25", "\"r\""},
           {"def c: [2]i32 = [1, 2] def f (_: i32) = c with [0] = 1", "consume.not-consumable@1:41", "\"c\""},
           // arguments
           {"def eat (xs: *[]i32) = xs[0] def f (xs: *[]i32) = let a = eat xs in xs", "consume.use-after-consume@1:69",
            "consumed at 1:63"},
           {"def eat (xs: *[]i32) = xs[0] def f (xs: []i32) = eat xs", "consume.not-consumable@1:54", "\"xs\""},
           {"def eat (xs: *[]i32) (ys: []i32) = xs[0] def f (xs: *[]i32) = eat xs xs", "consume.argument-aliases@1:67",
            "aliases \"xs\" which is also aliased by other argument"},
           {"def eat (p: (*[]i32, *[]i32)) = 0i32 def f (xs: *[]i32) = eat (xs, xs)", "consume.self-aliasing-arg@1:63",
            "self-aliased"},
           {"def (+!) (xs: *[]i32) (x: i32) = xs with [0] = x def f (xs: []i32) = xs +! 1",
            "consume.not-consumable@1:70", "\"xs\""},
           {"def eat (xs: *[]i32) = xs[0] def f (xs: *[]i32) = let a = if xs[0] > 0 then eat xs else 1 in xs",
            "consume.use-after-consume@1:94", "\"xs\""},
           // results
           {"def f (xs: []i32): *[]i32 = xs", "consume.return-aliased@1:29",
            "aliased to \"xs\", which is not consumable."},
           {"def f (xs: [4][4]i32): *[4][4]i32 = transpose xs", "consume.return-aliased@1:37", "\"xs\""},
           {"def f (xs: *[]i32): (*[]i32, *[]i32) = (xs, xs)", "consume.unique-return-aliased@1:40",
            "aliased to some other component"},
           {"def f (n: i64): (*[]i64, []i64) = let a = iota n in (a, a)", "consume.unique-return-aliased@1:35", ""},
           {"def c: [2]i32 = [1, 2] def f (i: i32) = c", "consume.alias-free-variable@1:41",
            "aliases the free variable \"c\""},
           {"def c: *[2]i32 = [1, 2]", "consume.unique-constant@1:8",
            "A top-level constant cannot have a unique type."},
           {"def g 'a (x: a): a = x def f (xs: []i32): *[]i32 = g xs", "consume.return-aliased@1:52", "\"xs\""},
           // functions
           {"def f (xs: *[]i32) = map (\\i -> xs with [i] = 1) [0, 1]", "consume.not-consumable@1:33", "\"xs\""},
           {"def f (xs: *[]i32) = let g i = xs with [i] = 1 in g 0", "consume.not-consumable@1:32", "\"xs\""},
           {"def f (xs: *[]i32) = let g i = xs[i] let xs[0] = 1 in g 0", "consume.use-after-consume@1:55", "\"xs\""},
           {"def f (g: i32 -> []i32) = let xs = g 1 in xs with [0] = 2", "consume.not-consumable@1:43", "\"g\""},
           {"def set (xs: *[]i32) (i: i32) = xs with [i] = 0 def f (xs: *[]i32) = let g = set xs in g 0",
            "consume.contains-consumption@1:78", "contains consumption, which is not allowed"},
           {"def set (xs: *[]i32) (i: i32) = xs[i] def ap (g: i32 -> i32) = g 0 def f (xs: *[]i32) = ap (set xs)",
            "consume.consuming-argument@1:92", "contains consumption"},
           {"def eat (xs: *[]i32) = xs[0] def f (xss: [][]i32) = map eat xss", "consume.unify-consuming-param@1:57",
            "Cannot apply \"map\" to \"eat\" (invalid type). Parameters are incompatible regarding consuming"},
           {"module m: { val f : [1]i32 -> i32 -> i32 } = { def f (xs: *[1]i32) (x: i32) = xs[0] + x }",
            "consume.unify-consuming-param@1:1",
            "val f : [1]i32 -> i32 -> i32, but the module defines \"f\" as *[1]i32 -> i32 -> i32 (invalid type)"},
           {"def ap (g: () -> *[]i32) = g () with [0] = 1 def f (xs: []i32) = ap (\\() : []i32 -> xs)",
            "consume.unify-uniqueness@1:69", "incompatible uniqueness"},
           // loops
           {"def f (xs: []i32) = loop xs for i < 3 do xs with [i] = 0", "consume.not-consumable@1:26", "\"xs\""},
           {"def f (xs: *[]i32) = loop (ys: []i32) = xs for i < 3 do ys with [i] = 0", "consume.not-consumable@1:57",
            "\"ys\""},
           {"def f (xs: []i32) = loop (ys: *[]i32) = xs for i < 3 do ys", "consume.not-consumable@1:41", "\"xs\""},
           {"def f (xs: []i32) = loop (ys: *[]i32) = xs for i < 3 do ys with [i] = 0", "consume.not-consumable@1:41",
            "\"xs\""},
           {"def none = [] def eat (xs: *[]i64) = xs def f (_: bool) = eat none", "consume.not-consumable@1:63",
            "\"none\""},
           {"def f (xs: *[]i32) = loop ys = xs for i < 3 do ys with [i] = xs[0]", "consume.loop-uses-consumed@1:22",
            "Loop body uses variable \"xs\" (or an alias), but this is consumed by the initial loop argument."},
           {"def f (n: i64) (zs: [n]i64) = loop ys = iota n for i < 3 do let ys[0] = 1 in if i == 2 then zs else ys",
            "consume.consuming-loop-param-aliases@1:31", "consuming loop parameter \"ys\" aliases \"zs\""},
           {"def f (n: i64) = loop (a, b) = (iota n, iota n) for i < 3 do let a[0] = 1 let b[0] = 1 in (a, a)",
            "consume.loop-parameter-aliases-other@1:18", "aliases other consumed loop parameter"},
           {"def f (n: i64) = loop (a, b) = (iota n, iota n) for i < 3 do let b[0] = 1 in (b, b)",
            "consume.aliases-previously-returned@1:18", "aliases previously returned value"},
       }) {
    CAPTURE(c.text);
    const test::Outcome outcome = test::check_text(c.text);
    CHECK_FALSE(outcome.accepted);
    REQUIRE_FALSE(outcome.places().empty());
    CHECK(outcome.places().front() == c.place);
    CHECK(outcome.messages().find(c.message) != std::string::npos);
  }
}

TEST_CASE("what is consumed rightly is accepted") {
  for (const std::string& text : std::vector<std::string>{
           "def f (xs: *[]i32) = let ys = copy xs let xs[0] = 1 in (xs, ys)",
           "def f (xs: *[]i32): *[]i32 = xs with [0] = xs[1]",
           "def f (xs: *[][]i32) = let row = copy xs[1] in xs with [0] = row",
           "def f (r: {a: []i32, b: i32}) = r with b = 1",
           "def f (xs: *[]i32): (*[]i32, i32) = (xs, xs[0])",
           "def f (b: bool) (xs: *[]i32) = if b then xs with [0] = 1 else xs",
           "def f (xs: *[]i32) = loop xs for i < 3 do xs with [i] = 0",
           "def f (n: i64) = loop (a, b) = (iota n, iota n) for i < 3 do let a[0] = 1 in (a, b)",
           "def f (n: i64) = loop (a, b) = (iota n, iota n) for i < 3 do let a[0] = 1 let b[0] = 1 in (b, a)",
           "def f (xs: []i32) = loop ys = copy xs for i < 3 do ys with [i] = xs[0]",
           "def f (xs: [][]i32) = map (\\ys -> let zs = copy ys in zs with [0] = 1) xs",
           "def f (n: i64) = let xs = iota n let g i = xs[i] in (g 0, xs)",
           "def g (xs: *[]i32): []i32 = xs def f (xs: *[]i32): *[]i32 = copy (g xs)",
           "def f (xs: []i64) = loop (ys: *[]i64) = xs while length ys > 3 do iota (length ys - 1)",
           "def none = [] def eat [n] 'a (xs: *[n]a) = xs def f 'a (_: a) : []a = eat none",
           "module m : { type t val c : t val f : t -> ([2]i32, t) } = { type t = [2]i32 def c : t = [1, 2] def f (x: "
           "t) = "
           "(x, x) } def x = m.c def g (_: i32) = (m.f x).0",
           "module m : { type t [n] val c : t [2] val f [n] : t [n] -> [n]i32 } = { type t [n] = [n]i32 def c = [1i32, "
           "2] "
           "def f [n] (x: t [n]) = x } def g (_: i32) = m.f m.c",
           "def ap (g: *[]i32 -> i32) (xs: *[]i32) = g xs def f (xs: *[]i32) = ap (\\ys -> ys[0]) xs",
           "def c: [2]i32 = [1, 2] def f (_: i32) = copy c with [0] = 1",
           "def f (n: i64): (*[]i64, *[]i64) = let a = iota n in (a, copy a)",
           "def f (n: i64) (m: i64): *[][]i64 = replicate n (iota m)",
       }) {
    CAPTURE(text);
    const test::Outcome outcome = test::check_text(text);
    CHECK(outcome.messages() == "");
    CHECK(outcome.accepted);
  }
}

TEST_CASE("consumption errors are told once, with the place of the consumption") {
  const test::Outcome outcome = test::check_text(
      "def f (xs: *[]i32) =\n  let xs[0] = 1\n  in loop ys = xs for i < 3 do ys\n"
      "def g (xs: *[]i32) =\n  let ys = xs with [0] = 1\n  in (xs, xs)");
  REQUIRE(outcome.places() ==
          std::vector<std::string>{"consume.use-after-consume@6:7", "consume.use-after-consume@6:11"});
  CHECK(outcome.diagnostics[0].notes.front().location.line == 5);
}

TEST_CASE("long chains of aliases and of tuples take little time") {
  std::string chain = "def f (xs: *[]i32) =\n";
  for (int k = 0; k < 3000; ++k)
    chain += "  let a" + std::to_string(k) + " = " + (k == 0 ? "xs" : "a" + std::to_string(k - 1)) + "\n";
  CHECK(test::check_text(chain + "  in a2999").accepted);
  std::string doubling = "def f (xs: []i32) =\n";
  for (int k = 0; k < 40; ++k) {
    const std::string name = k == 0 ? "xs" : "t" + std::to_string(k - 1);
    doubling += "  let t" + std::to_string(k) + " = (" + name + ", " + name + ")\n";
  }
  test::check_text(doubling + "  in t39.0");
}

}  // namespace apl::frontend
