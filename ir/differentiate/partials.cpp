#include "ir/differentiate/partials.h"

#include <fmt/format.h>

#include <algorithm>

#include <cmath>
#include <numbers>
#include <numeric>

namespace apl::differentiation {

bool has_tangents(const Type& type) { return type.kind == Type::Kind::data && type.element != ScalarType::unit; }

BinaryOp addition(ScalarType type) { return type == ScalarType::boolean ? BinaryOp::disj : BinaryOp::add; }

bool has_derivative(UnaryOp op, ScalarType type) {
  switch (op) {
    case UnaryOp::complement: return type == ScalarType::boolean;
    case UnaryOp::sgn:
    case UnaryOp::floor:
    case UnaryOp::ceil:
    case UnaryOp::round:
    case UnaryOp::clz:
    case UnaryOp::popc: return false;
    default: return true;
  }
}

bool has_derivative(BinaryOp op, ScalarType type) {
  switch (op) {
    case BinaryOp::conj:
    case BinaryOp::disj: return type == ScalarType::boolean;
    case BinaryOp::mul_hi:
    case BinaryOp::exor: return false;
    default: return true;
  }
}

namespace {

// Scalar arithmetic of one type, written as formulas.
class Formula {
 public:
  Formula(Builder& b, ScalarType type) : b_(b), type_(type) {}

  Operand number(double x) const {
    return is_float(type_) ? Scalar::floating(type_, x) : Scalar::integer(type_, static_cast<std::int64_t>(x));
  }
  Operand add(Operand x, Operand y) const { return b_.binary(BinaryOp::add, x, y, "d"); }
  Operand sub(Operand x, Operand y) const { return b_.binary(BinaryOp::sub, x, y, "d"); }
  Operand mul(Operand x, Operand y) const { return b_.binary(BinaryOp::mul, x, y, "d"); }
  Operand div(Operand x, Operand y) const {
    return b_.binary(is_float(type_) ? BinaryOp::div : BinaryOp::quot, x, y, "d");
  }
  Operand total_quot(Operand x, Operand y) const { return b_.binary(BinaryOp::total_quot, x, y, "d"); }
  Operand pow(Operand x, Operand y) const { return b_.binary(BinaryOp::pow, x, y, "d"); }
  Operand neg(Operand x) const { return b_.unary(UnaryOp::neg, x, "d"); }
  Operand unary(UnaryOp op, Operand x) const { return b_.unary(op, x, "d"); }
  Operand square(Operand x) const { return mul(x, x); }
  Operand sqrt(Operand x) const { return unary(UnaryOp::sqrt, x); }
  Operand zero() const { return Scalar::zero(type_); }
  Operand select(Operand condition, const std::function<Operand()>& otherwise, Operand value) const {
    return b_.if_else(
        "d", condition, [&](Builder&) { return value; },
        [&](Builder& inner) {
          std::vector<Stm> outer = b_.take();
          b_.stms().clear();
          const Operand result = otherwise();
          inner.append_all(b_.take());
          b_.stms() = std::move(outer);
          return result;
        });
  }
  Operand compare(CompareOp op, Operand x, Operand y) const { return b_.compare(op, x, y); }

