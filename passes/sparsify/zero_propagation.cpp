// What follows from zeros, for operands of which nothing is known but that they are finite.
#include <range/v3/view/zip.hpp>

#include <cmath>

#include "ir/walk.h"
#include "passes/analysis/map_uses.h"
#include "passes/sparsify/sparsify.h"

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

}  // namespace

bool same_number(const Scalar& a, const Scalar& b) {
  return a == b || (a.type() == b.type() && is_float(a.type()) && a.as_float() == b.as_float());
}

std::optional<Scalar> ZeroPropagation::of(const Operand& operand) const {
  if (operand.is_constant()) return operand.constant();
  const auto found = known_.find(operand.value());
  return found == known_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<Scalar> ZeroPropagation::absorbed(BinaryOp op, const Scalar& known, bool left) const {
  return finite_ || !is_float(known.type()) ? absorbs(op, known, left) : std::nullopt;
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
}

void ZeroPropagation::statement(const Stm& stm) {
  if (const If* choice = get_if<If>(stm)) return branch(*choice, stm);
  if (const Screma* screma = get_if<Screma>(stm)) return reduction(*screma, stm);
  if (stm.pattern.size() != 1) return;
  if (const std::optional<Scalar> is = scalar(stm)) known_.insert_or_assign(stm.pattern.front(), *is);
}

std::optional<Scalar> ZeroPropagation::scalar(const Stm& stm) const {
  if (const Use* use = get_if<Use>(stm)) return of(use->x);
  if (const Unary* unary = get_if<Unary>(stm)) {
    const auto x = of(unary->x);
    return x ? evaluate(unary->op, *x) : std::nullopt;
  }
  if (const Convert* change = get_if<Convert>(stm)) {
    const auto x = of(change->x);
    return x ? std::optional(convert(*x, change->to, change->same_bits)) : std::nullopt;
  }
  if (const Binary* binary = get_if<Binary>(stm)) {
    const auto x = of(binary->x), y = of(binary->y);
    if (x && y) return evaluate(binary->op, *x, *y);
    if (x) return absorbed(binary->op, *x, true);
    return y ? absorbed(binary->op, *y, false) : std::nullopt;
  }
  if (const SizeExpr* size = get_if<SizeExpr>(stm)) {
    const Poly known = size->value.substitute([&](Value v) {
      const auto x = of(v);
      return x ? std::optional(Poly(x->as_int())) : std::nullopt;
    });
    return known.constant() ? std::optional(Scalar::integer(ScalarType::i64, *known.constant())) : std::nullopt;
  }
  if (const Compare* compare = get_if<Compare>(stm)) {
    const auto x = of(compare->x), y = of(compare->y);
    return x && y ? evaluate(compare->op, *x, *y) : std::nullopt;
  }
  return std::nullopt;
}

void ZeroPropagation::branch(const If& branch, const Stm& stm) {
  const auto condition = of(branch.condition);
  for (const BodyPtr& body : {branch.then_body, branch.else_body})
    if (!condition || condition->as_bool() == (body == branch.then_body)) run(*body);
  for (const auto& [made, then_result, else_result] :
       ranges::views::zip(stm.pattern, branch.then_body->results, branch.else_body->results)) {
    const auto yes = of(then_result), no = of(else_result);
    const auto is = condition ? (condition->as_bool() ? yes : no) : yes == no ? yes : std::nullopt;
    if (is) know(made, *is);
  }
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
