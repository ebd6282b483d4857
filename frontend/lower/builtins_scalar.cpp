// Scalar functions and operators of the prelude. Index arithmetic (+, -, * on i64) stays in polynomials.
#include <limits>
#include <numbers>
#include <utility>

#include "frontend/lower/lowerer.h"

namespace apl::frontend {

namespace {

// Polynomials larger than this are values of their own from there on.
constexpr std::size_t kMaxFoldedTerms = 12;
constexpr std::size_t kMaxFoldedDegree = 6;

bool is_small(const Poly& poly) {
  if (poly.terms().size() > kMaxFoldedTerms) return false;
  for (const Term& term : poly.terms())
    if (term.factors.size() > kMaxFoldedDegree) return false;
  return true;
}

// Quotients and what compares follow the laws of polynomials only where those are exact: sums and products of other
// numbers may wrap.
std::optional<Poly> index_arithmetic(BinaryOp op, const Poly& x, const Poly& y, bool exact) {
  const bool divides = exact && y.constant() && *y.constant() > 0;
  switch (op) {
    case BinaryOp::add: return x + y;
    case BinaryOp::sub: return x - y;
    case BinaryOp::mul: return x * y;
    case BinaryOp::min: return exact ? std::optional(poly_min(x, y)) : std::nullopt;
    case BinaryOp::max: return exact ? std::optional(poly_max(x, y)) : std::nullopt;
    case BinaryOp::div: return divides ? std::optional(floor_div(x, y)) : std::nullopt;
    case BinaryOp::mod: return divides ? std::optional(remainder(x, y)) : std::nullopt;
    default: return std::nullopt;
  }
}

// The type that a conversion's name ends in: `to_i64`, and `r32` to f32, `t64` to i32.
ScalarType target_of(std::string_view name) {
  if (name.starts_with("to_")) return *scalar_type_from_text(name.substr(3));
  if (name[0] == 't') return ScalarType::i32;
  return name == "r32" ? ScalarType::f32 : ScalarType::f64;
}

}  // namespace

StaticValue Lowerer::binary(BinaryOp op, const StaticValue& x, const StaticValue& y) {
  if (x.index() && y.index()) {
    auto result = index_arithmetic(op, *x.index(), *y.index(), is_exact(*x.index()) && is_exact(*y.index()));
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
    return convert(to, convert(bits_type(from), x));
  if (a.is_constant()) return scalar(apl::convert(a.constant(), to));
  return scalar(builder_->convert(to, a));
}

StaticValue Lowerer::bitcast(ScalarType to, const StaticValue& x) {
  const Operand a = operand(x);
  if (type_of(a).element == to) return x;
  if (a.is_constant()) return scalar(apl::convert(a.constant(), to, true));
  return scalar(builder_->bitcast(to, a));
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
    // Not the number that the name says for halves, but the prelude's.
    case Builtin::epsilon: return real(type == ScalarType::f64 ? 2.220446049250313e-16 : 1.1920929e-7);
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
    case Builtin::convert: return convert(*builtin.use->module, x[0]);
    case Builtin::to_type: return convert(target_of(builtin.entry->name), x[0]);
    case Builtin::isnan: return compare(CompareOp::ne, x[0], x[0]);
    case Builtin::isinf:
      return compare(CompareOp::eq, unary(UnaryOp::abs, x[0]), *run_constant(Builtin::inf, *builtin.use->module));
    default: return builtin.use && builtin.use->module ? run_member(builtin, *builtin.use->module, x) : std::nullopt;
  }
}

// What modules alone have, most of it put together as in Futhark's prelude and its run-time system.
std::optional<StaticValue> Lowerer::run_member(const Closure::Builtin& builtin, ScalarType type, const Values& x) {
  const std::string_view name = builtin.entry->name;
  const StaticValue one(Operand(Scalar::integer(ScalarType::i32, 1)));
  const auto multiply_add = [&](const StaticValue& a, const StaticValue& b, const StaticValue& c) {
    return binary(BinaryOp::add, binary(BinaryOp::mul, a, b), c);
  };
  // In halves, multiples of pi would be too coarse.
  const ScalarType fine = type == ScalarType::f16 ? ScalarType::f32 : type;
  const auto pi = [&] { return *run_constant(Builtin::pi, fine); };
  const auto operation = [&](std::string_view op, const Values& operands) {
    if (operands.size() == 2) return binary(*binary_op_from_text(op), operands[0], operands[1]);
    return unary(*unary_op_from_text(op), operands[0]);
  };
  switch (builtin.entry->builtin) {
    case Builtin::unary:
    case Builtin::binary: return operation(name, x);
    case Builtin::count_bits: return convert(ScalarType::i32, operation(name, x));
    case Builtin::ctz: {  // how many bits lie below the lowest one
      const StaticValue below =
          binary(BinaryOp::conj, unary(UnaryOp::complement, x[0]), binary(BinaryOp::sub, x[0], convert(type, one)));
      return convert(ScalarType::i32, unary(UnaryOp::popc, below));
    }
    case Builtin::mad_hi: return binary(BinaryOp::add, binary(BinaryOp::mul_hi, x[0], x[1]), x[2]);
    case Builtin::mad: return multiply_add(x[0], x[1], x[2]);
    case Builtin::lerp: return multiply_add(binary(BinaryOp::sub, x[1], x[0]), x[2], x[0]);
    case Builtin::recip: return binary(BinaryOp::div, convert(type, one), x[0]);
    case Builtin::from_fraction: return binary(BinaryOp::div, convert(type, x[0]), convert(type, x[1]));
    case Builtin::trunc: {  // by way of the integers as wide, as the prelude has it
      const ScalarType whole = type == ScalarType::f16   ? ScalarType::i16
                               : type == ScalarType::f32 ? ScalarType::i32
                                                         : ScalarType::i64;
      return convert(type, convert(whole, x[0]));
    }
    case Builtin::of_pi:
      return convert(type, operation(name.substr(0, 3), {binary(BinaryOp::mul, pi(), convert(fine, x[0]))}));
    case Builtin::per_pi: {
      Values operands;
      for (const StaticValue& operand : x) operands.push_back(convert(fine, operand));
      return convert(type, binary(BinaryOp::div, operation(name.substr(0, name.size() - 2), operands), pi()));
    }
    case Builtin::ldexp: {  // no exponent beyond these changes a result, and these are numbers of every type
      StaticValue exponent = x[1];
      const auto limit = [](std::int64_t value) {
        return StaticValue(Operand(Scalar::integer(ScalarType::i32, value)));
      };
      exponent = binary(BinaryOp::max, binary(BinaryOp::min, exponent, limit(4096)), limit(-4096));
      return binary(BinaryOp::ldexp, x[0], convert(type, exponent));
    }
    case Builtin::to_bits: return bitcast(bits_type(type), x[0]);
    case Builtin::from_bits: return bitcast(type, x[0]);
    case Builtin::get_bit: {
      const ScalarType bits = is_float(type) ? bits_type(type) : type;
      const StaticValue shifted = binary(BinaryOp::shr, bitcast(bits, x[1]), convert(bits, x[0]));
      return convert(ScalarType::i32, binary(BinaryOp::conj, shifted, convert(bits, one)));
    }
    case Builtin::set_bit: {
      const ScalarType bits = is_float(type) ? bits_type(type) : type;
      const StaticValue at = convert(bits, x[0]);
      const StaticValue mask = unary(UnaryOp::complement, binary(BinaryOp::shl, convert(bits, one), at));
      const StaticValue cleared = binary(BinaryOp::conj, bitcast(bits, x[1]), mask);
      return bitcast(type, binary(BinaryOp::disj, cleared, binary(BinaryOp::shl, convert(bits, x[2]), at)));
    }
    default: return std::nullopt;
  }
}

// `>>>` fills with zeros whatever the sign.
StaticValue Lowerer::shift_logically(const StaticValue& x, const StaticValue& y) {
  const ScalarType type = type_of(operand(x)).element;
  if (!is_signed(type)) return binary(BinaryOp::shr, x, y);
  return convert(type, binary(BinaryOp::shr, convert(bits_type(type), x), convert(bits_type(type), y)));
}

}  // namespace apl::frontend