 private:
  Builder& b_;
  ScalarType type_;
};

}  // namespace

void refuse_derivative(std::string_view op, Location location) {
  throw Refusal{make_error(Code::unsupported_construct, location,
                           fmt::format("the derivative of {} cannot be compiled yet", op))};
}

Operand times_derivative(Builder& b, const Unary& op, Operand y, Operand tangent, Location location) {
  const Formula f(b, b.type(op.x).element);
  if (op.op == UnaryOp::complement) return Operand(b.binary(BinaryOp::conj, tangent, op.x, "d"));  // of a bool
  const Operand x = op.x, one = f.number(1);
  switch (op.op) {
    case UnaryOp::neg: return f.neg(tangent);
    case UnaryOp::abs: return f.mul(tangent, f.unary(UnaryOp::sgn, x));
    case UnaryOp::sqrt: return f.div(tangent, f.mul(f.number(2), y));
    case UnaryOp::rsqrt: return f.mul(tangent, f.mul(f.number(-0.5), f.mul(y, f.square(y))));
    case UnaryOp::exp: return f.mul(tangent, y);
    case UnaryOp::log: return f.div(tangent, x);
    case UnaryOp::log2: return f.div(tangent, f.mul(x, f.number(std::numbers::ln2)));
    case UnaryOp::log10: return f.div(tangent, f.mul(x, f.number(std::numbers::ln10)));
    case UnaryOp::log1p: return f.div(tangent, f.add(x, one));
    case UnaryOp::cbrt: return f.div(tangent, f.mul(f.number(3), f.square(y)));
    case UnaryOp::sin: return f.mul(tangent, f.unary(UnaryOp::cos, x));
    case UnaryOp::cos: return f.mul(tangent, f.neg(f.unary(UnaryOp::sin, x)));
    case UnaryOp::tan: return f.mul(tangent, f.add(f.square(y), one));
    case UnaryOp::asin: return f.div(tangent, f.sqrt(f.sub(one, f.square(x))));
    case UnaryOp::acos: return f.neg(f.div(tangent, f.sqrt(f.sub(one, f.square(x)))));
    case UnaryOp::atan: return f.div(tangent, f.add(f.square(x), one));
    case UnaryOp::sinh: return f.mul(tangent, f.unary(UnaryOp::cosh, x));
    case UnaryOp::cosh: return f.mul(tangent, f.unary(UnaryOp::sinh, x));
    case UnaryOp::tanh: return f.mul(tangent, f.sub(one, f.square(y)));
    case UnaryOp::asinh: return f.div(tangent, f.sqrt(f.add(f.square(x), one)));
    case UnaryOp::acosh: return f.div(tangent, f.sqrt(f.sub(f.square(x), one)));
    case UnaryOp::atanh: return f.div(tangent, f.sub(one, f.square(x)));
    case UnaryOp::erf:
    case UnaryOp::erfc: {
      const double sign = op.op == UnaryOp::erf ? 1 : -1;
      const Operand bell = f.unary(UnaryOp::exp, f.neg(f.square(x)));
      return f.mul(tangent, f.mul(f.number(sign * 2 * std::numbers::inv_sqrtpi), bell));
    }
    default: refuse_derivative(to_text(op.op), location);
  }
}

std::optional<Operand> times_derivative(Builder& b, const Binary& op, bool by_y, Operand z, Operand tangent,
                                        Location location) {
  const ScalarType type = b.type(op.x).element;
  const Formula f(b, type);
  const Operand x = op.x, y = op.y, zero = f.zero();
  const bool floats = is_float(type);
  switch (op.op) {
    case BinaryOp::add: return tangent;
    case BinaryOp::sub: return by_y ? f.neg(tangent) : tangent;
    case BinaryOp::mul: return f.mul(tangent, by_y ? x : y);
    case BinaryOp::div:
    case BinaryOp::quot:
      if (!floats) {
        return f.mul(tangent, by_y ? f.neg(f.div(x, f.square(y))) : f.div(f.number(1), y));
      }
      return by_y ? f.neg(f.mul(tangent, f.div(z, y))) : f.div(tangent, y);
    case BinaryOp::total_div:
    case BinaryOp::total_quot:
      return f.mul(tangent, by_y ? f.neg(f.total_quot(x, f.square(y))) : f.total_quot(f.number(1), y));
    case BinaryOp::mod:
    case BinaryOp::rem:
    case BinaryOp::total_mod:
    case BinaryOp::total_rem:
      if (!by_y) return tangent;
      if (!floats) return std::nullopt;
      return f.mul(tangent, f.neg(f.div(f.sub(x, z), y)));
    case BinaryOp::pow:
      if (by_y) {
        if (!floats) return std::nullopt;
        const Operand none = f.compare(CompareOp::le, x, zero);
        return f.mul(tangent, f.select(
                                  none, [&] { return f.mul(z, f.unary(UnaryOp::log, x)); }, zero));
      } else {
        // At zero, powers below 1 have none.
        const Operand at_zero = f.compare(CompareOp::eq, x, zero), below = f.compare(CompareOp::lt, y, f.number(1));
        const Operand none = b.binary(BinaryOp::conj, at_zero, below, "c");
        const auto power = [&] { return f.mul(y, f.pow(x, f.sub(y, f.number(1)))); };
        return f.mul(tangent, f.select(none, power, zero));
      }
    case BinaryOp::min:
    case BinaryOp::max: {
      // Of equal ones it is the first.
      const bool is_min = op.op == BinaryOp::min;
      const Operand first = f.compare(CompareOp::le, is_min ? x : y, is_min ? y : x);
      return by_y ? f.select(
                        first, [&] { return tangent; }, zero)
                  : f.select(
                        first, [&] { return zero; }, tangent);
    }
    case BinaryOp::shl:
      if (by_y) return std::nullopt;
      return Operand(b.binary(BinaryOp::shl, tangent, y, "d"));
    case BinaryOp::shr:
      if (by_y) return std::nullopt;
      return f.mul(tangent, Operand(b.binary(BinaryOp::shr, f.number(1), y, "d")));
    case BinaryOp::atan2: {
      const Operand norm = f.add(f.square(x), f.square(y));
      return by_y ? f.neg(f.mul(tangent, f.div(x, norm))) : f.mul(tangent, f.div(y, norm));
    }
    case BinaryOp::hypot: return f.mul(tangent, f.div(by_y ? y : x, z));
    case BinaryOp::copysign: {
      if (by_y) return std::nullopt;
      const Operand sign_x = b.binary(BinaryOp::copysign, f.number(1), x, "d");
      const Operand sign_y = b.binary(BinaryOp::copysign, f.number(1), y, "d");
      return f.mul(tangent, f.mul(sign_x, sign_y));
    }
    // Of bools. What `or` gives is said to vary with its first operand alone.
    case BinaryOp::conj: return Operand(b.binary(BinaryOp::conj, tangent, by_y ? x : y, "d"));
    case BinaryOp::disj: return by_y ? std::nullopt : std::optional(tangent);
    case BinaryOp::nextafter: return by_y ? std::nullopt : std::optional(tangent);
    case BinaryOp::ldexp:
      if (by_y) return std::nullopt;
      return Operand(b.binary(BinaryOp::ldexp, tangent, y, "d"));
    default: refuse_derivative(to_text(op.op), location);
  }
}

Poly derivative(const Poly& poly, Value symbol) {
  Poly result;
  for (const Term& term : poly.terms()) {
    for (std::size_t k = 0; k < term.factors.size(); ++k) {
      if (term.factors[k].symbol != symbol) continue;
      Term rest = term;
      rest.factors.erase(rest.factors.begin() + static_cast<std::ptrdiff_t>(k));
      result += Poly(std::move(rest));
    }
  }
  return result;
}

namespace {

class Operations {
 public:
  Operations(ValueTable& values, Location location) : values_(values), location_(location) {}

