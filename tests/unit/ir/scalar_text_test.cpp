// Scalars: what bits they are made of, how they round and convert, and their text.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <unordered_set>

#include "ir/scalar.h"
#include "tests/unit/ir/random_values.h"

namespace apl {
namespace {

using testing_random::kAllTypes;
using testing_random::Random;
using testing_random::thousand_cases;
using enum ScalarType;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST_CASE("law: text reads back, for any bits") {
  thousand_cases(1000, [](Random& random) {
    for (const ScalarType type : kAllTypes) {
      const Scalar value = Scalar::from_bits(type, random.bits());
      CAPTURE(value.to_text());
      CHECK(Scalar::parse(value.to_text()) == value);
    }
  });
}

TEST_CASE("law: the 16-bit floats, all of them, keep their bits through double and through text") {
  for (const ScalarType type : {f16, bf16}) {
    for (std::uint64_t bits = 0; bits < 0x10000; ++bits) {
      const Scalar value = Scalar::from_bits(type, bits);
      const bool kept = Scalar::floating(type, value.as_float()) == value && Scalar::parse(value.to_text()) == value;
      if (!kept) CHECK_MESSAGE(kept, to_text(type), " ", bits, " ", value.to_text());
    }
  }
}

TEST_CASE("law: rounding goes to the nearest, ties to even") {
  thousand_cases(2000, [](Random& random) {
    for (const ScalarType type : {f16, bf16, f32}) {
      // Two neighbours of one sign, and a number between them, often the very middle.
      const std::uint64_t infinity = Scalar::floating(type, kInfinity).bits();
      const std::uint64_t below = random.bits() % (infinity - 1);
      const double low = Scalar::from_bits(type, below).as_float();
      const double high = Scalar::from_bits(type, below + 1).as_float();
      const double middle = low + (high - low) / 2;
      const std::uint64_t even = below + (below & 1);
      CAPTURE(middle);
      CHECK(Scalar::floating(type, middle).bits() == even);
      CHECK(Scalar::floating(type, std::nextafter(middle, low)).bits() == below);
      CHECK(Scalar::floating(type, std::nextafter(middle, high)).bits() == below + 1);
      CHECK(Scalar::floating(type, -std::nextafter(middle, low)).as_float() == -low);
    }
  });
}

TEST_CASE("law: f32 rounds as the machine's float does") {
  thousand_cases(3000, [](Random& random) {
    const double value = std::bit_cast<double>(random.bits() >> 1) * 1e-30;
    const double near_float =
        std::ldexp(static_cast<double>(random.between(1, 1 << 30)), static_cast<int>(random.between(-180, 120)));
    for (const double x : {value, near_float}) {
      if (std::isnan(x)) continue;
      CHECK(Scalar::floating(f32, x).bits() == std::bit_cast<std::uint32_t>(static_cast<float>(x)));
    }
  });
}

TEST_CASE("known roundings") {
  struct Case {
    ScalarType type;
    double value;
    std::uint64_t bits;
  };
  const Case cases[] = {
      {f16, 1.0, 0x3C00},         {f16, 65504, 0x7BFF},   {f16, 65519.99, 0x7BFF},
      {f16, 65520, 0x7C00},       {f16, 0x1p-24, 0x0001}, {f16, 0x1p-25, 0x0000},
      {f16, 0x1.8p-25, 0x0001},   {f16, -0.0, 0x8000},    {f16, 0x1.ff8p-15, 0x03FF},
      {f16, 0x1.ffcp-15, 0x0400}, {bf16, 1.0, 0x3F80},    {bf16, 3.3895e38, 0x7F7F},
      {bf16, 1e39, 0x7F80},       {f32, 1e-50, 0},        {f16, 1e300, 0x7C00},
      {f16, -kInfinity, 0xFC00},  {f16, 1e-300, 0},       {f64, 5e-324, 1},
  };
  for (const Case& c : cases) CHECK_MESSAGE(Scalar::floating(c.type, c.value).bits() == c.bits, c.value);
}

TEST_CASE("texts") {
  CHECK(Scalar::integer(i32, 3).to_text() == "3i32");
  CHECK(Scalar::integer(i64, -1).to_text() == "-1i64");
  CHECK(Scalar::integer(u8, -1).to_text() == "255u8");
  CHECK(Scalar::floating(f32, 1.5).to_text() == "1.5f32");
  CHECK(Scalar::floating(f32, 0.1).to_text() == "0.1f32");
  CHECK(Scalar::floating(f64, 1).to_text() == "1.0f64");
  CHECK(Scalar::floating(f64, 1e100).to_text() == "1e+100f64");
  CHECK(Scalar::floating(f32, -0.0).to_text() == "-0.0f32");
  CHECK(Scalar::floating(f16, 0.1).to_text() == "0.1f16");
  CHECK(Scalar::floating(bf16, 1.0 / 3).to_text() == "0.334bf16");
  CHECK(Scalar::floating(f32, NAN).to_text() == "f32.nan");
  CHECK(Scalar::floating(f16, kInfinity).to_text() == "f16.inf");
  CHECK(Scalar::floating(f32, -kInfinity).to_text() == "-f32.inf");
  CHECK(Scalar::boolean(true).to_text() == "true");
  CHECK(Scalar::unit().to_text() == "()");
}

TEST_CASE("what is no scalar is refused") {
  for (const char* text :
       {"",         "3",     "i32",   "256u8",   "-1u8",       "128i8",   "3.5i32",   "0x1f16", "inff32", "nanf64",
        "1e999f64", "+3i32", "3 i32", "trueish", "f32.nanf32", "i32.inf", "1.0.0f32", "1e+f32", "--1i32", "-f32.nan"}) {
    CHECK_MESSAGE(!Scalar::parse(text), text);
  }
}

TEST_CASE("there is one NaN, and equality is that of bits") {
  CHECK(Scalar::from_bits(f32, 0xFFC12345) == Scalar::floating(f32, NAN));
  CHECK(Scalar::floating(f32, NAN) == Scalar::floating(f32, -NAN));
  CHECK(Scalar::floating(f32, 0.0) != Scalar::floating(f32, -0.0));
  CHECK(Scalar::integer(i32, 1) != Scalar::integer(u32, 1));
  const std::unordered_set<Scalar> set{Scalar::floating(f32, NAN), Scalar::from_bits(f32, 0x7F800001), Scalar::unit()};
  CHECK(set.size() == 2);
}

TEST_CASE("conversions") {
  struct Case {
    const char *from, *to;
  };
  const Case cases[] = {
      {"300i32", "44u8"},
      {"-1i8", "18446744073709551615u64"},
      {"255u8", "255i16"},
      {"-1i8", "65535u16"},
      {"1.9f32", "1i32"},
      {"-1.9f32", "-1i32"},
      {"f32.nan", "0i64"},
      {"3e9f32", "2147483647i32"},
      {"-3e9f32", "-2147483648i32"},
      {"3e9f32", "3000000000u32"},
      {"-5.0f64", "4294967291u32"},  // unsigned: by way of the signed type of the width
      {"-1.9f16", "255u8"},
      {"-0.9f32", "0u16"},
      {"-300.0f32", "128u8"},
      {"300.0f32", "255u8"},
      {"-1.0f32", "18446744073709551615u64"},
      {"-1e30f64", "9223372036854775808u64"},
      {"-f32.inf", "0u32"},
      {"f64.nan", "0u8"},
      {"1e30f64", "18446744073709551615u64"},
      {"1e30f64", "9223372036854775807i64"},
      {"f64.inf", "0i8"},
      {"-f64.inf", "0i64"},
      {"16777217i32", "16777216.0f32"},
      {"9007199791611905i64", "9007200328482816.0f32"},  // by way of double it would round twice
      {"18446744073709551615u64", "18446744073709551616.0f32"},
      {"2049i32", "2048.0f16"},
      {"70000i32", "f16.inf"},
      {"0.5f32", "true"},
      {"f32.nan", "true"},
      {"-0.0f32", "false"},
      {"2i32", "true"},
      {"true", "1i64"},
      {"true", "1.0f32"},
      {"()", "0i32"},
      {"3i32", "()"},
      {"1e300f64", "f32.inf"},
      {"f32.nan", "f16.nan"},
      {"-f16.inf", "-f64.inf"},
  };
  for (const Case& c : cases) {
    const Scalar expected = *Scalar::parse(c.to);
    const Scalar got = convert(*Scalar::parse(c.from), expected.type());
    CHECK_MESSAGE(got == expected, c.from, " gives ", got.to_text(), ", not ", c.to);
  }
}

TEST_CASE("law: widening loses nothing") {
  thousand_cases(4000, [](Random& random) {
    const auto through = [&](ScalarType narrow, ScalarType wide) {
      const Scalar value = Scalar::from_bits(narrow, random.bits());
      CHECK(convert(convert(value, wide), narrow) == value);
    };
    through(i8, i64), through(i32, f64), through(u32, f64), through(i16, f32), through(u8, bf16), through(i8, f16);
    through(f16, f32), through(bf16, f32), through(f32, f64), through(u16, u64), through(u64, i64);
  });
}

}  // namespace
}  // namespace apl
