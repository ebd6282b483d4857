// Scalar types and constants: representation, rounding, text. The operations are in ir/scalar_evaluate.cpp.
#include "ir/scalar.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>

namespace apl {
namespace {

std::uint64_t low_bits(std::uint64_t bits, int count) {
  return count == 64 ? bits : bits & ((std::uint64_t{1} << count) - 1);
}

// An IEEE binary format: `mantissa` stored bits, exponents from `lowest` (also of subnormals) to -`lowest` + 1.
struct FloatFormat {
  int mantissa;
  int lowest;
  std::uint64_t sign_bit() const { return infinity() + (std::uint64_t{1} << mantissa); }
  std::uint64_t infinity() const { return static_cast<std::uint64_t>(3 - 2 * lowest) << mantissa; }
};

FloatFormat format_of(ScalarType type) { return {facts(type).mantissa, facts(type).lowest}; }

std::uint64_t quiet_nan(ScalarType type) {
  const FloatFormat format = format_of(type);
  return format.infinity() | (std::uint64_t{1} << (format.mantissa - 1));
}

// Counts in units of the last place. The encodings of the numbers of one sign are consecutive, so a
// mantissa that rounds up to the next power of two, to the first normal number or to infinity, carries into the
// exponent.
std::uint64_t encode(double value, FloatFormat format) {
  const std::uint64_t sign = std::signbit(value) ? format.sign_bit() : 0;
  const double magnitude = std::fabs(value);
  if (magnitude == 0) return sign;
  if (std::isinf(magnitude)) return sign | format.infinity();
  const int exponent = std::max(std::ilogb(magnitude), format.lowest);
  const auto units = static_cast<std::uint64_t>(std::nearbyint(std::ldexp(magnitude, format.mantissa - exponent)));
  if (exponent > 1 - format.lowest) return sign | format.infinity();
  return sign | (units + (static_cast<std::uint64_t>(exponent - format.lowest) << format.mantissa));
}

double decode(std::uint64_t bits, FloatFormat format) {
  const std::uint64_t magnitude = bits & (format.sign_bit() - 1);
  const auto exponent = static_cast<int>(magnitude >> format.mantissa);
  const std::uint64_t fraction = low_bits(magnitude, format.mantissa);
  double value = 0;
  if (magnitude > format.infinity()) {
    value = std::numeric_limits<double>::quiet_NaN();
  } else if (magnitude == format.infinity()) {
    value = std::numeric_limits<double>::infinity();
  } else {
    const std::uint64_t implicit = exponent == 0 ? 0 : std::uint64_t{1} << format.mantissa;
    value = std::ldexp(static_cast<double>(implicit + fraction),
                       std::max(exponent, 1) - 1 + format.lowest - format.mantissa);
  }
  return (bits & format.sign_bit()) != 0 ? -value : value;
}

template <class Float>
std::optional<Float> read_whole(std::string_view text) {
  Float value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  // A magnitude that the type cannot hold is refused; written infinities have their own form.
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The shortest decimal text that reads back as `value`, with a point or an exponent.
std::string shortest(const Scalar& value) {
  const auto marked = [](std::string text) {
    return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
  };
  if (value.type() == ScalarType::f64) return marked(fmt::format("{}", value.as_float()));
  if (value.type() == ScalarType::f32) return marked(fmt::format("{}", static_cast<float>(value.as_float())));
  // fmt knows no 16-bit formats; 5 digits tell all their numbers apart.
  for (int digits = 1;; ++digits) {
    std::string text = fmt::format("{:.{}e}", value.as_float(), digits - 1);
    const double rounded = *read_whole<double>(text);
    if (Scalar::floating(value.type(), rounded) == value) return marked(fmt::format("{}", rounded));
  }
}

std::optional<Scalar> parse_float(ScalarType type, std::string_view digits) {
  if (digits.find_first_not_of("0123456789.eE+-") != std::string_view::npos) return std::nullopt;
  if (type == ScalarType::f32) {  // not by way of double, which would round twice
    const auto value = read_whole<float>(digits);
    return value ? std::optional(Scalar::floating(type, static_cast<double>(*value))) : std::nullopt;
  }
  const auto value = read_whole<double>(digits);
  return value ? std::optional(Scalar::floating(type, *value)) : std::nullopt;
}

std::optional<Scalar> parse_integer(ScalarType type, std::string_view digits) {
  if (is_signed(type)) {
    const auto value = read_whole<std::int64_t>(digits);
    if (!value) return std::nullopt;
    const Scalar scalar = Scalar::integer(type, *value);
    return scalar.as_int() == *value ? std::optional(scalar) : std::nullopt;
  }
  const auto value = read_whole<std::uint64_t>(digits);
  if (!value || low_bits(*value, bit_width(type)) != *value) return std::nullopt;
  return Scalar::from_bits(type, *value);
}

}  // namespace

std::string_view to_text(ScalarType type) { return facts(type).text; }

std::optional<ScalarType> scalar_type_from_text(std::string_view text) {
  for (std::size_t i = 0; i < std::size(kScalarFacts); ++i) {
    if (kScalarFacts[i].text == text) return static_cast<ScalarType>(i);
  }
  return std::nullopt;
}

double largest_float(ScalarType type) { return decode(format_of(type).infinity() - 1, format_of(type)); }

Scalar Scalar::integer(ScalarType type, std::int64_t value) {
  return from_bits(type, static_cast<std::uint64_t>(value));
}

Scalar Scalar::floating(ScalarType type, double value) {
  if (std::isnan(value)) return Scalar(type, quiet_nan(type));
  if (type == ScalarType::f64) return Scalar(type, std::bit_cast<std::uint64_t>(value));
  return Scalar(type, encode(value, format_of(type)));
}

Scalar Scalar::boolean(bool value) { return Scalar(ScalarType::boolean, value ? 1 : 0); }

Scalar Scalar::from_bits(ScalarType type, std::uint64_t bits) {
  if (type == ScalarType::unit) return unit();
  bits = low_bits(bits, bit_width(type));
  if (is_float(type)) {
    const FloatFormat format = format_of(type);
    if ((bits & (format.sign_bit() - 1)) > format.infinity()) bits = quiet_nan(type);
  }
  return Scalar(type, bits);
}

std::int64_t Scalar::as_int() const {
  if (!is_signed(type_)) return static_cast<std::int64_t>(bits_);
  const int unused = 64 - bit_width(type_);
  return static_cast<std::int64_t>(bits_ << unused) >> unused;
}

double Scalar::as_float() const {
  if (type_ == ScalarType::f64) return std::bit_cast<double>(bits_);
  if (type_ == ScalarType::f32) return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits_)));
  return decode(bits_, format_of(type_));
}

