// What each scalar operation of ir/ops.def does to constants.
#include <bit>
#include <cmath>
#include <limits>
#include <string_view>

#include "ir/scalar.h"

namespace apl {
namespace {

bool in_domain(std::string_view domain, ScalarType type) {
  if (domain == "num") return is_integer(type) || is_float(type);
  if (domain == "int") return is_integer(type);
  if (domain == "flt") return is_float(type);
  if (domain == "bit") return is_integer(type) || type == ScalarType::boolean;
  return domain == "any";
}

struct OpInfo {
  std::string_view text;
  std::string_view domain;
};

constexpr OpInfo kUnary[] = {
#define APL_UNARY(name, text, domain) {text, #domain},
#include "ir/ops.def"
};

constexpr OpInfo kBinary[] = {
#define APL_BINARY(name, text, domain) {text, #domain},
#include "ir/ops.def"
};

constexpr OpInfo kCompare[] = {
#define APL_COMPARE(name, text, domain) {text, #domain},
#include "ir/ops.def"
};

template <class Op, std::size_t n>
std::optional<Op> find(const OpInfo (&table)[n], std::string_view text) {
  for (std::size_t i = 0; i < n; ++i) {
    if (table[i].text == text) return static_cast<Op>(i);
  }
  return std::nullopt;
}

// Operations are switched over without `default`: one that is forgotten does not compile.

// Integers. Everything that wraps is computed in uint64_t, where C++ defines it; Scalar::from_bits cuts
// the result to the width. Signed division works on the sign-extended numbers.

__extension__ using Wide = __int128;
__extension__ using UnsignedWide = unsigned __int128;

struct Division {
  std::int64_t quotient;
  std::int64_t remainder;
};

// Towards zero. The one overflow, lowest / -1, wraps.
Division divide(std::int64_t a, std::int64_t b) {
  if (b == -1) return {static_cast<std::int64_t>(-static_cast<std::uint64_t>(a)), 0};
  return {a / b, a % b};
}

Division divide_floor(std::int64_t a, std::int64_t b) {
  Division result = divide(a, b);
  if (result.remainder != 0 && (result.remainder < 0) != (b < 0)) {
    result.quotient -= 1;
    result.remainder += b;
  }
  return result;
}

std::uint64_t power(std::uint64_t base, std::uint64_t exponent) {
  std::uint64_t result = 1;
  for (; exponent != 0; exponent >>= 1, base *= base) {
    if (exponent & 1) result *= base;
  }
  return result;
}

std::uint64_t signed_power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0 && base != 1 && base != -1) return 0;
  return power(static_cast<std::uint64_t>(base), static_cast<std::uint64_t>(exponent));  // +-1: only parity counts
}

std::optional<std::uint64_t> integer_division(BinaryOp op, const Scalar& a, const Scalar& b) {
  const std::optional<BinaryOp> division = division_of(op);
  if (b.bits() == 0) return division == op ? std::nullopt : std::optional<std::uint64_t>(0);
  const bool floors = division == BinaryOp::div || division == BinaryOp::mod;
  const bool quotient = division == BinaryOp::div || division == BinaryOp::quot;
  if (!is_signed(a.type())) return quotient ? a.bits() / b.bits() : a.bits() % b.bits();
  const Division result = floors ? divide_floor(a.as_int(), b.as_int()) : divide(a.as_int(), b.as_int());
  return static_cast<std::uint64_t>(quotient ? result.quotient : result.remainder);
}

