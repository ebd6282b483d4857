// Scalar types, scalar constants, and the meaning of every scalar operation of ir/ops.def.
// The interpreter and constant folding both call evaluate() and convert(); generated code must agree with them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace apl {

enum class ScalarType : std::uint8_t {
#define APL_SCALAR(name, ...) name,
#include "ir/scalar_types.def"
};

std::string_view to_text(ScalarType type);  // "i32", "bool", "unit"
std::optional<ScalarType> scalar_type_from_text(std::string_view text);

// A line of ir/scalar_types.def.
enum class ScalarKind : std::uint8_t { signed_integer, unsigned_integer, floating, boolean, unit };
enum class ScalarArithmetic : std::uint8_t { own, single, never };
struct ScalarFacts {
  std::string_view text;
  ScalarKind kind;
  ScalarArithmetic arithmetic;
  int bytes, bits;
  int mantissa, lowest;  // of a float
  std::string_view kernel_type, host_type;
};
constexpr ScalarFacts kScalarFacts[] = {
#define APL_SCALAR(name, NAME, text, kind, arithmetic, bytes, bits, mantissa, lowest, kernel_type, host_type) \
  {text, ScalarKind::kind, ScalarArithmetic::arithmetic, bytes, bits, mantissa, lowest, #kernel_type, #host_type},
#include "ir/scalar_types.def"
};
constexpr const ScalarFacts& facts(ScalarType type) { return kScalarFacts[static_cast<std::size_t>(type)]; }

constexpr bool is_integer(ScalarType type) { return facts(type).kind <= ScalarKind::unsigned_integer; }
constexpr bool is_signed(ScalarType type) { return facts(type).kind == ScalarKind::signed_integer; }
constexpr bool is_float(ScalarType type) { return facts(type).kind == ScalarKind::floating; }
// A float that arrays are kept in and that is converted, but that nothing is computed with.
constexpr bool is_storage(ScalarType type) { return facts(type).arithmetic == ScalarArithmetic::never; }
constexpr int byte_size(ScalarType type) { return facts(type).bytes; }  // bool 1, unit 0
constexpr int bit_width(ScalarType type) { return facts(type).bits; }   // bool 1, unit 0
double largest_float(ScalarType type);                                  // that is finite

// A constant. Equality and hash are those of type and bits: -0.0 is not 0.0, and NaN is itself.
// There is one NaN per type, the positive quiet one: bits do not depend on which machine made it.
class Scalar {
 public:
  Scalar() = default;  // ()

  static Scalar integer(ScalarType type, std::int64_t value);  // wraps to the width of `type`
  static Scalar floating(ScalarType type, double value);       // rounds to nearest, ties to even
  static Scalar boolean(bool value);
  static Scalar unit() { return Scalar(); }
  static Scalar zero(ScalarType type) { return Scalar(type, 0); }
  static Scalar from_bits(ScalarType type, std::uint64_t bits);  // bits beyond the width are dropped

  ScalarType type() const { return type_; }
  std::uint64_t bits() const { return bits_; }  // zero-extended
  std::int64_t as_int() const;                  // integers and bool: sign- or zero-extended; u64 wraps
  double as_float() const;                      // floats: exact
  bool as_bool() const { return bits_ != 0; }   // bool

  // `3i32`, `-1i64`, `1.5f32` (the shortest text that reads back), `f32.nan`, `-f32.inf`, `true`, `()`.
  std::string to_text() const;
  // The inverse. The type suffix is required; an integer that its type cannot hold is refused.
  static std::optional<Scalar> parse(std::string_view text);

  bool operator==(const Scalar&) const = default;

 private:
  Scalar(ScalarType type, std::uint64_t bits) : type_(type), bits_(bits) {}

  ScalarType type_ = ScalarType::unit;
  std::uint64_t bits_ = 0;
};

enum class UnaryOp : std::uint8_t {
#define APL_UNARY(name, text, domain) name,
#include "ir/ops.def"
};

enum class BinaryOp : std::uint8_t {
#define APL_BINARY(name, text, domain) name,
#include "ir/ops.def"
};

enum class CompareOp : std::uint8_t {
#define APL_COMPARE(name, text, domain) name,
#include "ir/ops.def"
};

std::string_view to_text(UnaryOp op);
std::string_view to_text(BinaryOp op);
std::string_view to_text(CompareOp op);
std::optional<UnaryOp> unary_op_from_text(std::string_view text);
std::optional<BinaryOp> binary_op_from_text(std::string_view text);
std::optional<CompareOp> compare_op_from_text(std::string_view text);

// Whether `op` is defined on operands of `type`: the domain column of ir/ops.def.
bool accepts(UnaryOp op, ScalarType type);
bool accepts(BinaryOp op, ScalarType type);
bool accepts(CompareOp op, ScalarType type);

// What integer division `op` computes where the divisor is not zero: div of div and of total_div. Nullopt: `op` does
// not divide.
std::optional<BinaryOp> division_of(BinaryOp op);
// The division that cannot fail: total_div of div and of total_div.
std::optional<BinaryOp> total_division(BinaryOp op);

// nullopt where the operation has no meaning: an operand outside the domain, operands of two types, an
// integer division by zero. Integers wrap. div and mod round to minus infinity, quot and rem to zero. The total
// divisions give 0 for the divisor 0.
// Shifts by the width or more (a negative amount counts as more) leave 0, or copies of the sign for shr of
// a signed number. Integer pow with a negative exponent is the integer part: 0, or +-1 for the base +-1;
// for the base 0, which has none, it is 0. clz and popc give the operand's type.
// f32 is computed in float; floats of 16 bits in float, then rounded once; nextafter steps in the type itself.
std::optional<Scalar> evaluate(UnaryOp op, const Scalar& a);
std::optional<Scalar> evaluate(BinaryOp op, const Scalar& a, const Scalar& b);
std::optional<Scalar> evaluate(CompareOp op, const Scalar& a, const Scalar& b);  // a bool; false < true

// Integer to integer wraps; float to integer truncates and saturates, a negative number to an unsigned type by way of
// the signed one of that width, NaN and the infinities give 0; to a float rounds; to bool asks whether it is not 0 (NaN
// is not); bool counts as 0 or 1, unit as 0. `same_bits`: the bits stay.
Scalar convert(const Scalar& value, ScalarType to, bool same_bits = false);

// IEEE 754's minNum and maxNum, of comparisons; of equal ones the first, as the C library gives it: std::fmin leaves it
// to the compiler's options which of two zeros is the smaller one.
template <class Float>
constexpr Float smaller_number(Float a, Float b) {
  return a != a ? b : b < a ? b : a;  // NOLINT(misc-redundant-expression): NaN
}
template <class Float>
constexpr Float larger_number(Float a, Float b) {
  return a != a ? b : b > a ? b : a;  // NOLINT(misc-redundant-expression): NaN
}

}  // namespace apl

template <>
struct std::hash<apl::Scalar> {
  std::size_t operator()(const apl::Scalar& value) const noexcept {
    return std::hash<std::uint64_t>{}(value.bits() * 31 + static_cast<std::uint64_t>(value.type()));
  }
};
