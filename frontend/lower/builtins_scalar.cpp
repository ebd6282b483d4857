// Scalar functions and operators of the prelude. Index arithmetic (+, -, * on i64) stays in polynomials.
#include <limits>
#include <numbers>
#include <utility>

#include "frontend/lower/lowerer.h"

namespace apl::frontend {

namespace {

// Polynomials larger than this are values of their own from there on.
constexpr std::size_t kMaxTerms = 12;
constexpr std::size_t kMaxDegree = 6;

bool is_small(const Poly& poly) {
  if (poly.terms().size() > kMaxTerms) return false;
  for (const Term& term : poly.terms())
    if (term.factors.size() > kMaxDegree) return false;
  return true;
}

std::optional<Poly> index_arithmetic(BinaryOp op, const Poly& x, const Poly& y) {
  const auto divisor = y.constant();
  switch (op) {
    case BinaryOp::add: return x + y;
    case BinaryOp::sub: return x - y;
    case BinaryOp::mul: return x * y;
    case BinaryOp::min: return poly_min(x, y);
    case BinaryOp::max: return poly_max(x, y);
    case BinaryOp::div: return divisor && *divisor > 0 ? std::optional(floor_div(x, y)) : std::nullopt;
    case BinaryOp::mod: return divisor && *divisor > 0 ? std::optional(remainder(x, y)) : std::nullopt;
    default: return std::nullopt;
  }
}

// i8 .. i64 and u8 .. u64 stand in the same order.
ScalarType unsigned_of(ScalarType type) {
  const int distance = static_cast<int>(ScalarType::u8) - static_cast<int>(ScalarType::i8);
  return static_cast<ScalarType>(static_cast<int>(type) + distance);
}

}  // namespace

StaticValue Lowerer::binary(BinaryOp op, const StaticValue& x, const StaticValue& y) {
  if (x.index() && y.index()) {
    auto result = index_arithmetic(op, *x.index(), *y.index());
    if (result && is_small(*result)) return StaticValue(*result);
  }
  const Operand a = operand(x);
  const Operand b = operand(y);
  if (a.is_constant() && b.is_constant())
    if (auto folded = evaluate(op, a.constant(), b.constant())) return scalar(*folded);
  return scalar(builder_->binary(op, a, b));
}

StaticValue Lowerer::unary(UnaryOp op, const StaticValue& x) {
  if (x.index() && op == UnaryOp::neg) return StaticValue(-*x.index());
  const Operand a = operand(x);
  if (a.is_constant())
    if (auto folded = evaluate(op, a.constant())) return scalar(*folded);
  return scalar(builder_->unary(op, a));
}

StaticValue Lowerer::compare(CompareOp op, const StaticValue& x, const StaticValue& y) {
  const Operand a = operand(x);
  const Operand b = operand(y);
  if (a.is_constant() && b.is_constant())
    if (auto folded = evaluate(op, a.constant(), b.constant())) return scalar(*folded);
  return scalar(builder_->compare(op, a, b));
}

StaticValue Lowerer::convert(ScalarType to, const StaticValue& x) {
  if (x.index() && to == ScalarType::i64) return x;
  const Operand a = operand(x);
  if (type_of(a).element == to) return x;
  // From signed to a wider unsigned type, Futhark fills with zeros.
  const ScalarType from = type_of(a).element;
  if (is_integer(to) && !is_signed(to) && is_integer(from) && is_signed(from) && bit_width(from) < bit_width(to))
    return convert(to, convert(unsigned_of(from), x));
  if (a.is_constant()) return scalar(apl::convert(a.constant(), to));
  return scalar(builder_->convert(to, a));
}

// Tuples are equal where all their parts are, arrays where all their elements are.
StaticValue Lowerer::equal(const StaticValue& x, const StaticValue& y) {
  const std::vector<Operand> a = leaves(x);
  const std::vector<Operand> b = leaves(y);
  const StaticValue yes(Operand(Scalar::boolean(true)));
  std::optional<StaticValue> result;
  for (std::size_t k = 0; k < a.size(); ++k) {
    StaticValue same = yes;
    const std::vector<Poly> dims = type_of(a[k]).shape;
    if (dims.empty()) {
      same = compare(CompareOp::eq, StaticValue(a[k]), StaticValue(b[k]));
    } else {
      const std::vector<Poly> flat = {product(dims)};
      const Values sides = {coerced(StaticValue(a[k]), flat), coerced(StaticValue(b[k]), flat)};
      const StaticValue each = screma(flat, sides, [&](const Values& rows, const std::vector<Value>&) {
        return compare(CompareOp::eq, rows[0], rows[1]);
      });
      same = reduce(builtin_function(Builtin::both), yes, each, true);
    }
    result = result ? binary(BinaryOp::conj, *result, same) : same;
  }
  return result.value_or(yes);
}

// An integer to a negative power is no integer: an error, as in Futhark.
StaticValue Lowerer::power(const StaticValue& x, const StaticValue& y) {
  const Operand exponent = operand(y);
  const ScalarType type = type_of(exponent).element;
  const bool negative = exponent.is_constant() && is_signed(type) && exponent.constant().as_int() < 0;
  if (is_integer(type) && is_signed(type) && checked_indices_ && (negative || exponent.is_value())) {
    const StaticValue fine = compare(CompareOp::le, scalar(Scalar::zero(type)), y);
    builder_->let("c", Assert{operand(fine), {"Negative exponent: ", exponent}});
  }
  return negative ? scalar(Scalar::zero(type)) : binary(BinaryOp::pow, x, y);
}

std::optional<StaticValue> Lowerer::run_constant(Builtin builtin, ScalarType type) {
  const bool flt = is_float(type);
  const int bits = bit_width(type);
  const std::uint64_t top = bits == 0 ? 0 : std::uint64_t{1} << (bits - 1);
  auto real = [&](double value) { return scalar(Scalar::floating(type, value)); };
  auto whole = [&](std::uint64_t value) { return scalar(Scalar::from_bits(type, value)); };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  switch (builtin) {
    case Builtin::highest: return flt ? real(kInfinity) : whole(is_signed(type) ? top - 1 : ~std::uint64_t{0});
    case Builtin::lowest: return flt ? real(-kInfinity) : whole(is_signed(type) ? top : 0);
    case Builtin::inf: return real(kInfinity);
    case Builtin::nan: return real(std::numeric_limits<double>::quiet_NaN());
    case Builtin::pi: return real(std::numbers::pi);
    case Builtin::e: return real(std::numbers::e);
    case Builtin::num_bits: return scalar(Scalar::integer(ScalarType::i32, bits));
    default: return std::nullopt;
  }
}

std::optional<StaticValue> Lowerer::run_scalar_builtin(const Closure::Builtin& builtin, const Values& x) {
  switch (builtin.entry->builtin) {
    case Builtin::add: return binary(BinaryOp::add, x[0], x[1]);
    case Builtin::sub: return binary(BinaryOp::sub, x[0], x[1]);
    case Builtin::mul: return binary(BinaryOp::mul, x[0], x[1]);
    case Builtin::div: return binary(BinaryOp::div, x[0], x[1]);
    case Builtin::mod: return binary(BinaryOp::mod, x[0], x[1]);
    case Builtin::quot: return binary(BinaryOp::quot, x[0], x[1]);
    case Builtin::rem: return binary(BinaryOp::rem, x[0], x[1]);
    case Builtin::pow: return power(x[0], x[1]);
    case Builtin::bit_and:
    case Builtin::both: return binary(BinaryOp::conj, x[0], x[1]);
    case Builtin::bit_or:
    case Builtin::either: return binary(BinaryOp::disj, x[0], x[1]);
    case Builtin::bit_xor: return binary(BinaryOp::exor, x[0], x[1]);
    case Builtin::shl: return binary(BinaryOp::shl, x[0], x[1]);
    case Builtin::shr: return binary(BinaryOp::shr, x[0], x[1]);
    case Builtin::shr_logical: return shift_logically(x[0], x[1]);
    case Builtin::min: return binary(BinaryOp::min, x[0], x[1]);
    case Builtin::max: return binary(BinaryOp::max, x[0], x[1]);
    case Builtin::eq: return equal(x[0], x[1]);
    case Builtin::ne: return unary(UnaryOp::complement, equal(x[0], x[1]));
    case Builtin::lt: return compare(CompareOp::lt, x[0], x[1]);
    case Builtin::le: return compare(CompareOp::le, x[0], x[1]);
    case Builtin::gt: return compare(CompareOp::lt, x[1], x[0]);
    case Builtin::ge: return compare(CompareOp::le, x[1], x[0]);
    case Builtin::logical_not:
    case Builtin::complement: return unary(UnaryOp::complement, x[0]);
    case Builtin::neg: return unary(UnaryOp::neg, x[0]);
    case Builtin::abs: return unary(UnaryOp::abs, x[0]);
    case Builtin::sgn: return unary(UnaryOp::sgn, x[0]);
    case Builtin::sqrt: return unary(UnaryOp::sqrt, x[0]);
    case Builtin::exp: return unary(UnaryOp::exp, x[0]);
    case Builtin::log: return unary(UnaryOp::log, x[0]);
    case Builtin::sin: return unary(UnaryOp::sin, x[0]);
    case Builtin::cos: return unary(UnaryOp::cos, x[0]);
    case Builtin::tan: return unary(UnaryOp::tan, x[0]);
    case Builtin::floor: return unary(UnaryOp::floor, x[0]);
    case Builtin::ceil: return unary(UnaryOp::ceil, x[0]);
    case Builtin::popc: return convert(ScalarType::i32, unary(UnaryOp::popc, x[0]));
    case Builtin::clz: return convert(ScalarType::i32, unary(UnaryOp::clz, x[0]));
    case Builtin::convert: return convert(*builtin.use->module, x[0]);
    case Builtin::recip: return binary(BinaryOp::div, scalar(Scalar::floating(*builtin.use->module, 1)), x[0]);
    case Builtin::isnan: return compare(CompareOp::ne, x[0], x[0]);
    case Builtin::isinf:
      return compare(CompareOp::eq, unary(UnaryOp::abs, x[0]), *run_constant(Builtin::inf, *builtin.use->module));
    default: return std::nullopt;
  }
}

// `>>>` fills with zeros whatever the sign.
StaticValue Lowerer::shift_logically(const StaticValue& x, const StaticValue& y) {
  const ScalarType type = type_of(operand(x)).element;
  if (!is_signed(type)) return binary(BinaryOp::shr, x, y);
  return convert(type, binary(BinaryOp::shr, convert(unsigned_of(type), x), convert(unsigned_of(type), y)));
}

}  // namespace apl::frontend