std::optional<std::uint64_t> integer_binary(BinaryOp op, const Scalar& a, const Scalar& b) {
  const bool is_signed_type = is_signed(a.type());
  const auto width = static_cast<std::uint64_t>(bit_width(a.type()));
  const std::uint64_t x = a.bits();
  const std::uint64_t y = b.bits();
  const std::int64_t sx = a.as_int();
  const std::int64_t sy = b.as_int();
  const bool less = is_signed_type ? sx < sy : x < y;
  switch (op) {
    case BinaryOp::add: return x + y;
    case BinaryOp::sub: return x - y;
    case BinaryOp::mul: return x * y;
    case BinaryOp::mul_hi:
      if (is_signed_type) return static_cast<std::uint64_t>((static_cast<Wide>(sx) * sy) >> width);
      return static_cast<std::uint64_t>((static_cast<UnsignedWide>(x) * y) >> width);
    case BinaryOp::pow: return is_signed_type ? signed_power(sx, sy) : power(x, y);
    case BinaryOp::min: return less ? x : y;
    case BinaryOp::max: return less ? y : x;
    case BinaryOp::conj: return x & y;
    case BinaryOp::disj: return x | y;
    case BinaryOp::exor: return x ^ y;
    case BinaryOp::shl: return y < width ? x << y : 0;
    case BinaryOp::shr:
      if (is_signed_type) return static_cast<std::uint64_t>(sx >> (y < width ? y : width - 1));
      return y < width ? x >> y : 0;
    case BinaryOp::div:
    case BinaryOp::quot:
    case BinaryOp::mod:
    case BinaryOp::rem:
    case BinaryOp::total_div:
    case BinaryOp::total_quot:
    case BinaryOp::total_mod:
    case BinaryOp::total_rem: return integer_division(op, a, b);
    case BinaryOp::atan2:  // of floats: accepts() lets none through
    case BinaryOp::hypot:
    case BinaryOp::copysign:
    case BinaryOp::nextafter:
    case BinaryOp::ldexp: return std::nullopt;
  }
  return std::nullopt;
}

std::uint64_t integer_unary(UnaryOp op, const Scalar& a) {
  const std::uint64_t x = a.bits();
  const bool negative = is_signed(a.type()) && a.as_int() < 0;
  switch (op) {
    case UnaryOp::neg: return -x;
    case UnaryOp::complement: return ~x;
    case UnaryOp::abs: return negative ? -x : x;
    case UnaryOp::sgn: return negative ? ~std::uint64_t{0} : x != 0;
    case UnaryOp::clz: return static_cast<std::uint64_t>(std::countl_zero(x) - (64 - bit_width(a.type())));
    case UnaryOp::popc: return static_cast<std::uint64_t>(std::popcount(x));
    case UnaryOp::sqrt:  // of floats: accepts() lets none through
    case UnaryOp::rsqrt:
    case UnaryOp::exp:
    case UnaryOp::log:
    case UnaryOp::log2:
    case UnaryOp::log10:
    case UnaryOp::log1p:
    case UnaryOp::cbrt:
    case UnaryOp::sin:
    case UnaryOp::cos:
    case UnaryOp::tan:
    case UnaryOp::asin:
    case UnaryOp::acos:
    case UnaryOp::atan:
    case UnaryOp::sinh:
    case UnaryOp::cosh:
    case UnaryOp::tanh:
    case UnaryOp::asinh:
    case UnaryOp::acosh:
    case UnaryOp::atanh:
    case UnaryOp::erf:
    case UnaryOp::erfc:
    case UnaryOp::gamma:
    case UnaryOp::lgamma:
    case UnaryOp::floor:
    case UnaryOp::ceil:
    case UnaryOp::round: break;
  }
  return 0;
}

// A negative number is saturated as one of the signed type of that width, whose bits an unsigned one takes.
std::uint64_t truncate_saturate(double value, ScalarType to) {
  if (!std::isfinite(value)) return 0;
  const int width = bit_width(to);
  const int magnitude_bits = is_signed(to) ? width - 1 : width;
  const double whole = std::trunc(value);
  // The highest number plus 1, and the lowest one, are exact in double.
  if (whole >= std::ldexp(1.0, magnitude_bits)) return ~std::uint64_t{0} >> (64 - magnitude_bits);
  if (whole < -std::ldexp(1.0, width - 1)) return std::uint64_t{1} << (width - 1);
  return whole < 0 ? static_cast<std::uint64_t>(static_cast<std::int64_t>(whole)) : static_cast<std::uint64_t>(whole);
}

// The neighbour of `a` towards `b`: the encodings of the numbers of one sign are consecutive.
Scalar next_after(const Scalar& a, const Scalar& b) {
  const double x = a.as_float();
  const double y = b.as_float();
  if (std::isnan(x) || std::isnan(y)) return Scalar::floating(a.type(), x + y);
  if (x == y) return b;
  const std::uint64_t sign = y < 0 ? std::uint64_t{1} << (bit_width(a.type()) - 1) : 0;
  if (x == 0) return Scalar::from_bits(a.type(), sign + 1);
  return Scalar::from_bits(a.type(), (x < y) == (x > 0) ? a.bits() + 1 : a.bits() - 1);
}

