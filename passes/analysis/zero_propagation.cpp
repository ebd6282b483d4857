// What follows from zeros, for operands of which nothing is known but that they are finite. A branch whose condition is
// not known is followed twice, each time with what its condition says there of values: that they are a number, that
// they are not 0, or that they are positive. So a quotient whose dividend is 0 is 0 under a guard, and only there.
#include <range/v3/view/zip.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "ir/walk.h"
#include "passes/analysis/map_uses.h"
#include "passes/analysis/zero_propagation.h"

namespace apl::sparsify {
namespace {

bool is_zero(const std::optional<Scalar>& x) { return x && same_number(*x, Scalar::zero(x->type())); }

// x op anything = the result, for the known one of two operands at the given position.
std::optional<Scalar> absorbs(BinaryOp op, const Scalar& known, bool left) {
  const ScalarType type = known.type();
  const bool zero = is_zero(known);
  const Scalar ones = type == ScalarType::boolean ? Scalar::boolean(true)
                      : is_integer(type)          ? Scalar::integer(type, -1)
                                                  : Scalar::zero(type);
  const bool is_unsigned = is_integer(type) && !is_signed(type);
  switch (op) {
    case BinaryOp::mul:
    case BinaryOp::conj: return zero ? std::optional(Scalar::zero(type)) : std::nullopt;
    case BinaryOp::disj: return known == ones && !is_float(type) ? std::optional(known) : std::nullopt;
    case BinaryOp::shl:
    case BinaryOp::shr: return zero && left ? std::optional(Scalar::zero(type)) : std::nullopt;
    case BinaryOp::min: return zero && is_unsigned ? std::optional(known) : std::nullopt;
    case BinaryOp::max: return known == ones && is_unsigned ? std::optional(known) : std::nullopt;
    default: return std::nullopt;
  }
}

// Whether numbers other than 0 stay so, with their signs: nothing is rounded to 0 or wraps.
bool keeps_signs(ScalarType from, const Convert& change) {
  if (change.same_bits || from == ScalarType::boolean || change.to == ScalarType::boolean) return false;
  if (is_float(change.to)) return !is_float(from) || byte_size(change.to) > byte_size(from);
  return is_integer(from) && byte_size(change.to) > byte_size(from) && is_signed(from) <= is_signed(change.to);
}

}  // namespace

bool same_number(const Scalar& a, const Scalar& b) {
  return a == b || (a.type() == b.type() && is_float(a.type()) && a.as_float() == b.as_float());
}

std::optional<Scalar> ZeroPropagation::of(const Operand& operand) const {
  if (operand.is_constant()) return operand.constant();
  const auto found = facts_.known.find(operand.value());
  return found == facts_.known.end() ? std::nullopt : std::optional(found->second);
}

Operand ZeroPropagation::same_as(const Operand& operand) const {
  const auto found = operand.is_value() ? facts_.same.find(operand.value()) : facts_.same.end();
  return found == facts_.same.end() ? operand : found->second;
}

void ZeroPropagation::look_for_infinities(const std::vector<Operand>& operands) {
  for (const Operand& x : operands)
    if (x.is_constant() && is_float(x.constant().type()) && !std::isfinite(x.constant().as_float())) finite_ = false;
}

void ZeroPropagation::look_for_infinities(const Body& body) {
  look_for_infinities(body.results);
  const UseMap look{.operand =
                        [&](const Operand& x) {
                          look_for_infinities(std::vector{x});
                          return x;
                        },
                    .value = [](Value v) { return v; },
                    .poly = [](const Poly& p) { return p; }};
  for (const Stm& stm : body.stms) {
    map_uses(stm.op, look);
    for_each_body(stm.op, [&](const BodyPtr& inner) { look_for_infinities(*inner); });
  }
}

void ZeroPropagation::run(const Body& body) {
  for (const Stm& stm : body.stms) statement(stm);
  if (&body == watched_) watched_results_ = results_of(body);
}

void ZeroPropagation::statement(const Stm& stm) {
  if (const If* choice = get_if<If>(stm)) return branch(*choice, stm);
  if (const Screma* screma = get_if<Screma>(stm)) return reduction(*screma, stm);
  if (stm.pattern.size() != 1) return;
  const Value made = stm.pattern.front();
  definitions_.insert_or_assign(made, &stm);
  if (const Use* use = get_if<Use>(stm)) facts_.same.insert_or_assign(made, same_as(use->x));
  if (const std::optional<Scalar> is = scalar(stm)) know(made, *is);
}

std::optional<Scalar> ZeroPropagation::scalar(const Stm& stm) {
  if (const Use* use = get_if<Use>(stm)) return of(use->x);
  if (const Unary* unary = get_if<Unary>(stm)) {
    const auto x = of(unary->x);
    return x ? evaluate(unary->op, *x) : std::nullopt;
  }
  if (const Convert* change = get_if<Convert>(stm)) {
    const auto x = of(change->x);
    return x ? std::optional(convert(*x, change->to, change->same_bits)) : std::nullopt;
  }
  if (const Binary* op = get_if<Binary>(stm)) return binary(*op);
  if (const SizeExpr* size = get_if<SizeExpr>(stm)) {
    const Poly known = size->value.substitute([&](Value v) {
      const auto x = of(v);
      return x ? std::optional(Poly(x->as_int())) : std::nullopt;
    });
    return known.constant() ? std::optional(Scalar::integer(ScalarType::i64, *known.constant())) : std::nullopt;
  }
  if (const Compare* compare = get_if<Compare>(stm)) return comparison(*compare);
  return std::nullopt;
}

std::optional<Scalar> ZeroPropagation::binary(const Binary& op) {
  const auto x = of(op.x), y = of(op.y);
  if (x && y) return evaluate(op.op, *x, *y);
  if (!x && !y) return std::nullopt;
  const bool finite = finite_ || !is_float(values_.type(op.x).element);
  if (is_zero(x) && division_of(op.op)) {
    const bool total = division_of(op.op) != op.op;
    if (finite && (total || is_never_zero(op.y))) return Scalar::zero(x->type());
    has_undecided_quotient_ = has_undecided_quotient_ || finite;
    return std::nullopt;
  }
  if (!finite) return std::nullopt;
  return x ? absorbs(op.op, *x, true) : absorbs(op.op, *y, false);
}

std::optional<Scalar> ZeroPropagation::comparison(const Compare& compare) const {
  const auto x = of(compare.x), y = of(compare.y);
  if (x && y) return evaluate(compare.op, *x, *y);
  const Operand left = same_as(compare.x), right = same_as(compare.y);
  if (!left.is_value() || !right.is_value()) return std::nullopt;
  const bool rises = order_.contains({left.value(), right.value()});
  if (!rises && !order_.contains({right.value(), left.value()})) return std::nullopt;
  const bool holds = compare.op == CompareOp::ne || (rises && compare.op != CompareOp::eq);
  return Scalar::boolean(holds);
}

void ZeroPropagation::branch(const If& branch, const Stm& stm) {
  const auto condition = of(branch.condition);
  if (condition) {
    const Body& taken = condition->as_bool() ? *branch.then_body : *branch.else_body;
    run(taken);
    for (const auto& [made, result] : ranges::views::zip(stm.pattern, taken.results)) {
      facts_.same.insert_or_assign(made, same_as(result));
      if (const auto is = of(result)) know(made, *is);
    }
    return;
  }
  for (const Value made : stm.pattern) definitions_.insert_or_assign(made, &stm);
  const std::vector<Known> yes = results_assuming(branch.condition, true, *branch.then_body);
  const std::vector<Known> no = results_assuming(branch.condition, false, *branch.else_body);
  for (const auto& [made, a, b] : ranges::views::zip(stm.pattern, yes, no)) {
    if (a.is && b.is && same_number(*a.is, *b.is)) know(made, *a.is);
    if (a.same_as == b.same_as) facts_.same.insert_or_assign(made, a.same_as);
    if (a.never_zero && b.never_zero) facts_.never_zero.insert(made);
    if (a.positive && b.positive) facts_.positive.insert(made);
  }
}

std::vector<ZeroPropagation::Known> ZeroPropagation::results_assuming(const Operand& condition, bool holds,
                                                                      const Body& body) {
  const Facts before = facts_;
  assume(condition, holds);
  run(body);
  std::vector<Known> results = results_of(body);
  facts_ = before;
  return results;
}

std::vector<ZeroPropagation::Known> ZeroPropagation::results_of(const Body& body) const {
  std::vector<Known> results;
  for (const Operand& x : body.results) {
    const bool is_number = values_.type(x).is_scalar() && values_.type(x).element != ScalarType::unit;
    results.push_back({of(x), same_as(x), is_number && is_never_zero(x), is_number && is_positive(x)});
  }
  return results;
}

template <class T>
const T* ZeroPropagation::defined_by(const Operand& x) const {
  const auto found = x.is_value() ? definitions_.find(x.value()) : definitions_.end();
  return found == definitions_.end() ? nullptr : get_if<T>(*found->second);
}

void ZeroPropagation::assume(const Operand& condition, bool holds) {
  if (!condition.is_value()) return;
  know(condition.value(), Scalar::boolean(holds));
  if (const Compare* compare = defined_by<Compare>(condition)) assume_comparison(*compare, holds);
  if (const Unary* unary = defined_by<Unary>(condition); unary != nullptr && unary->op == UnaryOp::complement)
    assume(unary->x, !holds);
  const Binary* both = defined_by<Binary>(condition);
  if (both != nullptr && both->op == (holds ? BinaryOp::conj : BinaryOp::disj)) {
    assume(both->x, holds);
    assume(both->y, holds);
  } else if (both != nullptr && both->op == (holds ? BinaryOp::disj : BinaryOp::conj)) {
    assume_either({{both->x, holds}}, {{both->y, holds}});
  }
  // `p && q` is `if p then q else false`, `p || q` is `if p then true else q`.
  const If* choice = defined_by<If>(condition);
  if (choice == nullptr || choice->then_body->results.size() != 1) return;
  const Operand &yes = choice->then_body->results.front(), &no = choice->else_body->results.front();
  const auto is_known = [&](const Operand& x, bool as) { return x.is_constant() && x.constant().as_bool() == as; };
  if (is_known(no, !holds)) {
    assume(choice->condition, true);
    assume(yes, holds);
  } else if (is_known(yes, !holds)) {
    assume(choice->condition, false);
    assume(no, holds);
  } else {
    assume_either({{choice->condition, true}, {yes, holds}}, {{choice->condition, false}, {no, holds}});
  }
}

// What both of two lists of conditions say.
void ZeroPropagation::assume_either(const std::vector<std::pair<Operand, bool>>& one,
                                    const std::vector<std::pair<Operand, bool>>& other) {
  const Facts before = facts_;
  const auto with = [&](const std::vector<std::pair<Operand, bool>>& conditions) {
    facts_ = before;
    for (const auto& [condition, holds] : conditions) assume(condition, holds);
    return facts_;
  };
  const Facts a = with(one), b = with(other);
  facts_ = before;
  std::ranges::set_intersection(a.never_zero, b.never_zero, std::inserter(facts_.never_zero, facts_.never_zero.end()));
  std::ranges::set_intersection(a.positive, b.positive, std::inserter(facts_.positive, facts_.positive.end()));
}

void ZeroPropagation::assume_comparison(const Compare& compare, bool holds) {
  const auto note = [&](const Operand& x, const Operand& y, CompareOp op) {  // x op y, for a known y
    const auto bound = of(y);
    if (!x.is_value() || !bound || bound->type() == ScalarType::boolean) return;
    const Scalar zero = Scalar::zero(bound->type());
    const bool at_zero = same_number(*bound, zero);
    const bool below = evaluate(CompareOp::lt, *bound, zero)->as_bool();
    const bool above = !at_zero && !below;
    if (op == CompareOp::eq) know(x.value(), *bound);
    const bool differs = (op == CompareOp::ne && at_zero) || (op == CompareOp::eq && !at_zero) ||
                         (op == CompareOp::lt && !above) || (op == CompareOp::le && below);
    if (differs) facts_.never_zero.insert(x.value());
  };
  const auto note_above = [&](const Operand& x, const Operand& y, bool strict) {  // y < x or y <= x, for a known y
    const auto bound = of(y);
    if (!x.is_value() || !bound || bound->type() == ScalarType::boolean) return;
    const auto positive = evaluate(strict ? CompareOp::le : CompareOp::lt, Scalar::zero(bound->type()), *bound);
    if (!positive->as_bool()) return;
    facts_.positive.insert(x.value());
    facts_.never_zero.insert(x.value());
  };
  const bool orders = compare.op == CompareOp::lt || compare.op == CompareOp::le;
  if (!orders) {
    const CompareOp op = (compare.op == CompareOp::eq) == holds ? CompareOp::eq : CompareOp::ne;
    note(compare.x, compare.y, op);
    note(compare.y, compare.x, op);
    return;
  }
  // What is not x < y is y <= x: no operand is NaN.
  const Operand &small = holds ? compare.x : compare.y, &large = holds ? compare.y : compare.x;
  const bool strict = (compare.op == CompareOp::lt) == holds;
  note(small, large, strict ? CompareOp::lt : CompareOp::le);
  note_above(large, small, strict);
}

bool ZeroPropagation::is_never_zero(const Operand& x) const {
  if (values_.type(x).element == ScalarType::boolean) return false;
  if (const auto is = of(x)) return !is_zero(is);
  if (facts_.never_zero.contains(x.value()) || is_positive(x)) return true;
  const Unary* unary = defined_by<Unary>(x);
  if (unary != nullptr && (unary->op == UnaryOp::neg || unary->op == UnaryOp::abs)) return is_never_zero(unary->x);
  const Convert* change = defined_by<Convert>(x);
  return change != nullptr && keeps_signs(values_.type(change->x).element, *change) && is_never_zero(change->x);
}

bool ZeroPropagation::is_positive(const Operand& x) const {
  if (values_.type(x).element == ScalarType::boolean) return false;
  if (const auto is = of(x)) return !is_zero(is) && evaluate(CompareOp::lt, Scalar::zero(is->type()), *is)->as_bool();
  if (facts_.positive.contains(x.value())) return true;
  if (const Convert* change = defined_by<Convert>(x))
    return keeps_signs(values_.type(change->x).element, *change) && is_positive(change->x);
  if (const Unary* unary = defined_by<Unary>(x)) return unary->op == UnaryOp::sqrt && is_positive(unary->x);
  const Binary* op = defined_by<Binary>(x);
  if (op == nullptr) return false;
  const bool a = is_positive(op->x), b = is_positive(op->y);
  if (op->op == BinaryOp::max) return a || b;
  if (op->op == BinaryOp::min) return a && b;
  const bool is_sum = op->op == BinaryOp::add && is_float(values_.type(x).element);
  return is_sum && ((a && is_non_negative(op->y)) || (b && is_non_negative(op->x)));
}

bool ZeroPropagation::is_non_negative(const Operand& x) const {
  if (is_positive(x) || is_zero(of(x))) return true;
  if (const Unary* unary = defined_by<Unary>(x))
    return is_float(values_.type(x).element) &&
           (unary->op == UnaryOp::abs || unary->op == UnaryOp::sqrt || unary->op == UnaryOp::exp);
  const Binary* op = defined_by<Binary>(x);
  if (op == nullptr) return false;
  if (op->op == BinaryOp::max) return is_non_negative(op->x) || is_non_negative(op->y);
  if (!is_float(values_.type(x).element)) return false;
  if (op->op == BinaryOp::mul && op->x == op->y) return true;
  return op->op == BinaryOp::add && is_non_negative(op->x) && is_non_negative(op->y);
}

// Neutral elements alone reduce to the neutral element.
void ZeroPropagation::reduction(const Screma& screma, const Stm& stm) {
  if (screma.scans()) return;
  run(*screma.map.body);
  std::size_t k = 0;
  for (const ReduceOp& reduce : screma.reduces) {
    bool neutral = true;
    for (std::size_t n = 0; n < reduce.neutral.size(); ++n) {
      const auto term = of(screma.map.body->results[k + n]), wanted = of(reduce.neutral[n]);
      neutral = neutral && term && wanted && same_number(*term, *wanted);
    }
    for (std::size_t n = 0; n < reduce.neutral.size() && neutral; ++n) know(stm.pattern[k + n], *of(reduce.neutral[n]));
    k += reduce.neutral.size();
  }
}

}  // namespace apl::sparsify
