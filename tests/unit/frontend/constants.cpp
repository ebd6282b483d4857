// Which definitions without parameters are computed once for each context.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "ir/constants.h"
#include "ir/interpret.h"
#include "ir/print.h"
#include "tests/unit/frontend/support.h"

namespace apl::frontend {

namespace {

using test::lowered;

std::string constants_of(const std::string& text) {
  std::string names;
  for (const FunctionPtr& function : lowered(text).functions)
    if (function->is_constant()) names += (names.empty() ? "" : " ") + function->name;
  return names;
}

}  // namespace

TEST_CASE("constants of many elements, long loops or errors are computed once, others where they are used") {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"def c = map (+ 1) (iota 1000) entry e (i: i64) = c[i]", "c"},
      {"def c : [33]i32 = replicate 33 1 with [3] = 2 entry e (i: i64) = c[i]", "c"},
      {"def c = f64.sum (map f64.i64 (iota 100)) entry e (x: f64) = c + x", "c"},
      {"def c = filter (> 2) (iota 100) entry e = length c", "c"},
      {"def c = loop x = 1f32 for i < 100000 do x * 3 + 1 entry e (x: f32) = c + x", "c"},
      {"def c = loop xs = replicate 40 0i32 for i < 40 do xs with [i] = 3 entry e (i: i64) = c[i]", "c"},
      {"def c = let f x = map (+ x) (iota 50) in (f 1, f 2) entry e (i: i64) = c.0[i] + c.1[i]", "c"},
      // What fails does so when a context is made.
      {"def few = [1i32, 2] def c = few[2] entry e (i: i32) = c + i", "c"},
      {"def c = 1i32 / 0 entry e (i: i32) = c + i", "c"},
      {"def c = assert (1i32 > 2) 3i32 entry e (i: i32) = c + i", "c"},
      {"def c = iota (-3) entry e = length c", "c"},
      // A number of another constant is one; the whole of it is the other one.
      {"def t = map f64.i64 (iota 1000) def c = t[3] entry e (x: f64) = c + t[4] + x", "t c"},
      // What the compiler can compute exactly, is computed by it, unless that takes too long.
      {"def c = i64.sum (map (* 2) (iota 100)) entry e (i: i64) = c + i", ""},
      {"def t = map (+ 1) (iota 1000) def c = t[3] entry e (i: i64) = c + i", "t"},
      {"def c = i64.sum (map (* 2) (iota 100000)) entry e (i: i64) = c + i", "c"},
      {"def c = loop x = 1i32 for i < 1000000 do x * 3 + 1 entry e (i: i32) = c + i", "c"},
      {"def c = loop x = 1i64 for j < 100000 do x + (iota 65536)[x %% 65536] entry e (i: i64) = c + i", "c"},
      {"def c = loop x = 1i64 for j < 100000 do (replicate 65536 x with [x %% 65536] = 4)[3] entry e (i: i64) = c + i",
       "c"},
      {"def c = #[trace] i64.sum (map (* 2) (iota 100)) entry e (i: i64) = c + i", "c"},
      {"def t = map (+ 1) (iota 1000) def c = take 3 t entry e (i: i64) = c[i]", "t"},
      {"module m = { def t = map (+ 1) (iota 1000) } entry e (i: i64) = m.t[i]", "m_t"},
      // Each instance of a parametric module has its own.
      {"module m (P: {val n : i64}) = { def t = map (+ P.n) (iota 1000) }"
       " module a = m {def n : i64 = 1} module b = m {def n : i64 = 2} entry e (i: i64) = a.t[i] + b.t[i]",
       "a_t b_t"},
      // Cheap, or nothing but a size, or whoever calls is to say: where they are used.
      {"def c = 3i64 + 4 entry e (xs: [c]i32) = length xs", ""},
      {"def c = [1i32, 2, 3] entry e (i: i64) = c[i]", ""},
      {"def c = map (* 2) (iota 8) entry e (i: i64) = c[i]", ""},
      {"def c = iota 100000 entry e (i: i64) = c[i]", ""},
      {"def c = replicate 100000 1i32 entry e (i: i64) = c[i]", ""},
      {"def c = loop x = 1i32 for i < 9 do x * 3 entry e (i: i32) = c + i", ""},
      {"def c = f32.sqrt 2 entry e (x: f32) = c * x", ""},
      {"def c = f32.sum entry e (xs: []f32) = c xs", ""},
      {"#[inline] def c = map (+ 1) (iota 1000) entry e (i: i64) = c[i]", ""},
      {"def c [n] : [n]i64 = map (+ 1) (iota n) entry e (i: i64) = (c : [100]i64)[i]", ""},
      // Entries are called as such, and what nobody reads is not computed.
      {"entry c = map (+ 1) (iota 1000) entry e (i: i64) = c[i]", ""},
      {"def c = map (/ 0) (iota 1000) entry e (i: i64) = i", ""},
  };
  for (const auto& [text, expected] : cases) {
    CAPTURE(text);
    CHECK(constants_of(text) == expected);
  }
}

