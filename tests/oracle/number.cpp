#include "tests/oracle/number.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace apl::oracle {
namespace {

__extension__ using Wide = __int128;

// To a multiple of the distance of neighbours there; ties to even, as the processor rounds.
double round_to_half(double x) {
  if (x == 0 || !std::isfinite(x)) return x;
  int exponent = 0;
  std::frexp(x, &exponent);  // |x| in [2^(exponent-1), 2^exponent)
  const int lowest_bit = std::max(exponent - 11, -24);
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(x, -lowest_bit)), lowest_bit);
  return std::abs(rounded) > 65504 ? std::copysign(std::numeric_limits<double>::infinity(), x) : rounded;
}

double rounded(ScalarType type, double x) {
  if (type == ScalarType::f32) return static_cast<double>(static_cast<float>(x));
  return type == ScalarType::f16 ? round_to_half(x) : x;
}

// The number as mathematics has it.
Wide value_of(const Number& x) {
  return is_signed_type(x.type) ? Wide(x.whole) : Wide(static_cast<std::uint64_t>(x.whole));
}

Number wrapped(ScalarType type, Wide value) {
  return integer(type, static_cast<std::int64_t>(static_cast<std::uint64_t>(value)));
}

Wide floor_quotient(Wide a, Wide b) {
  const Wide q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

Number power(const Number& x, const Number& y) {
  const Wide exponent = value_of(y);
  if (exponent < 0) throw Failure(fmt::format("Negative exponent: {}", static_cast<std::int64_t>(exponent)));
  std::uint64_t result = 1, base = static_cast<std::uint64_t>(x.whole);
  for (auto left = static_cast<std::uint64_t>(exponent); left != 0; left >>= 1, base *= base)
    if (left & 1) result *= base;
  return integer(x.type, static_cast<std::int64_t>(result));
}

Number shifted(BinaryOp op, const Number& x, const Number& y) {
  const Wide amount = value_of(y);
  const int width = width_of(x.type);
  const bool out = amount < 0 || amount >= width;
  const Wide mask = (Wide(1) << width) - 1;
  switch (op) {
    case BinaryOp::shl:
      return integer(
          x.type, out ? 0 : static_cast<std::int64_t>(static_cast<std::uint64_t>(x.whole) << static_cast<int>(amount)));
    case BinaryOp::shr_logical:
      return out ? integer(x.type, 0) : wrapped(x.type, (x.whole & mask) >> static_cast<int>(amount));
    default:
      if (out) return integer(x.type, value_of(x) < 0 ? -1 : 0);
      return wrapped(x.type, value_of(x) >> static_cast<int>(amount));
  }
}

Number of_integers(BinaryOp op, const Number& x, const Number& y) {
  const Wide a = value_of(x), b = value_of(y);
  switch (op) {
    case BinaryOp::add: return wrapped(x.type, a + b);
    case BinaryOp::sub: return wrapped(x.type, a - b);
    case BinaryOp::mul:
      return integer(
          x.type, static_cast<std::int64_t>(static_cast<std::uint64_t>(x.whole) * static_cast<std::uint64_t>(y.whole)));
    case BinaryOp::pow: return power(x, y);
    case BinaryOp::band: return integer(x.type, x.whole & y.whole);
    case BinaryOp::bor: return integer(x.type, x.whole | y.whole);
    case BinaryOp::bxor: return integer(x.type, x.whole ^ y.whole);
    case BinaryOp::shl:
    case BinaryOp::shr:
    case BinaryOp::shr_logical: return shifted(op, x, y);
    case BinaryOp::min: return a < b ? x : y;
    case BinaryOp::max: return a < b ? y : x;
    case BinaryOp::mul_hi:
      if (is_signed_type(x.type)) return wrapped(x.type, (a * b) >> width_of(x.type));
      __extension__ using UnsignedWide = unsigned __int128;
      return wrapped(
          x.type, static_cast<Wide>((static_cast<UnsignedWide>(a) * static_cast<UnsignedWide>(b)) >> width_of(x.type)));
    default: break;
  }
  if (b == 0) throw Failure("division by zero");
  switch (op) {
    case BinaryOp::div: return wrapped(x.type, floor_quotient(a, b));
    case BinaryOp::mod: return wrapped(x.type, a - floor_quotient(a, b) * b);
    case BinaryOp::quot: return wrapped(x.type, a / b);
    default: return wrapped(x.type, a % b);
  }
}

Number of_reals(BinaryOp op, const Number& x, const Number& y) {
  const double a = x.real, b = y.real;
  // With twice the digits and two more, rounding twice is rounding once.
  switch (op) {
    case BinaryOp::add: return real(x.type, a + b);
    case BinaryOp::sub: return real(x.type, a - b);
    case BinaryOp::mul: return real(x.type, a * b);
    case BinaryOp::div: return real(x.type, a / b);
    case BinaryOp::mod: return real(x.type, std::fmod(a, b));
    case BinaryOp::min: return std::isnan(a) ? y : std::isnan(b) ? x : a < b ? x : y;
    case BinaryOp::max: return std::isnan(a) ? y : std::isnan(b) ? x : a < b ? y : x;
    default: return real(x.type, std::copysign(a, b));
  }
}

int compare(const Number& x, const Number& y) {  // 2: neither less, equal nor greater
  if (is_real(x.type)) return x.real < y.real ? -1 : x.real > y.real ? 1 : x.real == y.real ? 0 : 2;
  return value_of(x) < value_of(y) ? -1 : value_of(x) > value_of(y) ? 1 : 0;
}

// Towards zero; what is no number, or infinite, gives 0; out of range, the nearest integer; a negative one becomes
// unsigned by way of the signed type of the width.
Number to_integer(double x, ScalarType to) {
  if (!std::isfinite(x)) return integer(to, 0);
  const int width = width_of(to);
  const Wide lowest = -(Wide(1) << (width - 1));
  const Wide highest = is_signed_type(to) ? -lowest - 1 : (Wide(1) << width) - 1;
  const double whole = std::trunc(x);
  if (whole <= static_cast<double>(lowest)) return wrapped(to, lowest);
  if (whole >= static_cast<double>(highest)) return wrapped(to, highest);
  return wrapped(to, static_cast<Wide>(whole));
}

double to_real(const Number& x, ScalarType to) {
  if (to != ScalarType::f32) return static_cast<double>(value_of(x));
  return static_cast<double>(is_signed_type(x.type) ? static_cast<float>(x.whole)
                                                    : static_cast<float>(static_cast<std::uint64_t>(x.whole)));
}

Number of_real(UnaryOp op, const Number& x) {
  const double a = x.real;
  switch (op) {
    case UnaryOp::neg: return real(x.type, -a);
    case UnaryOp::abs: return real(x.type, std::fabs(a));
    case UnaryOp::sgn: return real(x.type, std::isnan(a) ? a : a > 0 ? 1 : a < 0 ? -1 : 0);
    case UnaryOp::sqrt: return real(x.type, std::sqrt(a));
    case UnaryOp::floor: return real(x.type, std::floor(a));
    case UnaryOp::ceil: return real(x.type, std::ceil(a));
    case UnaryOp::round: return real(x.type, std::nearbyint(a));
    case UnaryOp::isnan: return boolean(std::isnan(a));
    case UnaryOp::isinf: return boolean(std::isinf(a));
    default: {  // trunc, by way of the integers as wide
      const ScalarType whole = x.type == ScalarType::f16   ? ScalarType::i16
                               : x.type == ScalarType::f32 ? ScalarType::i32
                                                           : ScalarType::i64;
      return convert(to_integer(a, whole), x.type);
    }
  }
}

}  // namespace

