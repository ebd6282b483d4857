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

using testing_random::Random;
using testing_random::thousand_cases;
using Wide = __int128;
using enum ScalarType;

constexpr ScalarType kAllTypes[] = {i8,  i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64, ScalarType::boolean,
                                    unit};
constexpr ScalarType kIntegers[] = {i8, i16, i32, i64, u8, u16, u32, u64};

// How many operations of a kind there are: their texts end where the table does.
const std::vector<UnaryOp> unary_ops{
#define APL_UNARY(name, text, domain) UnaryOp::name,
#include "ir/ops.def"
};
const std::vector<BinaryOp> binary_ops{
#define APL_BINARY(name, text, domain) BinaryOp::name,
#include "ir/ops.def"
};
const std::vector<CompareOp> compare_ops{
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
        if (y == 0) {
          CHECK_FALSE(evaluate(op, a, b));
          continue;
        }
        const Wide q = floors ? floor_quotient(x, y) : x / y;
        CHECK(evaluate(op, a, b) == wrapped(type, quotient ? q : x - q * y));
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
      {"mod", "-7.5f32", "2.0f32", "0.5f32"},
      {"mod", "7.5f64", "-2.0f64", "-0.5f64"},
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

TEST_CASE("law: an operation has a value exactly where its domain says, of the right type") {
  const auto one = [](ScalarType type) {
    return is_float(type) ? Scalar::floating(type, 1) : type == unit ? Scalar::unit() : Scalar::integer(type, 1);
  };
  for (const ScalarType type : kAllTypes) {
    CAPTURE(to_text(type));
    for (const UnaryOp op : unary_ops) {
      const auto result = evaluate(op, one(type));
      CHECK(result.has_value() == accepts(op, type));
      if (result) CHECK(result->type() == type);
    }
    for (const BinaryOp op : binary_ops) {
      const auto result = evaluate(op, one(type), one(type));
      CHECK(result.has_value() == accepts(op, type));
      if (result) CHECK(result->type() == type);
      CHECK_FALSE(evaluate(op, one(type), one(type == i8 ? i16 : i8)));
    }
    for (const CompareOp op : compare_ops) CHECK(evaluate(op, one(type), one(type))->type() == ScalarType::boolean);
  }
  CHECK_FALSE(accepts(UnaryOp::sqrt, i32));
  CHECK_FALSE(accepts(BinaryOp::conj, f32));
  CHECK(accepts(BinaryOp::conj, ScalarType::boolean));
  CHECK_FALSE(accepts(BinaryOp::add, ScalarType::boolean));
}

TEST_CASE("law: operations and types have distinct texts that read back") {
  std::set<std::string_view> texts;
  for (const UnaryOp op : unary_ops) CHECK((texts.insert(to_text(op)).second && unary_op_from_text(to_text(op)) == op));
  for (const BinaryOp op : binary_ops)
    CHECK((texts.insert(to_text(op)).second && binary_op_from_text(to_text(op)) == op));
  for (const CompareOp op : compare_ops)
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
