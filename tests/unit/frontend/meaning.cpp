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
  for (
      const Case& c : std::vector<Case>{
          {"def main (x: i32) (y: i32) = (x / y, x % y, x // y, x %% y)", "-7 2", "-4i32 1i32 -3i32 -1i32"},
          {"def main (x: i32) = 1 + x * 2 ** 3 ** 1", "5", "41i32"},
          {"def main (x: i32) = -x ** 2", "3", "9i32"},
          {"def main (x: u8) = (x >> 1, x << 1, x & 3, x | 8, x ^ 255)", "200u8", "100u8 144u8 0u8 200u8 55u8"},
          {"def main (x: i32) = (x >> 1, x >>> 28)", "-8", "-4i32 15i32"},
          {"def main (x: i32) = (u64.i32 x, i64.i32 x, u8.i32 x, f32.i32 x)", "-1",
           "4294967295u64 -1i64 255u8 -1.0f32"},
          {"def main (x: f32) = (i32.f32 x, bool.f32 x)", "2.75f32", "2i32 true"},
          {"def main (x: f32) (y: f32) = (x % y, f32.copysign x y, f32.atan2 0 y, f32.hypot x 4, f32.nextafter 0 y)",
           "3f32 -2f32", "1.0f32 -3.0f32 3.1415927f32 5.0f32 -1e-45f32"},
          {"def main (x: f32) = f32.((round x, trunc x, floor x, log2 8, log10 100, log1p 0, cbrt 27))", "-2.5f32",
           "-2.0f32 -2.0f32 -3.0f32 3.0f32 2.0f32 0.0f32 3.0f32"},
          {"def main (x: f64) = f64.((sin x, asin x, sinh x, asinh x, tanh x, atanh x, acos 1, acosh 1, atan x, cosh "
           "x))",
           "0f64", "0.0f64 0.0f64 0.0f64 0.0f64 0.0f64 0.0f64 0.0f64 0.0f64 0.0f64 1.0f64"},
          {"def main (x: f64) = f64.((erf x, erfc x, gamma 5, lgamma 1, rsqrt 4, recip 4, lerp 2 6 x, mad 2 3 x))",
           "0f64", "0.0f64 1.0f64 24.0f64 0.0f64 0.5f64 0.25f64 2.0f64 6.0f64"},
          {"def main (x: f16) = f16.((sinpi x, cospi 1, tanpi 0.25, asinpi 1, acospi 0, atanpi 1, atan2pi 0 (-1)))",
           "0.5f16", "1.0f16 -1.0f16 1.0f16 0.5f16 0.5f16 0.25f16 1.0f16"},
          {"def main (n: i32) = (f16.ldexp 1 n, f32.ldexp 3 n, f64.ldexp 1 (-n), f32.from_fraction 1 4)", "2147483647",
           "f16.inf f32.inf 0.0f64 0.25f32"},
          {"def main (x: f32) = (f32.to_bits x, f32.from_bits 1065353216, f16.to_bits 1, f64.get_bit 63 (-1), "
           "f32.set_bit 31 x 1, f32.to_i64 x, f16.to_f64 2.5)",
           "2f32", "1073741824u32 1.0f32 15360u16 1i32 -2.0f32 2i64 2.5f64"},
          {"def main = (f16.epsilon, f32.epsilon, f64.epsilon, f32.to_i64 f32.inf, u8.f64 (-f64.inf))", "",
           "1e-07f16 1.1920929e-07f32 2.220446049250313e-16f64 0i64 0u8"},
          {"def main (x: i8) = i8.((ctz x, clz x, popc x, mul_hi x 64, mad_hi x 64 1, get_bit 7 x, set_bit 0 x 1, "
           "to_i64 "
           "x, num_bits))",
           "-8i8", "3i32 0i32 5i32 -2i8 -1i8 1i32 -7i8 -8i64 8i32"},
          {"def main (x: u64) = u64.((ctz x, ctz 0, mul_hi x x, set_bit 63 x 0, to_i64 x))", "9223372036854775808u64",
           "63i32 64i32 4611686018427387904u64 0u64 -9223372036854775808i64"},
          {"def main (x: f64) = (t64 x, t32 2.75, r32 3, r64 4)", "-1.5f64", "-1i32 2i32 3.0f32 4.0f64"},
          {"def main (xs: []i32) = (rotate 1 xs, rotate (-1) xs, xs ++ [9], concat (take 1 xs) xs, (rep 7 : [2]i32))",
           "[1, 2, 3]",
           "[2i32, 3i32, 1i32] [3i32, 1i32, 2i32] [1i32, 2i32, 3i32, 9i32] [1i32, 1i32, 2i32, 3i32] [7i32, 7i32]"},
          {"def main (xs: [][]i32) = unzip (zip xs [true, false] ++ rotate 3 (zip xs [true, true]))",
           "[[1, 2], [3, 4]]", "[[1i32, 2i32], [3i32, 4i32], [3i32, 4i32], [1i32, 2i32]] [true, false, true, true]"},
          {"def main (xs: []i32) = (rotate 5 xs, xs ++ xs)", "empty([0]i32)", "empty([0]i32) empty([0]i32)"},
          {"def main (xs: []i32) = (foldr (\\x a -> x - a) 0 xs, foldl (-) 0 xs, trace (manifest xs))", "[1, 2, 3]",
           "2i32 -6i32 [1i32, 2i32, 3i32]"},
          {"def main (n: i32) = (iterate n (* 2) 1i32, iterate_while (< 10) (+ n) 0, iterate_until (> 10) (+ n) 0)",
           "5", "32i32 10i32 15i32"},
          {"def main (n: i64) (xs: []i32) = sized n xs", "3i64 [1, 2, 3]", "[1i32, 2i32, 3i32]"},
          {"def main (n: i64) (xs: []i32) = sized n xs", "2i64 [1, 2, 3]",
           "error: Value of shape [3] cannot match shape of type \"[2]i32\"."},
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
           "[1, 2] [3f32, 4f32]", "[3.0f32, 4.0f32] [1i32, 2i32]"},
          {"def main [n] (xs: [n]i32) (ys: [n]f32) = unzip (map (\\(x, y) -> (y, x + 1)) (zip xs ys))",
           "[1, 2] [3f32, 4f32]", "[3.0f32, 4.0f32] [2i32, 3i32]"},
          {"def main (xs: []i32) = reduce (\\(a, i) (b, j) -> if a < b then (b, j) else (a, i)) (i32.lowest, -1) (zip "
           "xs (indices xs))",
           "[3, 9, 4]", "9i32 1i64"},
          {"def main (n: i64) = loop (a, b) = (0i32, 1i32) for _i < n do (b, a + b)", "10i64", "55i32 89i32"},
          {"def main (x: i32) = loop x while x < 100 do x * 3", "2", "162i32"},
          {"def main (xs: []i32) = loop acc = 0 for x in xs do acc * 10 + x", "[1, 2, 3]", "123i32"},
          {"def main (xs: *[3]i32) = let xs[1] = 7 in (copy xs, xs with [0] = 8)", "[1, 2, 3]",
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
          {"def main (xs: []u8) : []u8 = let xs = if null xs then \"you\" else xs in xs ++ \"\"", "\"Alice\"",
           "[65u8, 108u8, 105u8, 99u8, 101u8]"},
          {"def main (xs: []u8) : []u8 = let xs = if null xs then \"you\" else xs in xs ++ \"\"", "\"\"",
           "[121u8, 111u8, 117u8]"},
          {"def main (c: bool) (xs: []i32) (ys: []i32) = if c then xs else ys", "false [1] [2, 3]", "[2i32, 3i32]"},
          {"def main (c: bool) (xs: []i32) : [2]i32 = if c then [1, 2] else xs", "false [3, 4]", "[3i32, 4i32]"},
          {"def f c (xs: []i32) (ys: []i32) = zip xs (if c then xs else ys) def main xs ys = f false xs ys |> unzip",
           "[1, 2] [3, 4]", "[1i32, 2i32] [3i32, 4i32]"},
          {"type opt 't = #some t | #none def f b (x: i64) = if b then #some (iota x) else (#none : opt ([1]i64)) :> "
           "opt "
           "([]i64) def main b x = match f b x case #some a -> a case #none -> [7]",
           "true 3i64", "[0i64, 1i64, 2i64]"},
          {"type t [b] = {a: [2**b]i64} def mk (b: i64) : t [b] = {a = iota (2**b)} def main b = length (mk b).a",
           "3i64", "8i64"},
          {"def n : i64 = 3 def main (xs: [n]i32) = iota (n + 1)", "[1, 2, 3]", "[0i64, 1i64, 2i64, 3i64]"},
          {"def main (xs: []i32) : [2]i32 = xs :> [2]i32", "[1, 2, 3]",
           "error: Value of shape [3] cannot match shape of type \"[2]i32\"."},
          {"def main [n] (c: bool) (xs: [n]i32) = let ys = if c then xs else [1] in (ys, length ys)", "true [3, 4]",
           "[3i32, 4i32] 2i64"},
          {"def main (xs: []i32) = loop (xs, n) = (xs, 0i32) while length xs < 5 do (xs ++ xs, n + 1)", "[3, 4]",
           "[3i32, 4i32, 3i32, 4i32, 3i32, 4i32, 3i32, 4i32] 2i32"},
          {"def main (k: i64) = loop (n, xs: [n]i64) = (1, [0]) for i < k do (n + 1, xs ++ [n] :> [n + 1]i64)", "2i64",
           "3i64 [0i64, 1i64, 2i64]"},
          {"def main (k: i64) = loop (n, xs: [n]i64) = (1, [0]) for i < k do (n + 2, xs ++ [n])", "2i64",
           "error: Value of shape [2] cannot match shape of type \"[3]i64\"."},
          {"def main (n: i64) = let (k, xs: [k]i64) = (n, iota 2) in zip xs (iota k)", "2i64",
           "[0i64, 1i64] [0i64, 1i64]"},
          {"def main (n: i64) = let (k, xs: [k]i64) = (n, iota 2) in (k, xs)", "3i64",
           "error: Value of shape [2] cannot match shape of type \"[3]i64\"."},
          {"def main (xs: *[]i32) (ys: []i32) = xs with [1:3] = ys", "[1, 2, 3] [4, 5]", "[1i32, 4i32, 5i32]"},
          {"def main (xs: *[]i32) (ys: []i32) = xs with [1:3] = ys", "[1, 2, 3] [4]",
           "error: Value of shape [1] cannot match shape of type \"[2]i32\"."},
          {"def main (xs: []i32) = let [n] (ys: [n]i32) = xs[1:] in (n, zip ys (iota n))", "[5, 6, 7]",
           "2i64 [6i32, 7i32] [0i64, 1i64]"},
          {"def main = (300u8, 0xFFi8, -128i8, 1e40f32, 36893488147419103235i32)", "", "44u8 -1i8 -128i8 f32.inf 3i32"},
          // Sizes of operations other than + - * are known by the way they are written.
          {"def main (n: i64) = map2 (+) (iota (n / 2)) (iota (n / 2))", "7i64", "[0i64, 2i64, 4i64]"},
          {"def main (k: i64) (xs: [2 ** k]i32) = zip xs (iota (2 ** k))", "1i64 [5, 6]", "[5i32, 6i32] [0i64, 1i64]"},
          {"def main (k: i64) (xs: [2 ** k]i32) = xs", "1i64 [5, 6, 7]",
           "error: Value of shape [3] cannot match shape of type \"[2]i32\"."},
          {"def f [n] (xs: [n / 2]i32) (_: [n]i32) = zip xs (iota (n / 2)) def main (n: i64) (xs: []i32) = f (xs :> [n "
           "/ 2]i32) (iota n |> map i32.i64)",
           "5i64 [8, 9]", "[8i32, 9i32] [0i64, 1i64]"},
          {"def f (p: {a: i64, b: i64}) : [p.a * p.b]i64 = iota (p.a * p.b) def main (n: i64) = zip (f {a = n, b = 2}) "
           "(iota (n * 2))",
           "1i64", "[0i64, 1i64] [0i64, 1i64]"},
          {"def sq (x: i64) = x * x def main (n: i64) = let m = sq n in zip (iota m) (iota (sq n))", "1i64",
           "[0i64] [0i64]"},
          {"def main (n: i64) (c: bool) = zip (if c then iota (n % 3) else rotate 1 (iota (n % 3))) (iota (n % 3))",
           "5i64 false", "[1i64, 0i64] [0i64, 1i64]"},
          {"def main (n: i64) = zip (loop xs = iota (n // 2) for _i < 3i32 do map (+ 1) xs) (iota (n // 2))", "5i64",
           "[3i64, 4i64] [0i64, 1i64]"},
          {"def f (n: i64) (g: i64 -> [2 ** n]i64) = g 7 def main n = f n (\\x -> replicate (2 ** n) x)", "1i64",
           "[7i64, 7i64]"},
          {"def f (fo: [2 + 3]i32 -> i64) = fo [1, 2, 3, 4, 5] def g n m (_: [n + m]i32) = n + m def main = f (g 2 3)",
           "", "5i64"},
          {"def main (xs: []i32) (s: i64) = (xs[::s], xs[3:0:s], copy xs with [3:0:s] = [7, 8])",
           "[1, 2, 3, 4, 5] -2i64", "[5i32, 3i32, 1i32] [4i32, 2i32] [1i32, 8i32, 3i32, 7i32, 5i32]"},
          {"def main: (f64, f64, f64, f32) = (18446744073709551616, -0x1_0000_0000_0000_0000, "
           "0b1_0000000000000000000000000000000000000000000000000000000000000000_1, 36893488147419103232)",
           "", "1.8446744073709552e+19f64 -1.8446744073709552e+19f64 3.6893488147419103e+19f64 3.689349e+19f32"},
          {"def main (xs: []i32) (s: i64) = xs[::s]", "[1, 2, 3] 0i64",
           "error: Index [0:3:0] out of bounds for array of shape [3]."},
          {"def main (n: i64) : ([n + 1]i64, [n - 1]i64) = (0...n, 1..<n)", "3i64",
           "[0i64, 1i64, 2i64, 3i64] [1i64, 2i64]"},
          {"def main (a: i32) (b: i32) (c: i32) = (a..b...c, a..b..<c)", "1 3 7",
           "[1i32, 3i32, 5i32, 7i32] [1i32, 3i32, 5i32]"},
          {"def main (a: i32) (b: i32) (c: i32) = (a..b...c, a..b..>c)", "5 3 1", "[5i32, 3i32, 1i32] [5i32, 3i32]"},
          {"def main (a: i32) (b: i32) = a..b...9", "1 1", "error: Range 1..1...9 is invalid"},
          {"def main (a: i32) (b: i32) = a..b..>9", "1 2", "error: Range 1..2..>9 is invalid"},
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