// Floats, in the type that the arithmetic is done in: float or double.

template <class Float>
Float float_binary(BinaryOp op, Float a, Float b) {
  switch (op) {
    case BinaryOp::add: return a + b;
    case BinaryOp::sub: return a - b;
    case BinaryOp::mul: return a * b;
    case BinaryOp::div: return a / b;
    case BinaryOp::mod: return std::fmod(a, b);
    case BinaryOp::pow: return std::pow(a, b);
    case BinaryOp::min: return smaller_number(a, b);
    case BinaryOp::max: return larger_number(a, b);
    case BinaryOp::atan2: return std::atan2(a, b);
    case BinaryOp::hypot: return std::hypot(a, b);
    case BinaryOp::copysign: return std::copysign(a, b);
    case BinaryOp::ldexp:
      return std::ldexp(a, static_cast<int>(truncate_saturate(static_cast<double>(b), ScalarType::i32)));
    case BinaryOp::nextafter: break;  // next_after
    case BinaryOp::mul_hi:            // of integers: accepts() lets none through
    case BinaryOp::quot:
    case BinaryOp::rem:
    case BinaryOp::total_div:
    case BinaryOp::total_quot:
    case BinaryOp::total_mod:
    case BinaryOp::total_rem:
    case BinaryOp::conj:
    case BinaryOp::disj:
    case BinaryOp::exor:
    case BinaryOp::shl:
    case BinaryOp::shr: break;
  }
  return 0;
}

template <class Float>
Float float_unary(UnaryOp op, Float a) {
  switch (op) {
    case UnaryOp::neg: return -a;
    case UnaryOp::abs: return std::fabs(a);
    case UnaryOp::sgn: return std::isnan(a) ? a : static_cast<Float>((a > 0) - (a < 0));
    case UnaryOp::sqrt: return std::sqrt(a);
    case UnaryOp::rsqrt: return 1 / std::sqrt(a);
    case UnaryOp::exp: return std::exp(a);
    case UnaryOp::log: return std::log(a);
    case UnaryOp::sin: return std::sin(a);
    case UnaryOp::cos: return std::cos(a);
    case UnaryOp::tan: return std::tan(a);
    case UnaryOp::floor: return std::floor(a);
    case UnaryOp::ceil: return std::ceil(a);
    case UnaryOp::round: return std::nearbyint(a);
    case UnaryOp::log2: return std::log2(a);
    case UnaryOp::log10: return std::log10(a);
    case UnaryOp::log1p: return std::log1p(a);
    case UnaryOp::cbrt: return std::cbrt(a);
    case UnaryOp::asin: return std::asin(a);
    case UnaryOp::acos: return std::acos(a);
    case UnaryOp::atan: return std::atan(a);
    case UnaryOp::sinh: return std::sinh(a);
    case UnaryOp::cosh: return std::cosh(a);
    case UnaryOp::tanh: return std::tanh(a);
    case UnaryOp::asinh: return std::asinh(a);
    case UnaryOp::acosh: return std::acosh(a);
    case UnaryOp::atanh: return std::atanh(a);
    case UnaryOp::erf: return std::erf(a);
    case UnaryOp::erfc: return std::erfc(a);
    case UnaryOp::gamma: return std::tgamma(a);
    case UnaryOp::lgamma: return std::lgamma(a);
    case UnaryOp::complement:  // of integers: accepts() lets none through
    case UnaryOp::clz:
    case UnaryOp::popc: break;
  }
  return 0;
}

// Rounds once: straight to float, where going through double would round twice.
Scalar integer_to_float(const Scalar& value, ScalarType to) {
  if (to == ScalarType::f32) {
    const float rounded =
        is_signed(value.type()) ? static_cast<float>(value.as_int()) : static_cast<float>(value.bits());
    return Scalar::floating(to, static_cast<double>(rounded));
  }
  return Scalar::floating(
      to, is_signed(value.type()) ? static_cast<double>(value.as_int()) : static_cast<double>(value.bits()));
}

}  // namespace

std::string_view to_text(UnaryOp op) { return kUnary[static_cast<std::size_t>(op)].text; }
std::string_view to_text(BinaryOp op) { return kBinary[static_cast<std::size_t>(op)].text; }
std::string_view to_text(CompareOp op) { return kCompare[static_cast<std::size_t>(op)].text; }

