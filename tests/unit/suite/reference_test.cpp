// Sums in f64, and what is right where sums of other types round.
#include "suite/reference.h"

#include <doctest/doctest.h>

#include <vector>

#include "frontend/frontend.h"
#include "ir/interpret.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "suite/values.h"
#include "suite/wide_sums.h"

namespace {

using apl::HostValue;
using apl::ScalarType;
using apl::suite::difference;
using apl::suite::Rounding;

std::vector<HostValue> values(const std::string& text) {
  auto parsed = apl::parse_values(text);
  REQUIRE(parsed);
  return std::move(*parsed);
}

apl::Module compiled(const std::string& text) {
  auto module = apl::compile({"sums.fut", text}, [](const apl::Diagnostic& d) { FAIL(d.message); });
  REQUIRE(module);
  return std::move(*module);
}

std::string result(const apl::Module& module, const std::vector<HostValue>& arguments) {
  const auto got = apl::interpret(module, "main", arguments);
  REQUIRE_MESSAGE(got, got.error().message);
  std::string text;
  for (const HostValue& value : *got) text += (text.empty() ? "" : " ") + value.to_text();
  return text;
}

std::vector<HostValue> ones(std::int64_t count, ScalarType type) {
  HostValue value = HostValue::zeros(type, {count});
  for (std::int64_t k = 0; k < count; ++k) value.set(k, apl::Scalar::floating(type, 1));
  return {value};
}

}  // namespace

TEST_CASE("wide sums: what is reduced in f16 stops at 2048, and does not in f64") {
  struct Case {
    const char *program, *plain, *wide;
  };
  const Case cases[] = {
      {"def main [n] (xs: [n]f16) = f16.sum xs", "2048.0f16", "4096.0f16"},
      {"def main [n] (xs: [n]f16) = last (scan (+) 0 xs)", "2048.0f16", "4096.0f16"},
      {"def main [n] (xs: [n]f16) = hist (+) 0 2 (map (const 1) xs) xs", "[0.0f16, 2048.0f16]", "[0.0f16, 4096.0f16]"},
      {"def main [n] (xs: [n]f16) = reduce_by_index [1, 2] (+) 0 (map (const 1) xs) xs", "[1.0f16, 2048.0f16]",
       "[1.0f16, 4096.0f16]"},
      {"def main [n] (xs: [n]f16) = loop s = 0 for x in xs do 1 + s + x - 1", "2047.0f16", "4096.0f16"},
      {"def main [n] (xs: [n]f16) = reduce (map2 (+)) [0, 1] (map (\\x -> [x, 0]) xs)", "[2048.0f16, 1.0f16]",
       "[4096.0f16, 1.0f16]"},
      {"def main [n] (xs: [n]f16) = reduce (\\(a, k) (b, j) -> (if k < j then a + b else b + a, k i32.+ j)) (0, 0) "
       "(map (\\x "
       "-> (x, 1i32)) xs)",
       "2048.0f16 4096i32", "4096.0f16 4096i32"},
      {"def main [n] (xs: [n]f16) = let y = f16.i64 n / 4096 in reduce (\\a b -> a + b * y) 0 xs", "2048.0f16",
       "4096.0f16"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.program);
    const apl::Module plain = compiled(c.program), wide = apl::suite::with_wide_sums(plain);
    CHECK_MESSAGE(apl::verify(wide).empty(), apl::print(wide));
    CHECK(result(plain, ones(4096, ScalarType::f16)) == c.plain);
    CHECK(result(wide, ones(4096, ScalarType::f16)) == c.wide);
  }
}

TEST_CASE("wide sums: what is no sum of a narrow float stays as it is") {
  for (const char* program : {
           "def main [n] (xs: [n]f64) = f64.sum xs",
           "def main [n] (xs: [n]f16) = i64.sum (map i64.f16 xs)",
           "def main [n] (xs: [n]f16) = map (* 2) xs",
           "def main [n] (xs: [n]f16) = loop s = 0 for x in xs do s * 2 + x",
           "def main [n] (xs: [n]f16) = loop s = 0 for x in xs do if s > 3 then 0 else s + x",
           "def main [n] (xs: [n]f16) = reduce (\\a b -> f16.from_bits (f16.to_bits a | f16.to_bits b)) 0 xs",
       }) {
    CAPTURE(program);
    const apl::Module plain = compiled(program);
    CHECK(apl::suite::with_wide_sums(plain).functions == plain.functions);
  }
}

TEST_CASE("sums that round: what lies between both references is right, and not much more") {
  Rounding rounding;
  rounding.reduced(ScalarType::f32, 10'000'000);
  const auto wide = values("[3332744.0f32, 10.0f32] 7i32"), plain = values("[3300418.0f32, 10.0f32] 7i32");
  for (const char* right :
       {"[3332744.0f32, 10.0f32] 7i32", "[3310000.0f32, 10.0f32] 7i32", "[3300418.0f32, 10.0f32] 7i32"})
    CHECK_MESSAGE(!difference(values(right), wide, plain, rounding), right);
  for (const char* wrong : {"[3200000.0f32, 10.0f32] 7i32", "[3400000.0f32, 10.0f32] 7i32", "[f32.nan, 10.0f32] 7i32",
                            "[f32.inf, 10.0f32] 7i32", "[3332744.0f32, 10.0f32] 8i32", "[3332744.0f32] 7i32"})
    CHECK_MESSAGE(difference(values(wrong), wide, plain, rounding), wrong);
}

TEST_CASE("sums that round: where both references agree, the tolerance is that of every value") {
  Rounding rounding;
  rounding.reduced(ScalarType::f16, 1000);
  const auto same = values("[100.0f32, 1.0f32]");
  CHECK(!difference(values("[100.1f32, 1.0f32]"), same, same, rounding));
  CHECK(difference(values("[100.3f32, 1.0f32]"), same, same, rounding));
  // Sums of sixteen terms are short even in f16.
  Rounding few;
  few.reduced(ScalarType::f16, 16);
  CHECK(difference(values("16.1f16"), values("16.0f16"), values("15.99f16"), few));
  CHECK(!difference(values("500.5f16"), values("500.0f16"), values("499.75f16"), few));
  CHECK(!difference(values("506.0f16"), values("500.0f16"), values("499.75f16"), rounding));
  CHECK(difference(values("520.0f16"), values("500.0f16"), values("499.75f16"), rounding));
}

TEST_CASE("sums that round: one order overflows, another does not") {
  const Rounding none;
  const auto wide = values("f16.inf"), plain = values("2048.0f16");
  CHECK(!difference(values("50000.0f16"), wide, plain, none));
  CHECK(!difference(values("f16.inf"), wide, plain, none));
  CHECK(difference(values("1000.0f16"), wide, plain, none));
  CHECK(difference(values("-f16.inf"), wide, plain, none));
  CHECK(difference(values("f16.nan"), wide, plain, none));
  CHECK(!difference(values("f32.nan"), values("3.0f32"), values("f32.nan"), none));
  CHECK(difference(values("4.0f32"), values("3.0f32"), values("f32.nan"), none));
}
