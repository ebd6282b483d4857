// Loops. A loop parameter without a written type is consumed where the body consumes it; so the body is looked at as
// if it could consume all of them, and what it did decides what the initial values have to give away.
#include <range/v3/view/zip.hpp>

#include <algorithm>
#include <utility>

#include "frontend/consume/checker.h"

namespace apl::frontend {

// Enters the names of a loop's pattern, all that have no written type as consumable.
void Consumption::collect_params(const Pattern& pattern, const FlowPtr& flow, bool fixed, std::vector<LoopParam>& out) {
  if (std::holds_alternative<PatternName>(pattern.node)) {
    const VarId variable = program_.pattern_binders[pattern.id];
    const FlowPtr type = outlines_.adapted(flow, program_.pattern_types[pattern.id]);
    out.push_back({.variable = variable, .pattern = &pattern, .fixed = fixed, .consumed = any_unique(type)});
    bind(variable, with_self(type, variable, paths_), !fixed || any_unique(type));
  } else if (const auto* typed = std::get_if<PatternTyped>(&pattern.node)) {
    collect_params(*typed->pattern, fixed ? flow : parameter(pattern), true, out);
  } else if (const auto* tuple = std::get_if<PatternTuple>(&pattern.node)) {
    for (std::size_t k = 0; k < tuple->elements.size(); ++k) {
      const Pattern& element = *tuple->elements[k];
      collect_params(element, part_of(flow, std::to_string(k), program_.pattern_types[element.id]), fixed, out);
    }
  } else if (const auto* record = std::get_if<PatternRecord>(&pattern.node)) {
    for (const auto& field : record->fields)
      collect_params(*field.value, part_of(flow, field.name, program_.pattern_types[field.value->id]), fixed, out);
  }
}

// The type of a loop's pattern, unique where it is consumed.
FlowPtr Consumption::loop_parameter(const Pattern& pattern, const std::vector<LoopParam>& params) {
  const FlowPtr outline = outlines_.of(program_.pattern_types[pattern.id]);
  if (std::holds_alternative<PatternName>(pattern.node)) {
    const VarId variable = program_.pattern_binders[pattern.id];
    const auto param =
        std::find_if(params.begin(), params.end(), [&](const auto& p) { return p.variable == variable; });
    return with_uniqueness(outline, param != params.end() && param->consumed);
  }
  if (std::holds_alternative<PatternTyped>(pattern.node)) {
    const FlowPtr written = parameter(pattern);
    const Pattern* inner = &pattern;
    while (const auto* typed = std::get_if<PatternTyped>(&inner->node)) inner = typed->pattern.get();
    const auto param = std::ranges::find_if(params, [&](const LoopParam& p) { return p.pattern == inner; });
    return param != params.end() && !param->given ? with_uniqueness(written, false) : written;
  }
  Flow copy = *outline;
  if (const auto* tuple = std::get_if<PatternTuple>(&pattern.node)) {
    if (copy.fields.size() != tuple->elements.size()) return outline;
    for (auto&& [field, element] : ranges::views::zip(copy.fields, tuple->elements))
      field.second = loop_parameter(*element, params);
    return make_flow(std::move(copy));
  }
  if (const auto* record = std::get_if<PatternRecord>(&pattern.node)) {
    for (const auto& field : record->fields)
      for (auto& [name, flow] : copy.fields)
        if (name == field.name) flow = loop_parameter(*field.value, params);
    return make_flow(std::move(copy));
  }
  return outline;
}

// Which parameters are consumed: those that the body consumes, and those whose next value it makes of consumed ones.
void Consumption::converge(const LoopExpr& loop, std::vector<LoopParam>& params, const FlowPtr& body,
                           Location location) {
  for (bool changed = true; changed;) {
    changed = false;
    Aliases given, kept;
    each_name(*loop.pattern, body, [&](const Pattern& pattern, const FlowPtr& flow) {
      const VarId variable = program_.pattern_binders[pattern.id];
      const auto param =
          std::find_if(params.begin(), params.end(), [&](const auto& p) { return p.variable == variable; });
      if (param == params.end()) return;
      const std::string name = "loop parameter \"" + name_of(variable) + "\" aliases ";
      const Aliases aliases = all_aliases(flow);
      param->given =
          param->given || std::ranges::any_of(aliases, [&](const Alias& alias) { return alias.variable == variable; });
      if (param->consumed)
        for (const Alias& alias : aliases)
          if (alias.bound)
            report(Code::consume_consuming_loop_param_aliases, location,
                   "Return value for consuming " + name + "\"" + name_of(alias.variable) + "\".");
      if (overlap(aliases, given))
        report(Code::consume_loop_parameter_aliases_other, location,
               "Return value for " + name + "other consumed loop parameter.");
      if (param->consumed && (overlap(aliases, given) || overlap(aliases, kept)))
        report(Code::consume_aliases_previously_returned, location,
               "Return value for consuming " + name + "previously returned value.");
      Aliases& seen = param->consumed ? given : kept;
      seen = joined(seen, aliases);
    });
    for (LoopParam& param : params) {
      if (param.fixed || param.consumed) continue;
      const bool now =
          std::any_of(given.begin(), given.end(), [&](const Alias& alias) { return alias.variable == param.variable; });
      param.consumed = now;
      changed = changed || now;
    }
  }
}

// Initial values that are consumed.
void Consumption::check_initial(const FlowPtr& param, const FlowPtr& initial, Location location) {
  if (!any_unique(param)) return;
  check_self_aliases(initial, location);
  Aliases aliases;
  pairwise(param, initial, [&](const FlowPtr& wanted, const FlowPtr& got) {
    if (any_unique(wanted)) aliases = joined(aliases, all_aliases(got));
  });
  consume(aliases, location);
}

void Consumption::check_free(const std::string& what, const std::vector<VarId>& observed,
                             const std::vector<Consumed>& consumed, Location location) {
  for (VarId variable : observed) {
    const Aliases aliases = all_aliases(env_.at(variable).flow);
    const bool bad = std::any_of(aliases.begin(), aliases.end(), [&](const Alias& alias) {
      return alias.bound && std::any_of(consumed.begin(), consumed.end(),
                                        [&](const Consumed& c) { return c.variable == alias.variable; });
    });
    if (bad)
      report(
          Code::consume_loop_uses_consumed, location,
          what + " uses " + describe(variable) + " (or an alias), but this is consumed by the initial loop argument.");
  }
}

FlowPtr Consumption::implied_initial(const Pattern& pattern) {
  if (const auto* typed = std::get_if<PatternTyped>(&pattern.node)) return implied_initial(*typed->pattern);
  Flow flow{.kind = Flow::Kind::record};
  if (const auto* tuple = std::get_if<PatternTuple>(&pattern.node)) {
    for (const PatternPtr& element : tuple->elements)
      flow.fields.emplace_back(std::to_string(flow.fields.size()), implied_initial(*element));
  } else if (const auto* record = std::get_if<PatternRecord>(&pattern.node)) {
    for (const auto& field : record->fields) flow.fields.emplace_back(field.name, implied_initial(*field.value));
  } else if (const auto found = program_.implied.find(pattern.id); found != program_.implied.end()) {
    return observe(found->second, pattern.location);
  }
  return make_flow(std::move(flow));
}

FlowPtr Consumption::loop(const LoopExpr& loop, Location location) {
  const std::uint32_t start = order_;
  std::size_t observed = observed_.size();
  const auto* loop_while = std::get_if<While>(&loop.form);
  if (const auto* less = std::get_if<ForLess>(&loop.form)) check(*less->bound);
  if (const auto* in = std::get_if<ForIn>(&loop.form)) check(*in->array);
  if (loop_while) check(*loop_while->condition);
  const std::vector<VarId> in_condition = take_observed(observed, start);

  const std::uint32_t outer = std::exchange(barrier_, order_);
  std::vector<LoopParam> params;
  collect_params(*loop.pattern, outlines_.of(program_.pattern_types[loop.pattern->id]), false, params);
  if (const auto* less = std::get_if<ForLess>(&loop.form)) {
    bind(program_.pattern_binders[less->pattern_id], outlines_.of(program_.pattern_types[less->pattern_id]), false);
  } else if (const auto* in = std::get_if<ForIn>(&loop.form)) {
    const FlowPtr element = with_uniqueness(outlines_.of(program_.pattern_types[in->pattern->id]), false);
    bind_parameter(*in->pattern, element);
  }
  observed = observed_.size();
  const std::size_t before = consumed_log_.size();
  const FlowPtr body = unscoped(check(*loop.body), start);
  for (const Consumed& consumed : take_consumed(before))
    for (LoopParam& param : params) {
      if (param.variable != consumed.variable) continue;
      param.given = true;
      if (!param.fixed) param.consumed = true;
    }
  const std::vector<VarId> in_body = take_observed(observed, start);
  barrier_ = outer;
  converge(loop, params, body, location);

  const FlowPtr type = loop_parameter(*loop.pattern, params);
  const std::size_t before_initial = consumed_log_.size();
  const Location initial_location = loop.initial ? loop.initial->location : loop.pattern->location;
  const FlowPtr initial = loop.initial ? check(*loop.initial) : implied_initial(*loop.pattern);
  check_initial(type, initial, initial_location);
  const std::vector<Consumed> consumed = take_consumed(before_initial);
  put_consumed(consumed);
  check_free("Loop body", in_body, consumed, location);
  if (loop_while) check_free("Loop condition", in_condition, consumed, location);

  const VarId result =
      result_variable("result of loop at " + std::to_string(location.line) + ":" + std::to_string(location.column));
  const Alias unnamed{.variable = result, .path = 0, .bound = false};
  const std::function<FlowPtr(const FlowPtr&, const FlowPtr&)> results = [&](const FlowPtr& param,
                                                                             const FlowPtr& from) -> FlowPtr {
    Flow copy = *param;
    if (copy.kind == Flow::Kind::record) {
      for (auto& [name, field] : copy.fields) {
        const FlowPtr* part = from->field(name);
        field = results(field, part ? *part : from);
      }
    } else if (copy.kind != Flow::Kind::scalar) {
      copy.aliases = copy.unique ? Aliases{} : joined(Aliases{unnamed}, all_aliases(from));
      copy.unique = false;
    }
    return make_flow(std::move(copy));
  };
  return joined(results(type, initial), body);
}

}  // namespace apl::frontend
