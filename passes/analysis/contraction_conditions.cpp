#include "passes/analysis/contraction_conditions.h"

#include <algorithm>

#include "ir/walk.h"

namespace apl {

void Definitions::add(const Stm& stm) {
  for (Value v : stm.pattern) made_[v] = &stm;
  for_each_body(stm.op, [&](const BodyPtr& body) {
    for (const Stm& inner : body->stms) add(inner);
  });
}

const Stm* Definitions::find(Value v) const {
  const auto found = made_.find(v);
  return found == made_.end() ? nullptr : found->second;
}

std::optional<Poly> Definitions::number(const Operand& x) const {
  if (values_.type(x).element != ScalarType::i64 || !values_.type(x).is_scalar()) return std::nullopt;
  if (x.is_constant()) return Poly(x.constant().as_int());
  const Stm* stm = find(x.value());
  if (stm == nullptr) return Poly(x.value());
  if (const Use* use = get_if<Use>(*stm)) return number(use->x);
  if (const SizeExpr* size = get_if<SizeExpr>(*stm)) {
    bool known = true;
    Poly all = size->value.substitute([&](Value v) -> std::optional<Poly> {
      if (find(v) == nullptr) return std::nullopt;
      const auto part = number(Operand(v));
      known = known && part;
      return part;
    });
    return known ? std::optional(std::move(all)) : std::nullopt;
  }
  if (const Binary* binary = get_if<Binary>(*stm)) {
    const auto a = number(binary->x), b = number(binary->y);
    if (!a || !b) return std::nullopt;
    if (binary->op == BinaryOp::add) return *a + *b;
    if (binary->op == BinaryOp::sub) return *a - *b;
    if (binary->op == BinaryOp::mul) return *a * *b;
    return std::nullopt;
  }
  // What is read, or computed otherwise, is a number of its own.
  return Poly(x.value());
}

std::optional<std::vector<Poly>> Definitions::all_of(const Operand& a, const Operand& b, bool outcome) const {
  auto first = when(a, outcome), second = when(b, outcome);
  if (!first || !second) return std::nullopt;
  first->insert(first->end(), second->begin(), second->end());
  return first;
}

std::optional<std::vector<Poly>> Definitions::when(const Operand& condition, bool outcome) const {
  if (condition.is_constant())
    return (condition.constant().as_int() != 0) == outcome ? std::optional(std::vector<Poly>{}) : std::nullopt;
  const Stm* stm = find(condition.value());
  if (stm == nullptr) return std::nullopt;
  if (const Use* use = get_if<Use>(*stm)) return when(use->x, outcome);
  if (const Unary* unary = get_if<Unary>(*stm); unary && unary->op == UnaryOp::complement)
    return when(unary->x, !outcome);
  if (const Binary* binary = get_if<Binary>(*stm)) {
    const bool all = binary->op == (outcome ? BinaryOp::conj : BinaryOp::disj);
    return all ? all_of(binary->x, binary->y, outcome) : std::nullopt;
  }
  // a && b is `if a { b } else { false }`, a || b `if a { true } else { b }`.
  if (const If* branch = get_if<If>(*stm); branch != nullptr && branch->then_body->results.size() == 1) {
    const Operand &then = branch->then_body->results[0], &other = branch->else_body->results[0];
    const Operand &sure = outcome ? other : then, &second = outcome ? then : other;
    const bool decides = sure.is_constant() && (sure.constant().as_int() != 0) != outcome;
    return decides ? all_of(branch->condition, second, outcome) : std::nullopt;
  }
  const Compare* compare = get_if<Compare>(*stm);
  if (compare == nullptr) return std::nullopt;
  const auto a = number(compare->x), b = number(compare->y);
  if (!a || !b) return std::nullopt;
  switch (compare->op) {
    case CompareOp::lt: return std::vector{outcome ? *b - *a - 1 : *a - *b};
    case CompareOp::le: return std::vector{outcome ? *b - *a : *a - *b - 1};
    case CompareOp::eq: return outcome ? std::optional(std::vector{*a - *b, *b - *a}) : std::nullopt;
    case CompareOp::ne: return outcome ? std::nullopt : std::optional(std::vector{*a - *b, *b - *a});
  }
  return std::nullopt;
}

AffineOutcome affine_in_dims(const Contraction& contraction, const Poly& number) {
  AffineOutcome outcome{{number, {}}, {}};
  for (std::size_t d = 0; d < contraction.dims.size(); ++d) {
    const ContractionDim& dim = contraction.dims[d];
    const auto linear = outcome.affine.offset.linear_in(dim.index);
    bool affine = linear.has_value();
    for (const ContractionDim& other : contraction.dims) affine = affine && !linear->coefficient.mentions(other.index);
    if (!affine) {
      outcome.not_affine_in = d;
      return outcome;
    }
    // The only index of such a dim is 0.
    outcome.affine.strides.push_back(dim.size.is_one() ? Poly(0) : linear->coefficient);
    outcome.affine.offset = linear->rest;
  }
  return outcome;
}

std::optional<std::vector<ContractionCondition>> conditions_of(const Contraction& contraction,
                                                               const std::vector<Poly>& non_negative) {
  const auto mentions_dims = [&](const Poly& p) {
    return std::ranges::any_of(contraction.dims, [&](const ContractionDim& dim) { return p.mentions(dim.index); });
  };
  std::vector<ContractionCondition> conditions;
  std::vector<bool> taken(non_negative.size(), false);
  for (std::size_t k = 0; k < non_negative.size(); ++k) {
    if (taken[k]) continue;
    AffineOutcome at = affine_in_dims(contraction, non_negative[k]);
    if (at.not_affine_in) return std::nullopt;
    ContractionCondition& made = conditions.emplace_back(ContractionCondition{std::move(at.affine), {}});
    // p >= 0 and b - p >= 0 where b is the same for all indices: 0 <= p < b + 1.
    for (std::size_t other = k + 1; other < non_negative.size(); ++other) {
      const Poly sum = non_negative[k] + non_negative[other];
      if (taken[other] || made.bound || !mentions_dims(non_negative[k]) || mentions_dims(sum)) continue;
      made.bound = sum + 1;
      taken[other] = true;
    }
  }
  return conditions;
}

}  // namespace apl
