// Branches and loops.
//   if true then {a} else {b} => a           if c then {a} else {a} => a       if c then {true} else {false} => c
//   choose first { a when false ... b ... c } => b, without what cannot run
//   loop {x} = {a} for i < 0 => a            loop for i < 1 => the body once
//   a loop parameter that every iteration leaves alone => its initial value
//   loop {x = 1} for i < 5 { x * 3 } => 243  where nothing else is known outside but arrays of constants; it may call
//                                            functions of which the same holds
//   apply f(3, 4) => its result              the same
#include <algorithm>
#include <range/v3/view/zip.hpp>

#include "ir/interpret.h"
#include "ir/places.h"
#include "passes/simplify/simplifier.h"

namespace apl {

namespace {

// Loops of more iterations run when the program does.
constexpr std::int64_t kMostConstantTrips = 4096;

// Whether the interpreter computes bit for bit what the program would: floats may be rounded otherwise there. Adds the
// functions that are called to `callees`.
bool is_exact(const Module& module, const Body& body, const ValueTable& values, std::vector<FunctionPtr>& callees) {
  bool exact = true;
  const auto look = [&](Value v) { exact = exact && !values.type(v).is_memory() && !is_float(values.type(v).element); };
  for_each_stm(body, [&](const Stm& stm) {
    std::ranges::for_each(stm.pattern, look);
    for_each_binder(stm.op, look);
    const Loop* inner = get_if<Loop>(stm);
    const auto trips = inner != nullptr && inner->index ? inner->bound.constant() : std::nullopt;
    exact = exact && stm.attributes.empty() && !get_if<GetSize>(stm) && !get_if<Derivative>(stm) &&
            (!trips || *trips <= kMostConstantTrips);
    const Apply* call = get_if<Apply>(stm);
    if (!exact || call == nullptr) return;
    const auto is_callee = [&](const FunctionPtr& each) { return each->name == call->function; };
    if (std::ranges::any_of(callees, is_callee)) return;
    const auto callee = std::ranges::find_if(module.functions, is_callee);
    exact = callee != module.functions.end() && !(*callee)->entry;
    if (!exact) return;
    callees.push_back(*callee);
    exact = is_exact(module, *(*callee)->body, (*callee)->values, callees);
  });
  return exact;
}

}  // namespace

// Nothing where it fails or takes long: that is for the program to do.
Fired Simplifier::computed(const Stm& stm) {
  if (module_.stage != Stage::soac || !stm.attributes.empty()) return Fired::none;
  const auto is_scalar = [&](Value v) { return function_.values.type(v).is_scalar(); };
  if (stm.pattern.empty() || !std::ranges::all_of(stm.pattern, is_scalar)) return Fired::none;
  Body body;
  for (const Value outside : free_values(stm.op, function_.values)) {
    const ArrayLit* literal = definition<ArrayLit>(outside);
    const auto is_constant = [](const Operand& x) { return x.is_constant(); };
    if (literal == nullptr || !std::ranges::all_of(literal->elements, is_constant)) return Fired::none;
    body.stms.push_back({.pattern = {outside}, .op = *literal, .location = {}, .certificates = {}, .attributes = {}});
  }
  body.stms.push_back({.pattern = stm.pattern, .op = stm.op, .location = {}, .certificates = {}, .attributes = {}});
  std::vector<FunctionPtr> callees;
  if (!is_exact(module_, body, function_.values, callees)) return Fired::none;
  Function function;
  function.name = "a constant";  // no function of the program is called so
  EntryInfo entry{.name = function.name, .params = {}, .results = {}};
  for (const Value v : stm.pattern) {
    body.results.emplace_back(v);
    function.results.push_back(function_.values.type(v));
    entry.results.push_back({.type = std::string(to_text(function_.values.type(v).element))});
  }
  function.entry = std::move(entry);
  // Without places: the module has no calls that they could name.
  Substitution none;
  function.body = copy_fresh(std::make_shared<const Body>(std::move(body)), none, function_.values, function.values,
                             [](const Location&) { return Location{}; });
  Module module;
  module.stage = Stage::soac;
  for (const FunctionPtr& callee : callees) module.functions.push_back(without_places(*callee));
  module.functions.push_back(std::make_shared<const Function>(std::move(function)));
  const auto stop = [] { return true; };  // asked after 65,536 bodies
  const auto made = interpret(module, "a constant", {}, {.parameters = {}, .stop = stop, .reduced = {}});
  if (!made) return Fired::none;
  for (const auto& [value, result] : ranges::views::zip(stm.pattern, *made)) bind(value, result.at(0));
  return Fired::gone;
}

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

Fired Simplifier::call(const Stm& stm, const Apply& op) {
  const auto is_constant = [](const Operand& x) { return x.is_constant(); };
  return std::ranges::all_of(op.arguments, is_constant) ? computed(stm) : Fired::none;
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
  const bool is_short = !counts || trips.value_or(kMostConstantTrips + 1) <= kMostConstantTrips;
  if (is_short && computed(stm) == Fired::gone) return Fired::gone;
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
