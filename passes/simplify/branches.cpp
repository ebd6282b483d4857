// Branches and loops.
//   if true then {a} else {b} => a           if c then {a} else {a} => a       if c then {true} else {false} => c
//   choose first { a when false ... b ... c } => b, without what cannot run
//   loop {x} = {a} for i < 0 => a            loop for i < 1 => the body once
//   a loop parameter that every iteration leaves alone => its initial value
#include <range/v3/view/zip.hpp>

#include "passes/simplify/simplifier.h"

namespace apl {

Fired Simplifier::taken(const Stm& stm, const Body& body) {
  for (const Stm& inner : body.stms) statement(inner);
  for (const auto& [made, result] : ranges::views::zip(stm.pattern, body.results)) bind(made, rewrite(result));
  return Fired::gone;
}

Fired Simplifier::choose(Stm& stm, const Choose& op) {
  // Those that stay keep their numbers.
  Choose made{.by = op.by, .parameter = op.parameter, .alternatives = {}};
  std::vector<const Choose::Alternative*> possible;
  for (const Choose::Alternative& alternative : op.alternatives) {
    const Operand condition = rewrite(alternative.condition);
    made.alternatives.push_back(alternative);
    if (condition != Operand(Scalar::boolean(false))) possible.push_back(&alternative);
    if (op.by == Choose::By::first && condition == Operand(Scalar::boolean(true))) break;
  }
  if (possible.size() == 1) return taken(stm, *possible.front()->body);
  if (made.alternatives.size() == op.alternatives.size()) return Fired::none;
  stm.op = std::move(made);
  return Fired::again;
}

Fired Simplifier::branch(Stm& stm, const If& op) {
  if (op.condition.is_constant()) return taken(stm, op.condition.constant().as_bool() ? *op.then_body : *op.else_body);
  for (std::size_t k = 0; k < stm.pattern.size(); ++k) {
    if (replaced_.contains(stm.pattern[k])) continue;
    const Operand yes = rewrite(op.then_body->results[k]);
    const Operand no = rewrite(op.else_body->results[k]);
    if (yes == no) {
      bind(stm.pattern[k], yes);
    } else if (yes == Operand(Scalar::boolean(true)) && no == Operand(Scalar::boolean(false))) {
      bind(stm.pattern[k], op.condition);
    } else if (yes == Operand(Scalar::boolean(false)) && no == Operand(Scalar::boolean(true))) {
      bind(stm.pattern[k], emit(stm, values().name(stm.pattern[k]), Unary{UnaryOp::complement, op.condition}));
    }
  }
  return Fired::none;  // dead code removal drops the results that nobody reads now
}

Fired Simplifier::loop(Stm& stm, const Loop& op) {
  const bool counts = static_cast<bool>(op.index);
  const std::optional<std::int64_t> trips = counts ? op.bound.constant() : std::nullopt;
  if (trips && *trips <= 0) {
    for (const auto& [made, initial] : ranges::views::zip(stm.pattern, op.initial)) bind(made, initial);
    return Fired::gone;
  }
  if (trips && *trips == 1) {
    bind(op.index, i64_constant(0));
    for (const auto& [param, initial] : ranges::views::zip(op.params, op.initial)) bind(param, initial);
    for (const Stm& inner : op.body->stms) statement(inner);
    for (const auto& [made, result] : ranges::views::zip(stm.pattern, op.body->results)) bind(made, rewrite(result));
    return Fired::gone;
  }
  // The first parameter of a while loop is its condition.
  for (std::size_t k = counts ? 0 : 1; k < op.params.size(); ++k) {
    if (replaced_.contains(op.params[k])) continue;
    const Operand result = rewrite(op.body->results[k]);
    if (result != Operand(op.params[k]) && result != op.initial[k]) continue;
    if (result == op.initial[k] && consumption_.consumed(op.params[k])) continue;
    bind(op.params[k], op.initial[k]);
    bind(stm.pattern[k], op.initial[k]);
  }
  return Fired::none;
}

}  // namespace apl
