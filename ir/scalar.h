// Scalar types, scalar constants, and the meaning of every scalar operation of ir/ops.def.
// The interpreter and constant folding both call evaluate() and convert(); generated code must agree with them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace apl {

enum class ScalarType : std::uint8_t { i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64, boolean, unit };

std::string_view to_text(ScalarType type);  // "i32", "bool", "unit"
std::optional<ScalarType> scalar_type_from_text(std::string_view text);

constexpr bool is_integer(ScalarType type) { return type <= ScalarType::u64; }
constexpr bool is_signed(ScalarType type) { return type <= ScalarType::i64; }
constexpr bool is_float(ScalarType type) { return type >= ScalarType::f16 && type <= ScalarType::f64; }
int byte_size(ScalarType type);  // bool 1, unit 0
int bit_width(ScalarType type);  // bool 1, unit 0

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

// nullopt where the operation has no meaning: an operand outside the domain, operands of two types, an
// integer division by zero. Integers wrap. div and mod round to minus infinity, quot and rem to zero.
// Shifts by the width or more (a negative amount counts as more) leave 0, or copies of the sign for shr of
// a signed number. Integer pow with a negative exponent is the integer part: 0, or +-1 for the base +-1;
// for the base 0, which has none, it is 0. clz and popc give the operand's type.
// f32 is computed in float; f16 and bf16 in float, then rounded once; nextafter steps in the type itself.
std::optional<Scalar> evaluate(UnaryOp op, const Scalar& a);
std::optional<Scalar> evaluate(BinaryOp op, const Scalar& a, const Scalar& b);
std::optional<Scalar> evaluate(CompareOp op, const Scalar& a, const Scalar& b);  // a bool; false < true

// Integer to integer wraps; float to integer truncates and saturates, a negative number to an unsigned type by way of
// the signed one of that width, NaN and the infinities give 0; to a float rounds; to bool asks whether it is not 0 (NaN
// is not); bool counts as 0 or 1, unit as 0. `same_bits`: the bits stay.
Scalar convert(const Scalar& value, ScalarType to, bool same_bits = false);

}  // namespace apl

template <>
struct std::hash<apl::Scalar> {
  std::size_t operator()(const apl::Scalar& value) const noexcept {
    return std::hash<std::uint64_t>{}(value.bits() * 31 + static_cast<std::uint64_t>(value.type()));
  }
};