std::string Scalar::to_text() const {
  const std::string_view suffix = apl::to_text(type_);
  if (type_ == ScalarType::unit) return "()";
  if (type_ == ScalarType::boolean) return as_bool() ? "true" : "false";
  if (is_signed(type_)) return fmt::format("{}{}", as_int(), suffix);
  if (is_integer(type_)) return fmt::format("{}{}", bits_, suffix);
  const double value = as_float();
  if (std::isnan(value)) return fmt::format("{}.nan", suffix);
  if (std::isinf(value)) return fmt::format("{}{}.inf", value < 0 ? "-" : "", suffix);
  return shortest(*this).append(suffix);
}

std::optional<Scalar> Scalar::parse(std::string_view text) {
  if (text == "()") return unit();
  if (text == "true") return boolean(true);
  if (text == "false") return boolean(false);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < std::size(kScalarFacts); ++i) {
    const auto type = static_cast<ScalarType>(i);
    const std::string_view suffix = kScalarFacts[i].text;
    if (is_float(type)) {
      if (text == fmt::format("{}.nan", suffix)) return Scalar(type, quiet_nan(type));
      if (text == fmt::format("{}.inf", suffix)) return floating(type, kInfinity);
      if (text == fmt::format("-{}.inf", suffix)) return floating(type, -kInfinity);
    }
    // `1bf16` ends in f16, but what is left before that is no number.
    if (!text.ends_with(suffix)) continue;
    const std::string_view digits = text.substr(0, text.size() - suffix.size());
    if (const auto value = is_float(type)     ? parse_float(type, digits)
                           : is_integer(type) ? parse_integer(type, digits)
                                              : std::nullopt) {
      return value;
    }
  }
  return std::nullopt;
}

}  // namespace apl
