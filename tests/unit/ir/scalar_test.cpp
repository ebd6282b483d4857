// Scalars: representation, rounding, text, and the meaning of every operation against wide arithmetic.
#include "ir/scalar.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <set>
#include <string>

#include "tests/unit/ir/random_values.h"

namespace apl {
namespace {

using testing_random::kAllTypes;
using testing_random::Random;
using testing_random::thousand_cases;
using Wide = __int128;
using enum ScalarType;

constexpr ScalarType kIntegers[] = {i8, i16, i32, i64, u8, u16, u32, u64};

// How many operations of a kind there are: their texts end where the table does.
const std::vector<UnaryOp> kUnaryOps{
#define APL_UNARY(name, text, domain) UnaryOp::name,
#include "ir/ops.def"
};
const std::vector<BinaryOp> kBinaryOps{
#define APL_BINARY(name, text, domain) BinaryOp::name,
#include "ir/ops.def"
};
const std::vector<CompareOp> kCompareOps{
#define APL_COMPARE(name, text, domain) CompareOp::name,
#include "ir/ops.def"
};

Scalar read(std::string_view text) {
  const auto value = Scalar::parse(text);
  REQUIRE_MESSAGE(value, std::string(text));
  return *value;
}

Wide wide(const Scalar& value) { return is_signed(value.type()) ? Wide{value.as_int()} : Wide{value.bits()}; }

// The value of the type that is congruent to `number`.
Scalar wrapped(ScalarType type, Wide number) { return Scalar::from_bits(type, static_cast<std::uint64_t>(number)); }

// Often one of the edges, where division and shifts go wrong.
Scalar random_integer(Random& random, ScalarType type) {
  if (random.chance(50)) return Scalar::from_bits(type, random.bits());
  const std::uint64_t lowest = std::uint64_t{1} << (bit_width(type) - 1);
  return Scalar::from_bits(type, (random.chance(50) ? lowest : 0) + static_cast<std::uint64_t>(random.between(-2, 2)));
}

Wide floor_quotient(Wide a, Wide b) { return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); }

TEST_CASE("law: integer arithmetic is that of whole numbers, wrapped to the width") {
  thousand_cases(1000, [](Random& random) {
    for (const ScalarType type : kIntegers) {
      const Scalar a = random_integer(random, type);
      const Scalar b = random_integer(random, type);
      const Wide x = wide(a);
      const Wide y = wide(b);
      CAPTURE(a.to_text());
      CAPTURE(b.to_text());
      CHECK(evaluate(BinaryOp::add, a, b) == wrapped(type, x + y));
      CHECK(evaluate(BinaryOp::sub, a, b) == wrapped(type, x - y));
      CHECK(evaluate(BinaryOp::mul, a, b) == Scalar::from_bits(type, a.bits() * b.bits()));
      // The product of two u64 does not fit Wide: those have their cases below.
      if (type != u64) CHECK(evaluate(BinaryOp::mul_hi, a, b) == wrapped(type, (x * y) >> bit_width(type)));
      CHECK(evaluate(BinaryOp::min, a, b) == wrapped(type, std::min(x, y)));
      CHECK(evaluate(BinaryOp::max, a, b) == wrapped(type, std::max(x, y)));
      CHECK(evaluate(UnaryOp::neg, a) == wrapped(type, -x));
      CHECK(evaluate(UnaryOp::abs, a) == wrapped(type, x < 0 ? -x : x));
      CHECK(evaluate(UnaryOp::sgn, a) == wrapped(type, (x > 0) - (x < 0)));
      CHECK(evaluate(CompareOp::lt, a, b) == Scalar::boolean(x < y));
      CHECK(evaluate(CompareOp::le, a, b) == Scalar::boolean(x <= y));
      CHECK(evaluate(CompareOp::eq, a, b) == Scalar::boolean(x == y));
      CHECK(evaluate(CompareOp::ne, a, b) == Scalar::boolean(x != y));
      for (const BinaryOp op : {BinaryOp::div, BinaryOp::mod, BinaryOp::quot, BinaryOp::rem}) {
        const bool floors = op == BinaryOp::div || op == BinaryOp::mod;
        const bool quotient = op == BinaryOp::div || op == BinaryOp::quot;
        const BinaryOp total = *total_division(op);
        CHECK(division_of(total) == op);
        if (y == 0) {
          CHECK_FALSE(evaluate(op, a, b));
          CHECK(evaluate(total, a, b) == Scalar::zero(type));
          continue;
        }
        const Wide q = floors ? floor_quotient(x, y) : x / y;
        CHECK(evaluate(op, a, b) == wrapped(type, quotient ? q : x - q * y));
        CHECK(evaluate(total, a, b) == evaluate(op, a, b));
      }
    }
  });
}

TEST_CASE("law: bitwise operations and shifts") {
  thousand_cases(2000, [](Random& random) {
    for (const ScalarType type : kIntegers) {
      const Scalar a = random_integer(random, type);
      const Scalar b = random_integer(random, type);
      CHECK(evaluate(BinaryOp::conj, a, b) == wrapped(type, Wide{a.bits()} & b.bits()));
      CHECK(evaluate(BinaryOp::disj, a, b) == wrapped(type, Wide{a.bits()} | b.bits()));
      CHECK(evaluate(BinaryOp::exor, a, b) == wrapped(type, Wide{a.bits()} ^ b.bits()));
      CHECK(evaluate(UnaryOp::complement, a) == wrapped(type, -wide(a) - 1));
      const Scalar by = Scalar::integer(type, random.between(0, 70));
      const auto amount = by.as_int();
      CHECK(evaluate(BinaryOp::shl, a, by) == wrapped(type, amount < 64 ? static_cast<Wide>(a.bits()) << amount : 0));
      CHECK(evaluate(BinaryOp::shr, a, by) == wrapped(type, wide(a) >> amount));
      int ones = 0;
      int zeros = bit_width(type);
      for (int k = 0; k < bit_width(type); ++k) {
        if (((a.bits() >> k) & 1) != 0) ++ones, zeros = bit_width(type) - 1 - k;
      }
      CHECK(evaluate(UnaryOp::popc, a) == Scalar::integer(type, ones));
      CHECK(evaluate(UnaryOp::clz, a) == Scalar::integer(type, zeros));
    }
  });
}

TEST_CASE("operations at the edges") {
  struct Case {
    const char *op, *a, *b, *result;
  };
  const Case cases[] = {
      {"div", "-128i8", "-1i8", "-128i8"},
      {"mod", "-128i8", "-1i8", "0i8"},
      {"div", "-7i32", "2i32", "-4i32"},
      {"mod", "-7i32", "2i32", "1i32"},
      {"quot", "-7i32", "2i32", "-3i32"},
      {"rem", "-7i32", "2i32", "-1i32"},
      {"mod", "7i32", "-2i32", "-1i32"},
      {"shl", "1i32", "32i32", "0i32"},
      {"shl", "1i32", "-1i32", "0i32"},
      {"shr", "-8i32", "99i32", "-1i32"},
      {"shr", "-8i32", "-1i32", "-1i32"},
      {"shr", "4294967295u32", "32u32", "0u32"},
      {"pow", "3i32", "4i32", "81i32"},
      {"pow", "-2i8", "7i8", "-128i8"},
      {"pow", "2i32", "-1i32", "0i32"},
      {"pow", "-1i32", "-3i32", "-1i32"},
      {"pow", "-1i64", "-4i64", "1i64"},
      {"pow", "1i32", "-9i32", "1i32"},
      {"pow", "0i32", "0i32", "1i32"},
      {"pow", "0i32", "-1i32", "0i32"},
      {"pow", "3u64", "41u64", "18026252303461234787u64"},
      {"pow", "2.0f32", "-2.0f32", "0.25f32"},
      {"min", "f32.nan", "1.0f32", "1.0f32"},
      {"max", "1.0f64", "f64.nan", "1.0f64"},
      {"mod", "-7.5f32", "2.0f32", "-1.5f32"},
      {"mod", "7.5f64", "-2.0f64", "1.5f64"},
      {"mod", "7.5f16", "f16.inf", "7.5f16"},
      {"mod", "7.5f16", "0.0f16", "f16.nan"},
      {"mul_hi", "18446744073709551615u64", "18446744073709551615u64", "18446744073709551614u64"},
      {"mul_hi", "-9223372036854775808i64", "-9223372036854775808i64", "4611686018427387904i64"},
      {"mul_hi", "-1i8", "1i8", "-1i8"},
      {"mul_hi", "255u8", "255u8", "254u8"},
      {"atan2", "0.0f32", "-1.0f32", "3.1415927f32"},
      {"atan2", "-0.0f64", "-1.0f64", "-3.141592653589793f64"},
      {"hypot", "3.0f16", "4.0f16", "5.0f16"},
      {"hypot", "1.0e300f64", "1.0e300f64", "1.4142135623730952e300f64"},
      {"hypot", "f32.nan", "-f32.inf", "f32.inf"},
      {"copysign", "1.5f16", "-0.0f16", "-1.5f16"},
      {"copysign", "-f32.inf", "2.0f32", "f32.inf"},
      {"nextafter", "0.0f16", "-1.0f16", "-5.9604645e-8f16"},
      {"nextafter", "0.0f32", "1.0f32", "1.0e-45f32"},
      {"nextafter", "1.0f16", "f16.inf", "1.0009766f16"},
      {"nextafter", "1.0bf16", "0.0bf16", "0.99609375bf16"},
      {"nextafter", "65504.0f16", "f16.inf", "f16.inf"},
      {"nextafter", "-f16.inf", "0.0f16", "-65504.0f16"},
      {"nextafter", "0.0f64", "-0.0f64", "-0.0f64"},
      {"nextafter", "1.0f64", "f64.nan", "f64.nan"},
      {"ldexp", "1.5f32", "4.9f32", "24.0f32"},
      {"ldexp", "1.0f16", "-24.0f16", "5.9604645e-8f16"},
      {"ldexp", "1.0f64", "4096.0f64", "f64.inf"},
      {"ldexp", "1.0f64", "-4096.0f64", "0.0f64"},
      {"div", "1.0f32", "0.0f32", "f32.inf"},
      {"div", "0.0f32", "0.0f32", "f32.nan"},
      {"add", "65504.0f16", "16.0f16", "f16.inf"},
      {"add", "2048.0f16", "1.0f16", "2048.0f16"},
      {"mul", "3.0bf16", "1.0078125bf16", "3.03125bf16"},
      {"add", "16777216.0f32", "1.0f32", "16777216.0f32"},
      {"and", "true", "false", "false"},
      {"xor", "true", "false", "true"},
  };
  for (const Case& c : cases) {
    const auto got = evaluate(*binary_op_from_text(c.op), read(c.a), read(c.b));
    REQUIRE(got);
    CHECK_MESSAGE(*got == read(c.result), c.op, " ", c.a, " ", c.b, " = ", got->to_text());
  }
  CHECK(evaluate(UnaryOp::complement, Scalar::boolean(true)) == Scalar::boolean(false));
  CHECK(evaluate(UnaryOp::sgn, read("-0.0f32")) == read("0.0f32"));
  CHECK(evaluate(UnaryOp::sgn, read("f32.nan")) == read("f32.nan"));
  CHECK(evaluate(UnaryOp::neg, read("f32.nan")) == read("f32.nan"));
  CHECK(evaluate(UnaryOp::sqrt, read("2.0f32")) == Scalar::floating(f32, std::sqrt(2.0f)));
  CHECK(evaluate(UnaryOp::floor, read("-0.5f64")) == read("-1.0f64"));
  CHECK(evaluate(CompareOp::eq, read("f32.nan"), read("f32.nan")) == Scalar::boolean(false));
  CHECK(evaluate(CompareOp::ne, read("f32.nan"), read("f32.nan")) == Scalar::boolean(true));
  CHECK(evaluate(CompareOp::eq, read("0.0f32"), read("-0.0f32")) == Scalar::boolean(true));
  CHECK(evaluate(CompareOp::lt, read("false"), read("true")) == Scalar::boolean(true));
  CHECK(evaluate(CompareOp::le, Scalar::unit(), Scalar::unit()) == Scalar::boolean(true));
}

TEST_CASE("functions on floats are those of the C++ library, in the type that the arithmetic is done in") {
  struct Function {
    UnaryOp op;
    float (*narrow)(float);
    double (*wide)(double);
  };
#define APL_FUNCTION(op, function)                                                                   \
  {                                                                                                  \
    UnaryOp::op, [](float x) { return std::function(x); }, [](double x) { return std::function(x); } \
  }
  const Function functions[] = {
      APL_FUNCTION(sqrt, sqrt),   APL_FUNCTION(cbrt, cbrt),    APL_FUNCTION(exp, exp),       APL_FUNCTION(log, log),
      APL_FUNCTION(log2, log2),   APL_FUNCTION(log10, log10),  APL_FUNCTION(log1p, log1p),   APL_FUNCTION(sin, sin),
      APL_FUNCTION(cos, cos),     APL_FUNCTION(tan, tan),      APL_FUNCTION(asin, asin),     APL_FUNCTION(acos, acos),
      APL_FUNCTION(atan, atan),   APL_FUNCTION(sinh, sinh),    APL_FUNCTION(cosh, cosh),     APL_FUNCTION(tanh, tanh),
      APL_FUNCTION(asinh, asinh), APL_FUNCTION(acosh, acosh),  APL_FUNCTION(atanh, atanh),   APL_FUNCTION(erf, erf),
      APL_FUNCTION(erfc, erfc),   APL_FUNCTION(gamma, tgamma), APL_FUNCTION(lgamma, lgamma), APL_FUNCTION(floor, floor),
      APL_FUNCTION(ceil, ceil),   APL_FUNCTION(round, rint)};
#undef APL_FUNCTION
  std::set<UnaryOp> covered{UnaryOp::rsqrt};
  for (const Function& function : functions) {
    CAPTURE(to_text(function.op));
    covered.insert(function.op);
    for (const double x : {0.0, -0.0, 0.3, -0.3, 0.5, 1.0, -1.0, 1.5, 2.5, -2.5, 7.25, 60.0, 1e4,
                           std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::quiet_NaN()})
      for (const ScalarType type : {f16, bf16, f32, f64}) {
        const Scalar a = Scalar::floating(type, x);
        const double expected = type == f64 ? function.wide(a.as_float())
                                            : static_cast<double>(function.narrow(static_cast<float>(a.as_float())));
        CHECK_MESSAGE(evaluate(function.op, a) == Scalar::floating(type, expected), a.to_text());
      }
  }
  for (const UnaryOp op : kUnaryOps)
    if (!accepts(op, i32)) CHECK_MESSAGE(covered.count(op) == 1, to_text(op), " is tested");
  CHECK(evaluate(UnaryOp::round, read("2.5f32")) == read("2.0f32"));
  CHECK(evaluate(UnaryOp::rsqrt, read("0.0625f32")) == read("4.0f32"));
  CHECK(evaluate(UnaryOp::rsqrt, read("0.0f64")) == read("f64.inf"));
  CHECK(evaluate(UnaryOp::rsqrt, read("2.0f64")) == Scalar::floating(f64, 1 / std::sqrt(2.0)));
  CHECK(evaluate(UnaryOp::rsqrt, read("3.0f16")) == Scalar::floating(f16, 1 / std::sqrt(3.0F)));
  CHECK(evaluate(UnaryOp::gamma, read("5.0f16")) == read("24.0f16"));
}

TEST_CASE("bits of one type read as another") {
  CHECK(convert(read("1.0f32"), u32, true) == read("1065353216u32"));
  CHECK(convert(read("-2.0f16"), i16, true) == read("-16384i16"));
  CHECK(convert(read("1u64"), f64, true) == Scalar::from_bits(f64, 1));
  CHECK(convert(read("-1i8"), u8, true) == read("255u8"));
  thousand_cases(100, [](Random& random) {
    const Scalar value = Scalar::from_bits(f32, random.bits());
    CHECK(convert(convert(value, i32, true), f32, true) == value);
  });
}

TEST_CASE("law: an operation has a value exactly where its domain says, of the right type") {
  const auto one = [](ScalarType type) {
    return is_float(type) ? Scalar::floating(type, 1) : type == unit ? Scalar::unit() : Scalar::integer(type, 1);
  };
  for (const ScalarType type : kAllTypes) {
    CAPTURE(to_text(type));
    for (const UnaryOp op : kUnaryOps) {
      const auto result = evaluate(op, one(type));
      CHECK(result.has_value() == accepts(op, type));
      if (result) CHECK(result->type() == type);
    }
    for (const BinaryOp op : kBinaryOps) {
      const auto result = evaluate(op, one(type), one(type));
      CHECK(result.has_value() == accepts(op, type));
      if (result) CHECK(result->type() == type);
      CHECK_FALSE(evaluate(op, one(type), one(type == i8 ? i16 : i8)));
    }
    for (const CompareOp op : kCompareOps) CHECK(evaluate(op, one(type), one(type))->type() == ScalarType::boolean);
  }
  CHECK_FALSE(accepts(UnaryOp::sqrt, i32));
  CHECK_FALSE(accepts(BinaryOp::conj, f32));
  CHECK(accepts(BinaryOp::conj, ScalarType::boolean));
  CHECK_FALSE(accepts(BinaryOp::add, ScalarType::boolean));
}

TEST_CASE("law: operations and types have distinct texts that read back") {
  std::set<std::string_view> texts;
  for (const UnaryOp op : kUnaryOps) CHECK((texts.insert(to_text(op)).second && unary_op_from_text(to_text(op)) == op));
  for (const BinaryOp op : kBinaryOps)
    CHECK((texts.insert(to_text(op)).second && binary_op_from_text(to_text(op)) == op));
  for (const CompareOp op : kCompareOps)
    CHECK((texts.insert(to_text(op)).second && compare_op_from_text(to_text(op)) == op));
  for (const ScalarType type : kAllTypes)
    CHECK((texts.insert(to_text(type)).second && scalar_type_from_text(to_text(type)) == type));
  CHECK_FALSE(binary_op_from_text("frobnicate"));
  CHECK_FALSE(scalar_type_from_text("i33"));
}

TEST_CASE("sizes of types") {
  for (const ScalarType type : kAllTypes) {
    if (is_integer(type) || is_float(type)) CHECK(bit_width(type) == 8 * byte_size(type));
    CHECK((is_integer(type) && is_float(type)) == false);
  }
  CHECK(byte_size(ScalarType::boolean) == 1);
  CHECK(bit_width(ScalarType::boolean) == 1);
  CHECK(byte_size(unit) == 0);
  CHECK(is_signed(i64));
  CHECK_FALSE(is_signed(u8));
}

}  // namespace
}  // namespace apl
