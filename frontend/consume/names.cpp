// Variables: what they alias, who has consumed them, and what is said about it.
#include <algorithm>
#include <utility>

#include "frontend/consume/checker.h"

namespace apl::frontend {

namespace {

constexpr int kMaxConsumptionErrors = 50;

}  // namespace

std::string place(Location location) {
  location = within_file(location);
  return std::to_string(location.line) + ":" + std::to_string(location.column);
}

void Consumption::bind(VarId variable, FlowPtr flow, bool consumable) {
  if (variable == kNoId) return;
  env_[variable] = {.flow = std::move(flow), .consumable = consumable, .order = order_++};
}

// A part of a flow; where that has no parts, since it stands for a type parameter, the whole.
FlowPtr Consumption::part_of(const FlowPtr& flow, const std::string& field, Ty type) {
  if (const FlowPtr* part = flow->field(field)) return *part;
  return with_aliases(outlines_.of(type), all_aliases(flow));
}

void Consumption::bind_pattern(const Pattern& pattern, const FlowPtr& flow) {
  if (std::holds_alternative<PatternName>(pattern.node)) {
    const VarId variable = program_.pattern_binders[pattern.id];
    bind(variable, with_self(outlines_.adapted(flow, program_.pattern_types[pattern.id]), variable, paths_), true);
  } else if (const auto* typed = std::get_if<PatternTyped>(&pattern.node)) {
    bind_pattern(*typed->pattern, flow);
  } else if (const auto* tuple = std::get_if<PatternTuple>(&pattern.node)) {
    for (std::size_t k = 0; k < tuple->elements.size(); ++k) {
      const Pattern& element = *tuple->elements[k];
      bind_pattern(element, part_of(flow, std::to_string(k), program_.pattern_types[element.id]));
    }
  } else if (const auto* record = std::get_if<PatternRecord>(&pattern.node)) {
    for (const auto& field : record->fields)
      bind_pattern(*field.value, part_of(flow, field.name, program_.pattern_types[field.value->id]));
  } else if (const auto* constructor = std::get_if<PatternConstructor>(&pattern.node)) {
    // The parts of a sum type are not told apart.
    for (const PatternPtr& element : constructor->payload)
      bind_pattern(*element, with_aliases(outlines_.of(program_.pattern_types[element->id]), all_aliases(flow)));
  }
}

// Whether names of the function that is being checked are in what parameters became.
bool Consumption::is_of_function(const TypeMap& instance) const {
  bool found = false;
  const auto see_type = [&](Ty, const TyNode& node) { found = found || std::holds_alternative<TyParam>(node); };
  const auto see_size = [&](Size, const SizeNode& node) {
    const auto* name = std::get_if<SizeName>(&node);
    found = found || (name != nullptr && !program_.global_sizes.contains(name->binder));
  };
  for (const auto& [param, type] : instance.params) store_.walk(type, see_type, see_size);
  for (const auto& [binder, size] : instance.sizes) store_.walk_size(size, see_size);
  return found;
}

FlowPtr Consumption::observe(const Resolution& resolution, Location location) {
  FlowPtr flow;
  switch (resolution.kind) {
    case Resolution::Kind::local: {
      const auto entry = env_.find(resolution.binder);
      if (entry == env_.end()) {
        flow = outlines_.of(store_.binder(resolution.binder).type);  // a size
        break;
      }
      flow = entry->second.flow;
      observed_.push_back(resolution.binder);
      check_use(all_aliases(flow), location);
      break;
    }
    case Resolution::Kind::global: {
      const Global& global = program_.globals[resolution.global];
      flow = globals_[resolution.global];
      // Of a polymorphic constant a use whose type depends on the function that it is in is an array of its own; nobody
      // knows what a value of an abstract type shares.
      if (flow->kind == Flow::Kind::arrow || global.abstract || is_of_function(resolution.instance)) break;
      // What its functions give is theirs.
      flow = with_aliases(with_self(flow, kGlobals + resolution.global, paths_),
                          [](const Flow& part) { return part.kind == Flow::Kind::arrow ? Aliases{} : part.aliases; });
      break;
    }
    case Resolution::Kind::prelude: flow = signature(*resolution.entry, resolution.module.has_value()); break;
    default: flow = outlines_.of(store_.unit());
  }
  for (const std::string& field : resolution.fields)
    if (const FlowPtr* part = flow->field(field)) flow = FlowPtr(*part);
  return flow;
}

// What was entered since `start` is out of scope now.
FlowPtr Consumption::unscoped(const FlowPtr& flow, std::uint32_t start) const {
  return with_aliases(flow, [&](const Flow& part) {
    Aliases aliases = part.aliases;
    bool changed = false;
    for (Alias& alias : aliases) {
      const auto entry = env_.find(alias.variable);
      if (!alias.bound || entry == env_.end() || entry->second.order < start) continue;
      alias.bound = false;
      changed = true;
    }
    if (!changed) return aliases;
    std::sort(aliases.begin(), aliases.end());
    aliases.erase(std::unique(aliases.begin(), aliases.end()), aliases.end());
    return aliases;
  });
}

// The variables from before `start` that were looked at since `begin`, once each.
std::vector<VarId> Consumption::take_observed(std::size_t begin, std::uint32_t start) {
  std::vector<VarId> free;
  for (std::size_t k = begin; k < observed_.size(); ++k) {
    const auto entry = env_.find(observed_[k]);
    if (entry != env_.end() && entry->second.order < start) free.push_back(observed_[k]);
  }
  std::sort(free.begin(), free.end());
  free.erase(std::unique(free.begin(), free.end()), free.end());
  observed_.resize(begin);
  observed_.insert(observed_.end(), free.begin(), free.end());
  return free;
}

void Consumption::check_use(const Aliases& aliases, Location location) {
  if (consumed_.empty()) return;
  for (const Alias& alias : aliases) {
    const auto found = consumed_.find(alias.variable);
    if (found == consumed_.end()) continue;
    report(Code::consume_use_after_consume, location,
           "Using " + describe(alias.variable) + ", but this was consumed at " + place(found->second) +
               ".  (Possibly through aliases.)",
           {{"it is consumed here", found->second}});
  }
}

void Consumption::consume(const Aliases& aliases, Location location) {
  for (const Alias& alias : aliases) {
    if (!alias.bound) continue;
    const auto entry = env_.find(alias.variable);
    if (entry == env_.end() || !entry->second.consumable || entry->second.order < barrier_)
      report(Code::consume_not_consumable, location,
             "Consuming " + describe(alias.variable) + ", which is not consumable.");
  }
  check_use(aliases, location);
  for (const Alias& alias : aliases)
    if (consumed_.emplace(alias.variable, location).second) consumed_log_.push_back(alias.variable);
}

// What was consumed since the log had `begin` entries; it no longer counts.
std::vector<Consumption::Consumed> Consumption::take_consumed(std::size_t begin) {
  std::vector<Consumed> result;
  for (std::size_t k = begin; k < consumed_log_.size(); ++k) {
    const auto found = consumed_.find(consumed_log_[k]);
    result.push_back({found->first, found->second});
    consumed_.erase(found);
  }
  consumed_log_.resize(begin);
  return result;
}

void Consumption::put_consumed(const std::vector<Consumed>& consumed) {
  for (const auto& [variable, location] : consumed)
    if (consumed_.emplace(variable, location).second) consumed_log_.push_back(variable);
}

VarId Consumption::result_variable(std::string description) {
  results_.push_back(std::move(description));
  return kResults + static_cast<VarId>(results_.size() - 1);
}

std::string Consumption::name_of(VarId variable) const {
  if (variable >= kResults) return results_[variable - kResults];
  if (variable >= kGlobals) return program_.globals[variable - kGlobals].definition->name;
  return store_.binder(variable).name;
}

std::string Consumption::describe(VarId variable) const {
  return variable >= kResults ? name_of(variable) : "variable \"" + name_of(variable) + "\"";
}

void Consumption::report(Code code, Location location, std::string message, std::vector<Note> notes) {
  if (silent_) return;
  failed_ = true;
  // Loops look at their bodies several times.
  if (!reported_.emplace(location.line, location.column, message).second) return;
  if (++errors_ > kMaxConsumptionErrors || !sink_) return;
  Diagnostic diagnostic = make_error(code, location, std::move(message));
  diagnostic.notes = std::move(notes);
  sink_(diagnostic);
}

}  // namespace apl::frontend
