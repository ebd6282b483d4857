#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "ir/host_value.h"
#include "ir/interpret.h"
#include "ir/print.h"
#include "tests/testing.h"
#include "tests/unit/frontend/support.h"

namespace apl::frontend {

namespace {

using test::lowered;

bool contains(const Module& module, const std::string& text) {
  const std::string printed = print(module);
  if (printed.find(text) != std::string::npos) return true;
  MESSAGE(printed);
  return false;
}

}  // namespace

#define CHECK_STRUCTURE(module, expectation)                               \
  do {                                                                     \
    const auto verdict = apl::testing::has_structure(module, expectation); \
    CHECK_MESSAGE(verdict.holds, verdict.explanation);                     \
  } while (false)

TEST_CASE("nested maps stay nested, and a redomap is a map and a reduction that fusion will join") {
  const Module module = lowered(
      "entry mm1 [a] [b] [q] (X: [a][q]f32) (Y: [q][b]f32) : [a][b]f32 =\n"
      "  map (\\xs -> map (\\ys -> map2 (*) xs ys |> f32.sum) (transpose Y)) X\n");
  CHECK_STRUCTURE(module, "/map 1  /map/map 1  /map/map/map 1  /map/map/reduce 1  /map/rearrange 1");
  CHECK(contains(module, "fun mm1 [a, b, q] (X : [a][q]f32, Y : [q][b]f32) : {[a][b]f32}"));
  CHECK(contains(module, "rearrange(Y, (1, 0))"));
  CHECK(apl::testing::round_trips(module).holds);
}

TEST_CASE("no entry gives or takes an array of more than 32 dims") {
  std::string text = "x";
  for (int d = 0; d < 32; ++d) text = "replicate 1 (" + text + ")";
  CHECK(test::compile_text("entry e (x: i32) = " + text).module.has_value());
  const test::Outcome refused = test::compile_text("entry e (x: i32) = replicate 1 (" + text + ")");
  CHECK_FALSE(refused.module.has_value());
  CHECK(refused.places() == std::vector<std::string>{"unsupported.construct@1:1"});
  CHECK(refused.messages().find("an array of 33 dims at the border of an entry (32 at most)") != std::string::npos);
}

TEST_CASE("sizes are checked where they are made, unless they are known") {
  const auto checks = [](const std::string& text) { return apl::testing::count_structure(lowered(text), "assert"); };
  CHECK(checks("entry e (n: i64) = replicate n 1i32") == 1);
  CHECK(checks("entry e (n: i64) = map2 (+) (tabulate n id) (replicate n 1)") == 1);
  CHECK(checks("entry e [n] (xs: [n]i64) = map2 (+) xs (replicate n 1)") == 0);
  CHECK(checks("entry e (n: i64) (xs: [n]i64) = tabulate_2d n (2 * n + 1) (+)") == 0);
  CHECK(checks("entry e [n] (xs: [n]i64) = map (\\i -> i64.sum (tabulate i id)) (indices xs)") == 0);
  CHECK(checks("entry e [n] (xs: [n]i64) = let ys = filter (> 0) xs in tabulate (length ys) id") == 0);
  CHECK(checks("entry e [n] (xs: [n]i64) = tabulate (n - 1) id") == 1);
  // Numbers of elements: those of arrays in memory are no products that wrap.
  CHECK(checks("entry e [n] [m] (xs: [n][m]i64) = flatten xs") == 0);
  CHECK(checks("entry e [n] [m] (xs: [n][m]i64) = flatten (map (map (+ 1)) (transpose xs))") == 0);
  CHECK(checks("entry e [n] [m] (xs: [n]i64) (ys: [m]i64) = flatten (map (\\x -> map (+ x) ys) xs)") == 1);
}

TEST_CASE("a parameter's size has a name of its own only where it may wrap") {
  const auto sizes = [](const std::string& text) { return lowered(text).functions.at(0)->sizes.size(); };
  CHECK(sizes("entry e (q: i64) (xs: [3*q+2]i32) = xs[0]") == 1);
  CHECK(sizes("entry e (q: i64) (xs: [3*q+2]i32) (ys: [q]i32) = xs[0] + ys[0]") == 0);
  CHECK(sizes("entry e (q: i64) (xs: [3*q+2]i32) (ys: [q+3]i32) = xs[0] + ys[0]") == 0);
  CHECK(sizes("entry e (q: i64) (n: i64) (xs: [3*q+2]i32) (ys: [n*q]i32) = xs[0] + ys[0]") == 0);
  CHECK(sizes("entry e (q: i64) (xs: [3*q+2]i32): [q]i32 = take q xs") == 0);
  CHECK(sizes("entry e (q: i64) (xs: [3*q+2]i32) (ys: [2*q]i32) = xs[0] + ys[0]") == 2);
}

TEST_CASE("the sizes of many concatenations stay short") {
  std::string sizes, params, sum;
  for (int k = 0; k < 40; ++k) {
    const std::string number = std::to_string(k);
    sizes += " [n" + number + "]";
    params += " (a" + number + ": [n" + number + "]i32)";
    sum += (k == 0 ? "a" : " ++ a") + number;
  }
  const Module module = lowered("entry e" + sizes + params + " = " + sum);
  const Function& function = *module.functions.at(0);
  std::size_t most = 0;
  for (const Stm& stm : function.body->stms)
    for (const Value v : stm.pattern)
      for (const Poly& size : function.type(v).shape) most = std::max(most, size.terms().size());
  CHECK(most == 12);
}

TEST_CASE("an entry keeps its parameters' names, types and counts") {
  const Module module = lowered("entry e [n] (p: (i32, [n]f32)) (xs: [n](f32, i64)) = (p.0, xs)");
  const EntryInfo& entry = *module.functions.at(0)->entry;
  CHECK(entry.name == "e");
  REQUIRE(entry.params.size() == 2);
  CHECK(entry.params[0].name == "p");
  CHECK(entry.params[0].type == "(i32, [n]f32)");
  CHECK(entry.params[1].type == "[n](f32, i64)");
  CHECK(entry.param_values == std::vector<std::size_t>{2, 2});
  CHECK(entry.results == std::vector<EntryInfo::Result>{{"i32"}, {"[n]f32"}, {"[n]i64"}});
  CHECK(module.functions.at(0)->results.size() == 3);
}

TEST_CASE("arrays of tuples are tuples of arrays") {
  const Module zipped = lowered("entry e [n] (xs: [n]f32) (ys: [n]i32) = map (\\(x, y) -> x) (zip xs ys)");
  CHECK(contains(zipped, "{xs, ys}"));
  CHECK_STRUCTURE(zipped, "map 1  rearrange 0  reshape 0");
  const Module operator_of_two = lowered(
      "entry e [n] (xs: [n]f32) =\n"
      "  reduce_comm (\\(a, b) (c, d) -> (f32.min a c, f32.max b d)) (f32.inf, -f32.inf) (zip xs xs)\n");
  CHECK_STRUCTURE(operator_of_two, "reduce 1  reduce/min 1  reduce/max 1");
  CHECK(contains(operator_of_two, "{f32.inf, -f32.inf}"));
  CHECK(contains(operator_of_two, "commutative"));
}

TEST_CASE("the operators of the prelude that commute are marked so") {
  CHECK(contains(lowered("entry e (xs: []i32) = reduce (+) 0 xs"), "commutative"));
  CHECK(contains(lowered("entry e (xs: []i32) = i32.maximum xs"), "commutative"));
  const Module unknown = lowered("entry e (xs: []i32) = reduce (\\a b -> a - b) 0 xs");
  CHECK(print(unknown).find("commutative") == std::string::npos);
}

TEST_CASE("maps over iota index by the map's own index") {
  const Module module =
      lowered("entry e [n] [m] (A: [n][m]f32) = map (\\i -> map (\\j -> A[i, j + 1]) (iota 3)) (iota n)");
  CHECK_STRUCTURE(module, "/map/map/index 1");
  CHECK(contains(module, "checked A[i, j + 1]"));
}

TEST_CASE("functions with first-order arguments are called, others are expanded") {
  const Module called = lowered("def f (x: i32) = x + 1 entry e (xs: []i32) = map f xs");
  CHECK(called.functions.size() == 2);
  CHECK_STRUCTURE(called, "map/apply 1");
  const Module higher = lowered("def f (g: i32 -> i32) x = g (g x) entry e x = f (+ 1) x");
  CHECK(higher.functions.size() == 1);
  CHECK_STRUCTURE(higher, "add 2  apply 0");
  const Module forced = lowered("#[inline] def f (x: i32) = x + 1 entry e x = f x");
  CHECK(forced.functions.size() == 1);
}

TEST_CASE("a definition becomes one function for each instance of its types, whatever the sizes") {
  const Module module = lowered(
      "def twice [n] 't (xs: [n]t) = zip xs xs\n"
      "entry e [n] [m] (a: [n]i32) (b: [m]i32) (c: [m]f32) (d: [m][4]f32) = (twice a, twice b, twice c, twice d)\n");
  CHECK(module.functions.size() == 4);
  CHECK_STRUCTURE(module, "apply 4");
  CHECK(module.find("twice") != nullptr);
  CHECK(module.find("twice_2") != nullptr);
  CHECK(module.find("twice_3") != nullptr);
}

TEST_CASE("a redomap given as a parameter leaves no trace") {
  const Module module = lowered(
      "def tc 't_x 't_y 't_z [a] [b] [q] (redomap: [q]t_x -> [q]t_y -> t_z) (X: [a][q]t_x) (Y: [b][q]t_y) : [a][b]t_z "
      "=\n"
      "  map (\\xs -> map (\\ys -> redomap xs ys) Y) X\n"
      "entry e [a] [b] [q] (X: [a][q]f32) (Y: [b][q]f32) = tc (\\xs ys -> map2 (*) xs ys |> f32.sum) X Y\n");
  CHECK(module.functions.size() == 1);
  CHECK_STRUCTURE(module, "/map/map/map 1  /map/map/reduce 1  apply 0");
}

TEST_CASE("partial applications, sections and compositions are static") {
  CHECK_STRUCTURE(lowered("def dot [n] (a: [n]i32) (b: [n]i32) = i32.sum (map2 (*) a b)\n"
                          "entry e [n] [m] (xs: [n]i32) (A: [m][n]i32) = map (dot xs) A"),
                  "map/apply 1");
  CHECK_STRUCTURE(lowered("entry e (xs: []i32) = map (2 -) xs |> map (+ 3) |> map (i32.max 1)"),
                  "map/sub 1  map/add 1  map/max 1");
  CHECK_STRUCTURE(lowered("entry e (xs: []f32) = (map f32.sqrt >-> f32.sum) xs"), "map/sqrt 1  reduce 1");
  CHECK_STRUCTURE(lowered("entry e = map f32.sqrt"), "map/sqrt 1");
}

TEST_CASE("index arithmetic is one polynomial") {
  const Module module = lowered("entry e [n] (xs: [n]f32) (i: i64) (j: i64) = xs[2 * (i + 1) + j * n - i]");
  CHECK(contains(module, "xs[n*j + i + 2]"));
  CHECK_STRUCTURE(module, "add 0  mul 0");
  CHECK(contains(lowered("entry e [n] (xs: [n]f32) = iota (2 * n + 1)"), "[2*n + 1]i64"));
  // Of any number it may wrap: quotients of that are none of the polynomial, so that it has a name.
  CHECK(contains(lowered("entry e (n: i64) = iota (2 * n + 1)"), "let {size : i64} = size(2*n + 1)"));
}

TEST_CASE("array functions") {
  CHECK(contains(lowered("entry e [n] [m] (A: [n][m]f32) = flatten A"), "reshape(A, [n*m])"));
  CHECK(contains(lowered("entry e [n] [m] (A: [n * m]f32) (B: [n][m]i32) = unflatten (A :> [n * m]f32) :> [n][m]f32"),
                 "reshape(A, [n, m])"));
  CHECK(contains(lowered("entry e [n] (A: [n][2][3]f32) = transpose A"), "rearrange(A, (1, 0, 2))"));
  CHECK(contains(lowered("entry e [n] (A: [n]f32) = reverse A"), "A[n - 1 :+ n by -1]"));
  CHECK(contains(lowered("entry e [n] (A: [n][n]f32) = A[1:n, 0]"), "A[1 :+ n - 1, 0]"));
}

TEST_CASE("loops and branches carry tuples as values") {
  const Module module = lowered(
      "entry e (n: i64) (c: bool) =\n"
      "  let (a, b) = if c then (1i32, 2f32) else (3, 4)\n"
      "  in loop (a, b) for i < n do (a + i32.i64 i, b * 2)\n");
  CHECK_STRUCTURE(module, "if 1  loop(for) 1");
  CHECK_STRUCTURE(lowered("entry e (x: i32) = loop x while x < 10 do x * 2"), "loop(while) 1  loop/compare 1");
  CHECK_STRUCTURE(lowered("entry e (xs: []i32) = loop acc = 0 for x in xs do acc + x"), "loop/index 1");
}

TEST_CASE("a second operand that can fail is evaluated only where it matters") {
  CHECK_STRUCTURE(lowered("entry e (i: i64) (xs: []bool) = i < 3 && xs[i]"), "if 1  if/index 1");
  CHECK_STRUCTURE(lowered("entry e (i: i64) (j: i64) = i < 3 || j < 4"), "if 0  or 1");
}

TEST_CASE("attributes stay with what they stand before") {
  const Module module = lowered(
      "#[no_tiling] #[noinline] #[mylab_skew(2)] entry e (xs: []i32) = #[sequential] #[untiled] #[trace] map (+ 1) xs");
  const Function& function = *module.functions.at(0);
  // Those that have an effect there, and those of nobody known.
  REQUIRE(function.attributes.size() == 2);
  CHECK(function.attributes[0].name == "noinline");
  CHECK(function.attributes[1].name == "mylab_skew");
  CHECK(function.attributes[1].arguments == std::vector<std::string>{"2"});
  // What is traced is a statement of its own.
  REQUIRE(function.body->stms.size() == 2);
  REQUIRE(function.body->stms[0].attributes.size() == 1);
  CHECK(function.body->stms[0].attributes[0].name == "sequential");
  CHECK(contains(module, "#[trace]\n  let {c : unit} = assert(true, \"Trace: \", "));
  CHECK(contains(lowered("entry e (xs: []i32) = #[unsafe] xs[3]"), " xs[3]"));
  CHECK_FALSE(print(lowered("entry e (xs: []i32) = #[unsafe] xs[3]")).find("checked") != std::string::npos);
}

TEST_CASE("statements know where they come from") {
  const Module module = lowered("entry e (xs: []i32) =\n  map (+ 1) xs\n");
  CHECK(module.file == "test.fut");
  CHECK(module.functions.at(0)->body->stms.back().location == Location{2, 3, 2, 14});
}

TEST_CASE("statements of what is expanded in place know the calls that it came by") {
  const std::string text =
      "def each 'a 'b (f: a -> b) (x: a) : b =\n"
      "  f x\n"
      "entry e (xs: []i32) (i: i64) =\n"
      "  each (\\j -> xs[j]) i\n"
      "  + (\\j -> xs[j]) (i + 1)\n"
      "  + each (\\j -> each (\\k -> xs[k]) j) i\n";
  const Module module = lowered(text);
  const std::string printed = print(module, {.locations = true});
  CAPTURE(printed);
  // The lambda is called where it is given to, and that by its own author.
  CHECK(printed.find("xs[i] @4:15-4:19 from 2:3-2:5 from 4:3-4:22\n") != std::string::npos);
  // Applied where it stands, it is no call.
  CHECK(printed.find("@5:12-5:16\n") != std::string::npos);
  CHECK(printed.find("xs[i] @6:29-6:33 from 2:3-2:5 from 6:17-6:36 from 2:3-2:5 from 6:5-6:39\n") != std::string::npos);
  CHECK(testing::round_trips(module).holds);
  // Each call once, each after the one around it.
  for (std::size_t k = 0; k < module.calls.size(); ++k) {
    CHECK(module.calls[k].call <= k);
    CHECK(module.calls[k].line > 0);
  }
  CHECK(module.calls.size() == 6);
}

TEST_CASE("a size that a branch or loop decides is a result before the arrays that have it") {
  const Module branch = lowered(
      "entry e [n] [m] (c: bool) (xs: [n]i32) (ys: [m](i32, i32)) =\n"
      "  if c then (xs, xs, xs) else ((unzip ys).0, (unzip ys).1, copy xs)\n");
  CHECK(contains(branch, ": exists [d] {[d]i32, [d]i32, [n]i32} = {"));
  CHECK(contains(branch, "let {d_1 : i64, r : [d_1]i32, r_1 : [d_1]i32, r_2 : [n]i32} ="));
  CHECK(contains(branch, "in {n, xs, xs, xs}"));
  CHECK(apl::testing::round_trips(branch).holds);
  const Module loop = lowered("entry e [n] (xs: [n]i32) (ys: [n]i32) = loop (xs, ys) for i < 3i64 do (tail xs, ys)");
  CHECK(contains(loop, "loop {d_2 : i64 = n, xs_1 : [d_2]i32 = xs, ys_1 : [n]i32 = ys} for i < 3 {"));
  CHECK(contains(loop, "entry e (xs : \"[n]i32\", ys : \"[n]i32\") : {\"[]i32\", \"[n]i32\"}"));
  // A size that the program carries around itself is no second parameter.
  const Module own = lowered("entry e (k: i64) = loop (n, xs: [n]i64) = (1, [0]) for i < k do (n, iota n)");
  CHECK(contains(own, "loop {n : i64 = 1i64, xs : [n]i64 = a}"));
}

TEST_CASE("an expression marked #[param] is what the parameter says") {
  const std::string text = "entry f (x: i64) = #[param(foo)] (x + 2) entry g (x: i32) = #[param(foo)] (x + 2)";
  const auto value = [&](const std::string& entry, const SourceFile& source, const std::string& argument) {
    const auto module = compile(source, {});
    REQUIRE(module);
    const auto results = interpret(*module, entry, *parse_values(argument), {});
    REQUIRE(results);
    return results->front().to_text();
  };
  CHECK(value("f", {"test.fut", text, {{"foo", 7}}}, "1i64") == "7i64");
  CHECK(value("f", {"test.fut", text, {}}, "1i64") == "3i64");
  CHECK(value("g", {"test.fut", text, {{"foo", 7}}}, "1i32") == "3i32");
}

TEST_CASE("what cannot be compiled yet is said, not guessed") {
  struct Case {
    std::string text, message;
  };
  for (const Case& c : std::vector<Case>{
           {"def f (n: i64) (xs: [n+1/1+n/2+n/3+n/4+n/5+n/6+n/7+n/8+n/9+n/10+n/11+n/12]i32) = xs",
            "more than 32 parts"},
           {"def f x = f x", "the recursive function \"f\" cannot be compiled yet"},
       }) {
    CAPTURE(c.text);
    const test::Outcome outcome = test::compile_text(c.text);
    CHECK_FALSE(outcome.accepted);
    CHECK(outcome.messages().find(c.message) != std::string::npos);
  }
}

}  // namespace apl::frontend