std::optional<UnaryOp> unary_op_from_text(std::string_view text) { return find<UnaryOp>(kUnary, text); }
std::optional<BinaryOp> binary_op_from_text(std::string_view text) { return find<BinaryOp>(kBinary, text); }
std::optional<CompareOp> compare_op_from_text(std::string_view text) { return find<CompareOp>(kCompare, text); }

bool accepts(UnaryOp op, ScalarType type) { return in_domain(kUnary[static_cast<std::size_t>(op)].domain, type); }
bool accepts(BinaryOp op, ScalarType type) { return in_domain(kBinary[static_cast<std::size_t>(op)].domain, type); }
bool accepts(CompareOp op, ScalarType type) { return in_domain(kCompare[static_cast<std::size_t>(op)].domain, type); }

std::optional<BinaryOp> division_of(BinaryOp op) {
  switch (op) {
    case BinaryOp::div:
    case BinaryOp::total_div: return BinaryOp::div;
    case BinaryOp::quot:
    case BinaryOp::total_quot: return BinaryOp::quot;
    case BinaryOp::mod:
    case BinaryOp::total_mod: return BinaryOp::mod;
    case BinaryOp::rem:
    case BinaryOp::total_rem: return BinaryOp::rem;
    default: return std::nullopt;
  }
}

std::optional<BinaryOp> total_division(BinaryOp op) {
  switch (division_of(op).value_or(op)) {
    case BinaryOp::div: return BinaryOp::total_div;
    case BinaryOp::quot: return BinaryOp::total_quot;
    case BinaryOp::mod: return BinaryOp::total_mod;
    case BinaryOp::rem: return BinaryOp::total_rem;
    default: return std::nullopt;
  }
}

std::optional<Scalar> evaluate(UnaryOp op, const Scalar& a) {
  const ScalarType type = a.type();
  if (!accepts(op, type)) return std::nullopt;
  if (type == ScalarType::f64) return Scalar::floating(type, float_unary(op, a.as_float()));
  if (is_float(type)) return Scalar::floating(type, float_unary(op, static_cast<float>(a.as_float())));
  return Scalar::from_bits(type, integer_unary(op, a));
}

std::optional<Scalar> evaluate(BinaryOp op, const Scalar& a, const Scalar& b) {
  const ScalarType type = a.type();
  if (b.type() != type || !accepts(op, type)) return std::nullopt;
  if (op == BinaryOp::nextafter) return next_after(a, b);
  if (type == ScalarType::f64) return Scalar::floating(type, float_binary(op, a.as_float(), b.as_float()));
  if (is_float(type)) {
    return Scalar::floating(type, float_binary(op, static_cast<float>(a.as_float()), static_cast<float>(b.as_float())));
  }
  const auto bits = integer_binary(op, a, b);
  return bits ? std::optional(Scalar::from_bits(type, *bits)) : std::nullopt;
}

std::optional<Scalar> evaluate(CompareOp op, const Scalar& a, const Scalar& b) {
  const ScalarType type = a.type();
  if (b.type() != type || !accepts(op, type)) return std::nullopt;
  bool equal = a == b;
  bool less = is_signed(type) ? a.as_int() < b.as_int() : a.bits() < b.bits();
  if (is_float(type)) {
    equal = a.as_float() == b.as_float();
    less = a.as_float() < b.as_float();
  }
  switch (op) {
    case CompareOp::eq: return Scalar::boolean(equal);
    case CompareOp::ne: return Scalar::boolean(!equal);
    case CompareOp::lt: return Scalar::boolean(less);
    case CompareOp::le: return Scalar::boolean(less || equal);
  }
  return std::nullopt;
}

Scalar convert(const Scalar& value, ScalarType to, bool same_bits) {
  if (same_bits) return Scalar::from_bits(to, value.bits());
  const ScalarType from = value.type();
  if (from == to) return value;
  if (is_float(from)) {
    const double number = value.as_float();
    if (is_float(to)) return Scalar::floating(to, number);
    if (to == ScalarType::boolean) return Scalar::boolean(number != 0);
    return Scalar::from_bits(to, to == ScalarType::unit ? 0 : truncate_saturate(number, to));
  }
  if (is_float(to)) return integer_to_float(value, to);
  if (to == ScalarType::boolean) return Scalar::boolean(value.bits() != 0);
  return Scalar::integer(to, value.as_int());
}

}  // namespace apl