TEST_CASE("functions get the constants that they read, and those of what they call") {
  const Module module = lowered(
      "def t = map (+ 1) (iota 1000)\n"
      "#[noinline] def g (i: i64) = if i > 3 then t[i] else i\n"
      "entry e (is: []i64) = map (\\i -> g i) is\n"
      "entry f (i: i64) = i\n");
  const Function& e = *module.find_entry("e");
  REQUIRE(e.entry->constants.size() == 1);
  CHECK(e.entry->constants[0] == EntryInfo::Constant{"t", 1});
  CHECK(e.params.size() == 2);
  CHECK(e.given_params().size() == 1);
  CHECK(module.find("g")->params.size() == 2);
  CHECK(module.find_entry("f")->entry->constants.empty());
  CHECK(module.find_entry("t") == nullptr);
}

TEST_CASE("constants that the compiler computes are what programs compute") {
  const Module module = lowered(
      "def digits (s: []u8) = loop x = 0u64 for c in s do x * 10 + u64.u8 (c - '0')\n"
      "def p = digits \"18446744069414584321\"\n"
      "def inverse = loop x = 1u64 for i < 100i32 do x * (2 - p * x)\n"
      "def wraps = i8.sum (map i8.i64 (iota 100))\n"
      "entry e (x: u64) = (p + x, inverse * p, wraps, inverse > p)\n");
  CHECK(module.find_entry("e")->params.size() == 1);
  const auto made = interpret(module, "e", {HostValue::scalar(Scalar::integer(ScalarType::u64, 1))});
  REQUIRE(made);
  CHECK((*made)[0].at(0).bits() == 18446744069414584322U);
  CHECK((*made)[1].at(0).bits() == 1);
  CHECK((*made)[2].at(0).as_int() == 86);
  CHECK_FALSE((*made)[3].at(0).as_bool());
}

TEST_CASE("constants that are passed mean what constants mean that are expanded") {
  Module module = lowered(
      "def p = filter (\\x -> x % 7 < 3) (iota 300)\n"
      "def s = (scan (+) 0 p, i64.sum p)\n"
      "entry e (i: i64) = (s.0[i], s.1, length p, p)\n");
  const std::vector<HostValue> inputs = {HostValue::scalar(Scalar::integer(ScalarType::i64, 5))};
  const auto passed = interpret(module, "e", inputs);
  REQUIRE(passed);
  expand_constants(module);
  for (const Diagnostic& d : verify(module)) FAIL_CHECK(d.message);
  CHECK(module.find_entry("e")->params.size() == 1);
  const auto expanded = interpret(module, "e", inputs);
  REQUIRE(expanded);
  CHECK(*passed == *expanded);
  CHECK((*passed)[1].at(0).as_int() == 19092);
}

}  // namespace apl::frontend