bool is_real(ScalarType type) { return type == ScalarType::f16 || type == ScalarType::f32 || type == ScalarType::f64; }
bool is_whole(ScalarType type) { return !is_real(type) && type != ScalarType::boolean; }

int width_of(ScalarType type) {
  switch (type) {
    case ScalarType::boolean: return 1;
    case ScalarType::i8:
    case ScalarType::u8: return 8;
    case ScalarType::i16:
    case ScalarType::u16:
    case ScalarType::f16: return 16;
    case ScalarType::i32:
    case ScalarType::u32:
    case ScalarType::f32: return 32;
    default: return 64;
  }
}

bool is_signed_type(ScalarType type) {
  return type == ScalarType::i8 || type == ScalarType::i16 || type == ScalarType::i32 || type == ScalarType::i64;
}

Number integer(ScalarType type, std::int64_t value) {
  const int unused = 64 - width_of(type);
  const auto shifted = static_cast<std::uint64_t>(value) << unused;
  Number x{type, 0, 0};
  x.whole = is_signed_type(type) ? static_cast<std::int64_t>(shifted) >> unused
                                 : static_cast<std::int64_t>(shifted >> unused);
  return x;
}

Number real(ScalarType type, double value) { return {type, 0, rounded(type, value)}; }
Number boolean(bool value) { return {ScalarType::boolean, value ? 1 : 0, 0}; }

std::uint64_t bits_of(const Number& x) {
  if (!is_real(x.type)) return static_cast<std::uint64_t>(x.whole) & (~std::uint64_t(0) >> (64 - width_of(x.type)));
  if (x.type == ScalarType::f64) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &x.real, sizeof bits);
    return std::isnan(x.real) ? 0x7ff8000000000000 : bits;
  }
  if (x.type == ScalarType::f32) {
    const auto narrow = static_cast<float>(x.real);
    std::uint32_t bits = 0;
    std::memcpy(&bits, &narrow, sizeof bits);
    return std::isnan(narrow) ? 0x7fc00000 : bits;
  }
  const std::uint64_t sign = std::signbit(x.real) ? 0x8000 : 0;
  const double magnitude = std::fabs(x.real);
  if (std::isnan(x.real)) return 0x7e00;
  if (std::isinf(x.real)) return sign | 0x7c00;
  if (magnitude < std::ldexp(1, -14)) return sign | static_cast<std::uint64_t>(std::ldexp(magnitude, 24));
  const int exponent = std::ilogb(magnitude);
  return sign | static_cast<std::uint64_t>(exponent + 15) << 10 |
         (static_cast<std::uint64_t>(std::ldexp(magnitude, 10 - exponent)) & 0x3ff);
}

