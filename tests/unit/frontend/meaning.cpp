// Programs against their results: the source language's meaning, through the interpreter.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "ir/interpret.h"
#include "tests/unit/frontend/support.h"

namespace apl::frontend {

namespace {

// The results of `main` on values in text form, or what went wrong.
std::string result_of(const std::string& text, const std::string& arguments) {
  const test::Outcome outcome = test::compile_text(text);
  if (!outcome.module) return "error: " + outcome.messages();
  const auto values = parse_values(arguments);
  if (!values) return "error: " + values.error().message;
  const auto results = interpret(*outcome.module, "main", *values);
  if (!results) return "error: " + results.error().message;
  std::string joined;
  for (const HostValue& value : *results) joined += (joined.empty() ? "" : " ") + value.to_text();
  return joined;
}

}  // namespace

TEST_CASE("programs mean what Futhark says") {
  struct Case {
    std::string text, arguments, result;
  };
  for (const Case& c : std::vector<Case>{
           {"def main (x: i32) (y: i32) = (x / y, x % y, x // y, x %% y)", "-7 2", "-4i32 1i32 -3i32 -1i32"},
           {"def main (x: i32) = 1 + x * 2 ** 3 ** 1", "5", "41i32"},
           {"def main (x: i32) = -x ** 2", "3", "9i32"},
           {"def main (x: u8) = (x >> 1, x << 1, x & 3, x | 8, x ^ 255)", "200u8", "100u8 144u8 0u8 200u8 55u8"},
           {"def main (x: i32) = (x >> 1, x >>> 28)", "-8", "-4i32 15i32"},
           {"def main (x: i32) = (u64.i32 x, i64.i32 x, u8.i32 x, f32.i32 x)", "-1",
            "4294967295u64 -1i64 255u8 -1.0f32"},
           {"def main (x: f32) = (i32.f32 x, bool.f32 x)", "2.75f32",
            "error: Unknown name \"f32\" in module \"bool\"\n"},
           {"def main (b: bool) = (i32.bool b, f32.bool b, !b)", "true", "1i32 1.0f32 false"},
           {"def main = (i8.highest, i8.lowest, u16.highest, f32.lowest)", "", "127i8 -128i8 65535u16 -f32.inf"},
           {"def main [n] (xs: [n]i32) = (n, length xs, xs[0], head xs, last xs)", "[4, 5, 6]",
            "3i64 3i64 4i32 4i32 6i32"},
           {"def main (xs: []i32) = (take 2 xs, drop 2 xs, tail xs, init xs, reverse xs)", "[1, 2, 3]",
            "[1i32, 2i32] [3i32] [2i32, 3i32] [1i32, 2i32] [3i32, 2i32, 1i32]"},
           {"def main (xs: []i32) = (xs[1:], xs[:1], xs[::2], xs[::-1], xs[2:0:-1])", "[1, 2, 3]",
            "[2i32, 3i32] [1i32] [1i32, 3i32] [3i32, 2i32, 1i32] [3i32, 2i32]"},
           {"def main (xs: [][]i32) = (transpose xs, flatten xs, map i32.sum xs)", "[[1, 2], [3, 4]]",
            "[[1i32, 3i32], [2i32, 4i32]] [1i32, 2i32, 3i32, 4i32] [3i32, 7i32]"},
           {"def main (xs: []i32) : [2][2]i32 = unflatten (xs :> [2 * 2]i32)", "[1, 2, 3, 4]",
            "[[1i32, 2i32], [3i32, 4i32]]"},
           {"def main = (0..<3, 1...3, 0..2...6, 5..4..>2)", "",
            "[0i32, 1i32, 2i32] [1i32, 2i32, 3i32] [0i32, 2i32, 4i32, 6i32] [5i32, 4i32, 3i32]"},
           {"def main (xs: []i32) (ys: []f32) = unzip (map (\\(x, y) -> (y, x)) (zip xs (ys :> [2]f32) :> [](i32, "
            "f32)))",
            "[1, 2] [3f32, 4f32]", "error: "},
           {"def main [n] (xs: [n]i32) (ys: [n]f32) = unzip (map (\\(x, y) -> (y, x + 1)) (zip xs ys))",
            "[1, 2] [3f32, 4f32]", "[3.0f32, 4.0f32] [2i32, 3i32]"},
           {"def main (xs: []i32) = reduce (\\(a, i) (b, j) -> if a < b then (b, j) else (a, i)) (i32.lowest, -1) (zip "
            "xs (indices xs))",
            "[3, 9, 4]", "9i32 1i64"},
           {"def main (n: i64) = loop (a, b) = (0i32, 1i32) for _i < n do (b, a + b)", "10i64", "55i32 89i32"},
           {"def main (x: i32) = loop x while x < 100 do x * 3", "2", "162i32"},
           {"def main (xs: []i32) = loop acc = 0 for x in xs do acc * 10 + x", "[1, 2, 3]", "123i32"},
           {"def main (xs: [3]i32) = let xs[1] = 7 in (xs, xs with [0] = 8)", "[1, 2, 3]",
            "[1i32, 7i32, 3i32] [8i32, 7i32, 3i32]"},
           {"def main (x: i32) = let r = {a = x, b = (x, true)} in (r with b.0 = 5).b.0 + r.b.0 + r.a", "1", "7i32"},
           {"def main (c: bool) = if c then (1, [2, 3]) else (4, [5, 6])", "false", "4i32 [5i32, 6i32]"},
           {"def f 'a (x: a) = (x, x) def main (x: i32) = (f (f x), f true)", "1", "1i32 1i32 1i32 1i32 true true"},
           {"def compose f g x = f (g x) def main x = compose (+ 1) (* 2) x", "5", "11i32"},
           {"def (+^) (a, b) (c, d) = (a + c, b - d) def main (x: i32) = (x, x) +^ (1, 2)", "5", "6i32 3i32"},
           {"def main (x: f64) = x |> f64.sqrt |> (/ 2) |> (1 -)", "16f64", "-1.0f64"},
           {"def main (x: i32) = f32.(i32 x * 2 + pi - pi)", "3", "6.0f32"},
           {"def main (xs: []i32) = (any (> 2) xs, all (> 0) xs, null xs)", "[1, 2, 3]", "true true false"},
           {"def main (xs: []i32) (ys: []i32) = (xs == xs, (1, xs) == (2, xs))", "[1] [2, 3]", "true false"},
           {"def main = map (\\i -> tabulate 2 (\\j -> i * j)) (iota 3)", "",
            "[[0i64, 0i64], [0i64, 1i64], [0i64, 2i64]]"},
           {"def main (xs: []i32) = foldl (\\a x -> 2 * a + x) 0 xs", "[1, 0, 1]", "5i32"},
           {"def n : i64 = 3 def main (xs: [n]i32) = iota (n + 1)", "[1, 2, 3]", "[0i64, 1i64, 2i64, 3i64]"},
           {"def main (xs: []i32) : [2]i32 = xs :> [2]i32", "[1, 2, 3]",
            "error: cannot match shape of type: size 3 is not 2"},
           {"def main (x: i32) = assert (x > 0) (x + 1)", "0", "error: Assertion is false: x > 0"},
           {"def main (i: i64) (xs: []i32) = i < length xs && xs[i] > 0", "5i64 [1, 2]", "false"},
           {"def main : []u8 = \"h\\n\"", "", "[104u8, 10u8]"},
           {"def main = ('a', 'b' : u8)", "", "97i32 98u8"},
           {"def main (x: i64) = let f [n] 't (_: [n]t) = n in f (replicate (x + 1) true) + f [1, 2]", "4i64", "7i64"},
       }) {
    CAPTURE(c.text);
    const std::string got = result_of(c.text, c.arguments);
    CHECK((c.result == "error: " ? got.substr(0, 7) : got) == c.result);
  }
}

}  // namespace apl::frontend
