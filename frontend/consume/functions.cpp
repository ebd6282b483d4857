// Functions: what they may consume, and what their results may alias.
#include <algorithm>
#include <utility>

#include "frontend/consume/checker.h"

namespace apl::frontend {

namespace {

// Whether the caller gives all of the parameter away.
bool is_given(const FlowPtr& flow) {
  if (flow->kind == Flow::Kind::scalar) return true;
  if (flow->kind == Flow::Kind::leaf) return flow->unique;
  if (flow->kind == Flow::Kind::arrow) return false;
  return std::all_of(flow->fields.begin(), flow->fields.end(), [](const auto& f) { return is_given(f.second); });
}

// How often each variable occurs in parts of its own. What a type parameter stands for may hold anything twice.
void count_aliases(const FlowPtr& flow, std::unordered_map<VarId, int>& counts) {
  if (flow->kind == Flow::Kind::record) {
    for (const auto& [name, field] : flow->fields) count_aliases(field, counts);
    return;
  }
  std::vector<VarId> variables;
  for (const Alias& alias : flow->aliases) variables.push_back(alias.variable);
  variables.erase(std::unique(variables.begin(), variables.end()), variables.end());
  for (VarId variable : variables) counts[variable] += flow->parameter ? 2 : 1;
}

FlowPtr arrow_from(const FlowPtr& param, const FlowPtr& result) {
  Flow arrow{.kind = Flow::Kind::arrow, .consumes = any_unique(param)};
  arrow.from = param;
  arrow.to = result;
  return make_flow(std::move(arrow));
}

// The type with `*` at the parameters that are consumed.
std::string text_with_consumption(const TypeStore& store, Ty type, const FlowPtr& flow) {
  std::string text;
  const Flow* rest = flow.get();
  for (const auto* arrow = store.get_if<TyArrow>(type); arrow != nullptr; arrow = store.get_if<TyArrow>(type)) {
    const bool function = store.get_if<TyArrow>(arrow->from) != nullptr;
    const std::string from = store.to_text(arrow->from);
    const bool is_arrow = rest && rest->kind == Flow::Kind::arrow;
    text += (is_arrow && rest->consumes ? "*" : "") + (function ? "(" + from + ")" : from) + " -> ";
    rest = is_arrow ? rest->to.get() : nullptr;
    type = arrow->to;
  }
  return text + store.to_text(type);
}

// The type alone: nothing that a value aliases.
FlowPtr without_aliases(const FlowPtr& flow) { return with_aliases(flow, Aliases{}); }

}  // namespace

void each_name(const Pattern& pattern, const FlowPtr& flow,
               const std::function<void(const Pattern&, const FlowPtr&)>& visit) {
  auto part = [&](const std::string& name) {
    const FlowPtr* found = flow->field(name);
    return found ? *found : flow;
  };
  if (std::holds_alternative<PatternName>(pattern.node)) {
    visit(pattern, flow);
  } else if (const auto* typed = std::get_if<PatternTyped>(&pattern.node)) {
    each_name(*typed->pattern, flow, visit);
  } else if (const auto* tuple = std::get_if<PatternTuple>(&pattern.node)) {
    for (std::size_t k = 0; k < tuple->elements.size(); ++k)
      each_name(*tuple->elements[k], part(std::to_string(k)), visit);
  } else if (const auto* record = std::get_if<PatternRecord>(&pattern.node)) {
    for (const auto& field : record->fields) each_name(*field.value, part(field.name), visit);
  } else if (const auto* constructor = std::get_if<PatternConstructor>(&pattern.node)) {
    for (const PatternPtr& element : constructor->payload) each_name(*element, flow, visit);
  }
}

void Consumption::bind_parameter(const Pattern& pattern, const FlowPtr& flow) {
  each_name(pattern, flow, [&](const Pattern& name, const FlowPtr& type) {
    const VarId variable = program_.pattern_binders[name.id];
    bind(variable, with_self(type, variable, paths_), any_unique(type));
  });
}

FlowPtr Consumption::function(const std::vector<PatternPtr>& params, const TypeExpr* result, const Expr& body) {
  const std::uint32_t start = order_;
  const std::uint32_t outer = std::exchange(barrier_, order_);
  const std::size_t observed = observed_.size();
  std::vector<FlowPtr> types;
  for (const PatternPtr& param : params) {
    types.push_back(parameter(*param));
    check_sizes(*param);
    bind_parameter(*param, types.back());
  }
  if (result) check_sizes(*result);
  const std::size_t consumed = consumed_log_.size();
  const FlowPtr value = check(body);
  take_consumed(consumed);  // of parameters: nobody's matter
  FlowPtr type = without_aliases(with_uniqueness(value, false));
  if (result) {
    type = written(*result, outlines_.of(type_of(body)));
    check_compatible(type, value, body.location, "Function body does not have expected type");
  }
  check_return(params, type, value, body.location);
  if (!params.empty()) check_globals(value, body.location);
  if (!result) type = inferred_uniqueness(params, value);
  Aliases closure;
  for (VarId variable : take_observed(observed, start)) closure = joined(closure, all_aliases(env_.at(variable).flow));
  barrier_ = outer;
  for (std::size_t k = types.size(); k-- > 0;) type = arrow_from(types[k], type);
  return type->kind == Flow::Kind::arrow ? with_aliases(type, closure) : type;
}

FlowPtr Consumption::definition(const Definition& definition, const Global& global) {
  if (global.spec) return specified(definition, *global.spec);
  const FlowPtr flow = function(definition.params, definition.result.get(), *definition.body);
  if (definition.params.empty() && definition.result && any_unique(flow))
    report(Code::consume_unique_constant, definition.result->location,
           "A top-level constant cannot have a unique type.");
  return without_aliases(definition.params.empty() ? with_uniqueness(outlines_.adapted(flow, global.type), false)
                                                   : flow);
}

// A value with the type that a module type gives it. Of a parametric module's parameter there is no more than the type.
FlowPtr Consumption::specified(const Definition& definition, const TypeExpr& spec) {
  const FlowPtr value = check(*definition.body);
  const FlowPtr type = written(spec, outlines_.of(type_of(*definition.body)));
  if (!std::holds_alternative<Hole>(definition.body->node))
    check_compatible(type, value, definition.name_location,
                     "Module type specifies val " + definition.name + " : " + to_text(spec) +
                         ", but the module defines \"" + definition.name + "\" as " +
                         text_with_consumption(store_, type_of(*definition.body), value));
  return without_aliases(type->kind == Flow::Kind::arrow ? type : with_uniqueness(type, false));
}

void Consumption::check_return(const std::vector<PatternPtr>& params, const FlowPtr& type, const FlowPtr& value,
                               Location location) {
  Aliases seen_unique, seen;
  pairwise(type, value, [&](const FlowPtr& wanted, const FlowPtr& got) {
    const Aliases aliases = all_aliases(got);
    const bool unique = wanted->kind == Flow::Kind::leaf && wanted->unique;
    if (overlap(aliases, unique ? seen : seen_unique))
      report(Code::consume_unique_return_aliased, location,
             "A unique-typed component of the return value is aliased to some other component.");
    seen = joined(seen, aliases);
    if (!unique) return;
    seen_unique = joined(seen_unique, aliases);
    for (const PatternPtr& param : params) {
      each_name(*param, parameter(*param), [&](const Pattern& name, const FlowPtr& param_type) {
        const VarId variable = program_.pattern_binders[name.id];
        const bool aliased =
            std::any_of(aliases.begin(), aliases.end(), [&](const Alias& alias) { return alias.variable == variable; });
        if (aliased && !is_given(param_type))
          report(Code::consume_return_aliased, location,
                 "Unique-typed return value is aliased to \"" + name_of(variable) + "\", which is not consumable.",
                 {{"it is not given away by the caller: its type has no '*'", name.location}});
      });
    }
  });
}

void Consumption::check_globals(const FlowPtr& value, Location location) {
  for (const Alias& alias : all_aliases(value, false)) {
    if (!alias.bound || alias.variable < kGlobals || alias.variable >= kResults) continue;
    report(Code::consume_alias_free_variable, location,
           "Function result aliases the free variable \"" + name_of(alias.variable) +
               "\". Use \"copy\" to break the aliasing.");
  }
}

// A result whose type is not written is unique where it aliases nothing but what is consumed, and that once.
FlowPtr Consumption::inferred_uniqueness(const std::vector<PatternPtr>& params, const FlowPtr& value) {
  if (params.empty()) return without_aliases(with_uniqueness(value, false));
  std::vector<VarId> given;
  for (const PatternPtr& param : params)
    each_name(*param, parameter(*param), [&](const Pattern& name, const FlowPtr& type) {
      if (any_unique(type)) given.push_back(program_.pattern_binders[name.id]);
    });
  std::unordered_map<VarId, int> counts;
  count_aliases(value, counts);
  const std::function<FlowPtr(const FlowPtr&)> infer = [&](const FlowPtr& part) -> FlowPtr {
    Flow copy = *part;
    for (auto& [name, field] : copy.fields) field = infer(field);
    copy.unique = copy.kind == Flow::Kind::leaf;
    for (const Alias& alias : part->aliases) {
      const bool consumed = std::find(given.begin(), given.end(), alias.variable) != given.end();
      if ((alias.bound && !consumed) || counts[alias.variable] > 1) copy.unique = false;
    }
    copy.aliases.clear();
    return make_flow(std::move(copy));
  };
  return infer(value);
}

}  // namespace apl::frontend