bool same(const Number& a, const Number& b) { return a.type == b.type && bits_of(a) == bits_of(b); }

Number bits_to_float(const Number& x, ScalarType to) {
  const std::uint64_t bits = bits_of(x);
  if (to == ScalarType::f64) {
    double value = 0;
    std::memcpy(&value, &bits, sizeof value);
    return real(to, value);
  }
  if (to == ScalarType::f32) {
    const auto narrow = static_cast<std::uint32_t>(bits);
    float value = 0;
    std::memcpy(&value, &narrow, sizeof value);
    return real(to, static_cast<double>(value));
  }
  const auto mantissa = static_cast<double>(bits & 0x3ff);
  const int exponent = static_cast<int>(bits >> 10 & 31);
  double value = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  if (exponent == 31)
    value = mantissa == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  return real(to, (bits & 0x8000) != 0 ? -value : value);
}

std::string source_text(const Number& x) {
  const std::string type(apl::to_text(x.type));
  if (x.type == ScalarType::boolean) return x.is_true() ? "true" : "false";
  if (!is_real(x.type)) {
    if (!is_signed_type(x.type)) return fmt::format("{}{}", static_cast<std::uint64_t>(x.whole), type);
    if (x.whole >= 0) return fmt::format("{}{}", x.whole, type);
    return fmt::format("(-{}{})", static_cast<std::uint64_t>(0) - static_cast<std::uint64_t>(x.whole), type);
  }
  if (std::isnan(x.real)) return type + ".nan";
  const double magnitude = std::fabs(x.real);
  std::string text = std::isinf(x.real) ? type + ".inf" : fmt::format("{:.17g}", magnitude);
  if (!std::isinf(x.real)) text += (text.find_first_of(".e") == std::string::npos ? ".0" : "") + type;
  return std::signbit(x.real) ? "(-" + text + ")" : text;
}

Number apply(UnaryOp op, const Number& x) {
  if (is_real(x.type)) return of_real(op, x);
  const std::uint64_t bits = bits_of(x);
  const int width = width_of(x.type);
  switch (op) {
    case UnaryOp::neg: return wrapped(x.type, -value_of(x));
    case UnaryOp::complement: return integer(x.type, ~x.whole);
    case UnaryOp::negate_bool: return boolean(!x.is_true());
    case UnaryOp::abs: return value_of(x) < 0 ? wrapped(x.type, -value_of(x)) : x;
    case UnaryOp::sgn: return integer(x.type, value_of(x) < 0 ? -1 : value_of(x) > 0 ? 1 : 0);
    default: break;
  }
  int count = 0;
  if (op == UnaryOp::popc)
    for (int k = 0; k < width; ++k) count += static_cast<int>(bits >> k & 1);
  if (op == UnaryOp::clz)
    while (count < width && (bits >> (width - 1 - count) & 1) == 0) ++count;
  if (op == UnaryOp::ctz)
    while (count < width && (bits >> count & 1) == 0) ++count;
  return integer(ScalarType::i32, count);
}

Number apply(BinaryOp op, const Number& x, const Number& y) {
  switch (op) {
    case BinaryOp::eq: return boolean(compare(x, y) == 0);
    case BinaryOp::ne: return boolean(compare(x, y) != 0);
    case BinaryOp::lt: return boolean(compare(x, y) == -1);
    case BinaryOp::le: return boolean(compare(x, y) == -1 || compare(x, y) == 0);
    case BinaryOp::both: return boolean(x.is_true() && y.is_true());
    case BinaryOp::either: return boolean(x.is_true() || y.is_true());
    default: return is_real(x.type) ? of_reals(op, x, y) : of_integers(op, x, y);
  }
}

Number convert(const Number& x, ScalarType to) {
  if (to == ScalarType::boolean) return boolean(is_real(x.type) ? x.real != 0 : x.whole != 0);
  if (is_real(x.type)) return is_real(to) ? real(to, x.real) : to_integer(x.real, to);
  if (is_real(to)) return real(to, to_real(x, to));
  // Filled up with the sign from a signed type to a signed one, else with zeros.
  if (is_signed_type(x.type) && !is_signed_type(to)) return integer(to, static_cast<std::int64_t>(bits_of(x)));
  return integer(to, x.whole);
}

}  // namespace apl::oracle