  Value value_of(const Poly& poly) {
    Poly sum;
    for (const Term& term : poly.terms()) {
      Poly product = term.coefficient;
      for (const Factor& factor : term.factors)
        product = product * (factor.opaque ? Poly(opaque(*factor.opaque)) : Poly(factor.symbol));
      sum += product;
    }
    return bind(SizeExpr{std::move(sum)});
  }
  std::vector<Stm> take() { return std::move(stms_); }

 private:
  Value opaque(const OpaqueNode& node) {
    if (node.kind == OpaqueKind::ceil_div) {
      const Value quotient = bind(Binary{BinaryOp::div, value_of(-node.a), value_of(node.b)});
      return bind(SizeExpr{-Poly(quotient)});
    }
    const BinaryOp op = node.kind == OpaqueKind::min   ? BinaryOp::min
                        : node.kind == OpaqueKind::max ? BinaryOp::max
                                                       : BinaryOp::div;
    const Value a = value_of(node.a), b = value_of(node.b);
    return bind(Binary{op, a, b});
  }

  Value bind(Op op) {
    const Value made = values_.add(Type::scalar(ScalarType::i64), "n");
    stms_.push_back({{made}, std::move(op), location_, {}, {}});
    return made;
  }

  ValueTable& values_;
  Location location_;
  std::vector<Stm> stms_;
};

}  // namespace

bool has_opaque_factors(const Poly& poly) {
  return std::ranges::any_of(poly.terms(), [](const Term& term) {
    return std::ranges::any_of(term.factors, [](const Factor& factor) { return factor.opaque != nullptr; });
  });
}

std::vector<Stm> as_operations(ValueTable& values, const Poly& poly, Location location) {
  Operations operations(values, location);
  operations.value_of(poly);
  return operations.take();
}

Operand zero_of(Builder& b, const Type& type) {
  if (type.is_scalar()) return Scalar::zero(type.element);
  return b.let("zeros", Replicate{type.shape, Scalar::zero(type.element)});
}

Operand sum_of(Builder& b, Operand x, Operand y) {
  const Type type = b.type(x);
  const BinaryOp add = addition(type.element);
  if (type.is_scalar()) return b.binary(add, x, y, "d");
  return b
      .screma({"ds"}, type.shape, {x.value(), y.value()},
              [&](Builder& inner, BoundValues all) {
                return std::vector<Operand>{inner.binary(add, all[type.rank()], all[type.rank() + 1], "d")};
              },
              {})
      .front();
}

Operand sum_over(Builder& b, Value array, std::size_t n) {
  const Type type = b.values().type(array);
  const std::vector<Poly> outer(type.shape.begin(), type.shape.begin() + static_cast<std::ptrdiff_t>(n));
  const auto total = [&](Builder& at, Value elements) {
    const ReduceOp add = at.reduce_op(addition(type.element), Scalar::zero(type.element));
    return at
        .screma({"d"}, outer, {elements}, [&](Builder&, BoundValues all) { return std::vector<Operand>{all[n]}; },
                {add})
        .front();
  };
  if (type.rank() == n) return total(b, array);
  std::vector<int> order(type.rank());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::rotate(order, order.begin() + static_cast<std::ptrdiff_t>(n));
  const Value inside = b.rearrange(array, order);
  const std::vector<Poly> rows(type.shape.begin() + static_cast<std::ptrdiff_t>(n), type.shape.end());
  return b
      .screma({"ds"}, rows, {inside},
              [&](Builder& inner, BoundValues all) { return std::vector<Operand>{total(inner, all[rows.size()])}; }, {})
      .front();
}

}  // namespace apl::differentiation
