// A term t is the same for every absent element, or rises with the index where the operator compares it. If t + t = t,
// or t(i) + t(j) = t(i) for all i < j, one of them is as good as a run of neighbours, whatever else the operator does,
// since it is associative. That is proved by evaluating the operator on two such terms.
#include "passes/analysis/absent.h"

#include <range/v3/view/zip.hpp>

#include <algorithm>

#include "ir/walk.h"

namespace apl::sparsify {
namespace {

using AbsentTerm = std::variant<Scalar, Poly>;

// The result as an expression that rises with `index`, if it does.
std::optional<Poly> rising(const Operand& result, Value index, const Body& body) {
  if (!result.is_value()) return std::nullopt;
  if (result.value() == index) return Poly(index);
  const Stm* made = defining_stm(body, result.value());
  const SizeExpr* size = made != nullptr ? get_if<SizeExpr>(*made) : nullptr;
  const auto linear = size != nullptr ? size->value.linear_in(index) : std::nullopt;
  if (!linear || linear->coefficient.constant().value_or(0) <= 0) return std::nullopt;
  bool outer = true;
  linear->rest.for_each_symbol([&](Value v) { outer = outer && defining_stm(body, v) == nullptr; });
  return outer ? std::optional(size->value) : std::nullopt;
}

// What the operator makes of two terms, the first of which comes first.
std::optional<Absent> law(const ReduceOp& reduce, const std::vector<AbsentTerm>& terms, const ValueTable& values) {
  const std::size_t n = reduce.neutral.size();
  ZeroPropagation zeros(values);
  bool rises = false;
  for (std::size_t k = 0; k < n; ++k) {
    const Value left = reduce.op.params[k], right = reduce.op.params[n + k];
    if (const Scalar* number = std::get_if<Scalar>(&terms[k])) {
      zeros.know(left, *number);
      zeros.know(right, *number);
    } else {
      rises = true;
      zeros.know_order(left, right);
    }
  }
  zeros.run(*reduce.op.body);
  const auto gives = [&](std::size_t side) {
    for (std::size_t k = 0; k < n; ++k) {
      const Operand& result = reduce.op.body->results[k];
      const Scalar* number = std::get_if<Scalar>(&terms[k]);
      const auto is = zeros.of(result);
      if (number != nullptr ? !(is && same_number(*is, *number))
                            : zeros.same_as(result) != Operand(reduce.op.params[side * n + k]))
        return false;
    }
    return true;
  };
  if (!gives(0)) return gives(1) ? std::optional(Absent::last) : std::nullopt;
  const auto op = as_binary_op(reduce.op);
  return !rises && (reduce.commutative || (op && is_commutative(*op))) ? Absent::once : Absent::first;
}

}  // namespace

bool AbsentTerms::have(Absent kind) const { return std::ranges::find(operators, kind) != operators.end(); }
bool AbsentTerms::are_nothing() const {
  return std::ranges::all_of(operators, [](Absent kind) { return kind == Absent::nothing; });
}

Reason zero_not_neutral(const std::string& name, const ZeroPropagation& zeros) {
  if (zeros.has_undecided_quotient())
    return {"zero-not-neutral",
            "where " + name + " has no element, 0 is divided by a number that is not known to differ from 0",
            "divide under a guard, `if d == 0 then 0 else a / d`, or multiply by the reciprocal"};
  return {"zero-not-neutral",
          "where " + name + " has no element, the sum's term is not known to be the neutral element",
          "give the neutral element where the element is 0: `if a == 0 then neutral else ...`"};
}

std::variant<AbsentTerms, Reason> absent_terms(const Screma& reduction, std::size_t dim, const std::vector<Value>& zero,
                                               const Op& around, const std::string& name, const ValueTable& values) {
  const Body& map = *reduction.map.body;
  ZeroPropagation zeros(values);
  for (const Value element : zero) zeros.know(element, Scalar::zero(values.type(element).element));
  zeros.look_for_infinities(map);
  zeros.watch(map);
  for_each_body(around, [&](const BodyPtr& body) { zeros.run(*body); });
  if (!zeros.watched()) zeros.run(map);
  const std::vector<ZeroPropagation::Known>& results = *zeros.watched();

  AbsentTerms terms;
  std::size_t first = 0;
  for (const ReduceOp& reduce : reduction.reduces) {
    bool nothing = true;
    std::vector<AbsentTerm> own;
    for (std::size_t k = 0; k < reduce.neutral.size(); ++k) {
      const ZeroPropagation::Known& known = results[first + k];
      const auto neutral = zeros.of(reduce.neutral[k]);
      nothing = nothing && known.is && neutral && same_number(*known.is, *neutral);
      const auto index = known.is ? std::nullopt : rising(known.same_as, reduction.indices[dim], map);
      if (!known.is && !index) return zero_not_neutral(name, zeros);
      own.push_back(known.is ? AbsentTerm(*known.is) : AbsentTerm(*index));
    }
    const auto kind = nothing ? std::optional(Absent::nothing) : law(reduce, own, values);
    if (!kind) return zero_not_neutral(name, zeros);
    terms.operators.push_back(*kind);
    terms.results.insert(terms.results.end(), own.begin(), own.end());
    first += reduce.neutral.size();
  }
  return terms;
}

std::vector<Operand> terms_at(const AbsentTerms& terms, const Screma& reduction, std::size_t r, std::size_t dim,
                              const Poly& at, const Substitution& here, Builder& out) {
  std::size_t first = 0;
  for (std::size_t before = 0; before < r; ++before) first += reduction.reduces[before].neutral.size();
  std::vector<Operand> operands;
  for (std::size_t k = 0; k < reduction.reduces[r].neutral.size(); ++k) {
    const AbsentTerm& term = terms.results[first + k];
    if (const Scalar* number = std::get_if<Scalar>(&term)) {
      operands.emplace_back(*number);
      continue;
    }
    const Poly moved = std::get<Poly>(term).substitute(
        [&](Value v) { return v == reduction.indices[dim] ? std::optional(at) : std::nullopt; });
    operands.emplace_back(out.size(substitute(moved, here), "at"));
  }
  return operands;
}

}  // namespace apl::sparsify
