// Scalar operations: constants folded by evaluate(), and identities that are exact for the type.
//   mul(2i32, x) => mul(x, 2i32)
//   add(x, 0i32) => x        mul(x, 1.0f32) => x        add(x, -0.0f32) => x        lt(i, n) => true for an index
//   div(x, y) => total_div(x, y) where y is not 0: in a branch of y != 0, or a size of an array with elements
//   mod(i - 1, n) => if i - 1 < 0 then i - 1 + n else i - 1, for an index i below n
// Not done, since it would change results: x*0 and x-x on floats (NaN, inf), x + 0.0 (-0.0), any reassociation.
#include <limits>

#include "ir/attributes.h"
#include "passes/simplify/simplifier.h"

namespace apl {

namespace {

bool is_constant(const Operand& x, const Scalar& value) { return x.is_constant() && x.constant() == value; }

// 1, 1.0, or the number itself for other values.
Scalar number(ScalarType type, int value) {
  return is_float(type) ? Scalar::floating(type, value) : Scalar::integer(type, value);
}

// Whether every value of `from` is a value of `to`.
bool embeds(ScalarType from, ScalarType to) {
  if (is_integer(from) && is_integer(to)) {
    const bool room = bit_width(to) > bit_width(from);
    return is_signed(from) == is_signed(to) ? bit_width(to) >= bit_width(from) : is_signed(to) && room;
  }
  if (is_float(from) && is_float(to)) {
    return to == ScalarType::f64 || (to == ScalarType::f32 && from != ScalarType::f64) || from == to;
  }
  return from == to;
}

}  // namespace

Fired Simplifier::unary(Stm& stm, const Unary& op) {
  if (op.x.is_constant()) {
    if (const std::optional<Scalar> value = evaluate(op.op, op.x.constant())) return use(stm, *value);
  }
  const bool undoes_itself = op.op == UnaryOp::neg || op.op == UnaryOp::complement;
  if (const Unary* inner = definition<Unary>(op.x); inner != nullptr && undoes_itself && inner->op == op.op) {
    return use(stm, inner->x);
  }
  return Fired::none;
}

Fired Simplifier::binary(Stm& stm, const Binary& op) {
  if (op.x.is_constant() && op.y.is_constant()) {
    if (const std::optional<Scalar> value = evaluate(op.op, op.x.constant(), op.y.constant())) return use(stm, *value);
  }
  const ScalarType type = values().type(op.x).element;
  const bool integer = is_integer(type);
  const bool bits = integer || type == ScalarType::boolean;
  const bool numeric = integer || is_float(type);
  const bool same = op.x == op.y;
  const Scalar zero = Scalar::zero(type);
  const auto x_is = [&](int n) { return numeric && is_constant(op.x, number(type, n)); };
  const auto y_is = [&](int n) { return numeric && is_constant(op.y, number(type, n)); };
  if (integer && division_of(op.op)) {
    if (const std::optional<BinaryOp> better = simpler_division(op); better && *better != op.op) {
      stm.op = Binary{*better, op.x, op.y};
      return Fired::again;
    }
  }
  switch (division_of(op.op).value_or(op.op)) {
    case BinaryOp::add: {
      // -0.0 is the neutral element of float addition: 0.0 + -0.0 = 0.0, -0.0 + -0.0 = -0.0.
      const Scalar neutral = integer ? zero : Scalar::floating(type, -0.0);
      if (is_constant(op.y, neutral)) return use(stm, op.x);
      if (is_constant(op.x, neutral)) return use(stm, op.y);
      break;
    }
    case BinaryOp::sub:
      if (is_constant(op.y, zero)) return use(stm, op.x);
      if (integer && same) return use(stm, zero);
      break;
    case BinaryOp::mul:
      if (y_is(1)) return use(stm, op.x);
      if (x_is(1)) return use(stm, op.y);
      if (integer && (is_constant(op.x, zero) || is_constant(op.y, zero))) return use(stm, zero);
      break;
    case BinaryOp::div:
    case BinaryOp::quot:
      if (y_is(1)) return use(stm, op.x);
      break;
    case BinaryOp::mod:
    case BinaryOp::rem:
      if (integer && y_is(1)) return use(stm, zero);
      break;
    case BinaryOp::min:
    case BinaryOp::max:
      if (same) return use(stm, op.x);
      break;
    case BinaryOp::conj:
    case BinaryOp::disj: {
      const bool conj = op.op == BinaryOp::conj;
      const Scalar ones =
          type == ScalarType::boolean ? Scalar::boolean(true) : Scalar::integer(bits ? type : ScalarType::i64, -1);
      const Scalar& neutral = conj ? ones : zero;
      const Scalar& absorbing = conj ? zero : ones;
      if (same || is_constant(op.y, neutral)) return use(stm, op.x);
      if (is_constant(op.x, neutral)) return use(stm, op.y);
      if (is_constant(op.x, absorbing) || is_constant(op.y, absorbing)) return use(stm, absorbing);
      break;
    }
    case BinaryOp::exor:
      if (same) return use(stm, zero);
      if (is_constant(op.y, zero)) return use(stm, op.x);
      if (is_constant(op.x, zero)) return use(stm, op.y);
      break;
    case BinaryOp::shl:
    case BinaryOp::shr:
      if (is_constant(op.y, zero)) return use(stm, op.x);
      break;
    case BinaryOp::pow:
      if (integer && y_is(1)) return use(stm, op.x);
      break;
    default: break;
  }
  if (op.x.is_constant() && op.y.is_value() && is_commutative(op.op)) {
    stm.op = Binary{op.op, op.y, op.x};
    return Fired::again;
  }
  // Inside a reduction operator the operation itself is what others recognise.
  if (type == ScalarType::i64 && !in_operator_) {
    const std::optional<Poly> size = as_size(stm);
    if (size) {
      if (const std::optional<Operand> known = as_operand(*size)) return use(stm, *known);
    } else if (division_of(op.op) == BinaryOp::mod) {
      return wrapped_index(stm, op);
    }
  }
  return Fired::none;
}

// By a constant, the division that says least; by what is proved not to be zero, the one that cannot fail.
std::optional<BinaryOp> Simplifier::simpler_division(const Binary& op) const {
  if (op.y.is_constant()) return op.y.constant().bits() != 0 ? division_of(op.op) : std::nullopt;
  return never_zero(op.y) ? total_division(op.op) : std::nullopt;
}

// A neighbour's index that is at most one period outside needs no division.
Fired Simplifier::wrapped_index(Stm& stm, const Binary& op) {
  const Poly x = rewrite(as_poly(op.x)), period = rewrite(as_poly(op.y));
  if (!size_like(x) || !size_like(period) || !non_negative(period - 1)) return Fired::none;
  const bool below = less(x, period) && non_negative(x + period);
  if (!below && !(non_negative(x) && less(x, 2 * period))) return Fired::none;
  const Operand wraps = below ? emit(stm, "wraps", Compare{CompareOp::lt, op.x, i64_constant(0)})
                              : emit(stm, "wraps", Compare{CompareOp::le, op.y, op.x});
  const Operand wrapped = emit(stm, name_of(stm), SizeExpr{below ? x + period : x - period});
  stm.op = If{wraps, make_body({}, {wrapped}), make_body({}, {op.x})};
  return Fired::again;
}

Fired Simplifier::compare(Stm& stm, const Compare& op) {
  if (op.x.is_constant() && op.y.is_constant()) {
    if (const std::optional<Scalar> value = evaluate(op.op, op.x.constant(), op.y.constant())) return use(stm, *value);
  }
  const ScalarType type = values().type(op.x).element;
  if (op.x == op.y) {
    if (op.op == CompareOp::lt) return use(stm, Scalar::boolean(false));
    if (!is_float(type)) return use(stm, Scalar::boolean(op.op != CompareOp::ne));
  }
  if (type != ScalarType::i64) return Fired::none;
  const Poly x = rewrite(as_poly(op.x));
  const Poly y = rewrite(as_poly(op.y));
  if ((op.op == CompareOp::eq || op.op == CompareOp::ne) && x == y) {
    return use(stm, Scalar::boolean(op.op == CompareOp::eq));
  }
  // Proofs are about integers that do not overflow: true of sizes and indices, not of any number.
  if (!size_like(x) || !size_like(y)) return Fired::none;
  const SizeFacts facts = facts_for({&x, &y});
  Proof proof = Proof::unknown;
  switch (op.op) {
    case CompareOp::lt: proof = prove_less(x, y, facts); break;
    case CompareOp::le: proof = prove_less(x, y + 1, facts); break;
    case CompareOp::eq: proof = prove_equal(x, y, facts); break;
    case CompareOp::ne:
      proof = prove_equal(x, y, facts);
      if (proof != Proof::unknown) proof = proof == Proof::yes ? Proof::no : Proof::yes;
      break;
  }
  return proof == Proof::unknown ? Fired::none : use(stm, Scalar::boolean(proof == Proof::yes));
}

Fired Simplifier::convert(Stm& stm, const Convert& op) {
  if (op.x.is_constant()) return use(stm, apl::convert(op.x.constant(), op.to, op.same_bits));
  const ScalarType from = values().type(op.x).element;
  if (from == op.to) return use(stm, op.x);
  const Convert* inner = definition<Convert>(op.x);
  // A NaN need not keep its bits: there and back is not always where it began.
  if (inner == nullptr || inner->same_bits || op.same_bits) return Fired::none;
  const ScalarType first = values().type(inner->x).element;
  // An index that stays in the range of the type between.
  if (first == ScalarType::i64 && op.to == ScalarType::i64 && is_integer(from) && stays_in(inner->x, from))
    return use(stm, inner->x);
  if (!embeds(first, from)) return Fired::none;
  // There and back, or through a type that loses nothing.
  if (first == op.to) return use(stm, inner->x);
  if (embeds(from, op.to)) {
    stm.op = Convert{op.to, inner->x};
    return Fired::again;
  }
  return Fired::none;
}

Fired Simplifier::size(Stm& stm, const SizeExpr& op) {
  if (const std::optional<Operand> known = as_operand(op.value)) return use(stm, *known);
  return Fired::none;
}

Fired Simplifier::assertion(Stm& stm, const Assert& op) {
  if (is_constant(op.condition, Scalar::boolean(true)) && !has_attribute(stm.attributes, attribute::trace))
    return use(stm, Scalar::unit());
  return Fired::none;
}

}  // namespace apl
