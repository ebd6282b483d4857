// Patterns against the types of what they take apart.
#include <range/v3/view/zip.hpp>

#include <utility>

#include "frontend/types/checker.h"

namespace apl::frontend {

void Checker::pattern(const Pattern& pattern, Ty type, Names& names) {
  out_.pattern_types[pattern.id] = type;
  if (const auto* name = std::get_if<PatternName>(&pattern.node)) {
    claim(names, name->name, pattern.location);
    out_.pattern_binders[pattern.id] = bind(name->name, pattern.location, type);
  } else if (const auto* typed = std::get_if<PatternTyped>(&pattern.node)) {
    const Ty annotated = type_of(*typed->type);
    unify(own_names_ ? with_own_sizes(pattern, annotated) : annotated, type, pattern.location,
          "Pattern cannot match its type ascription");
    if (own_names_)
      store_.walk(
          annotated, [](Ty, const TyNode&) {},
          [&](Size size, const SizeNode& node) {
            if (std::holds_alternative<SizeVar>(node))
              instances_.push_back({{}, size, pattern.location, "of this explicit type ascription", true});
          });
    out_.pattern_types[pattern.id] = annotated;
    this->pattern(*typed->pattern, annotated, names);
  } else if (const auto* tuple = std::get_if<PatternTuple>(&pattern.node)) {
    pattern_tuple(pattern, *tuple, type, names);
  } else if (const auto* record = std::get_if<PatternRecord>(&pattern.node)) {
    pattern_record(pattern, *record, type, names);
  } else if (const auto* constructor = std::get_if<PatternConstructor>(&pattern.node)) {
    pattern_constructor(pattern, *constructor, type, names);
  } else if (const auto* literal = std::get_if<PatternLiteral>(&pattern.node)) {
    const Ty actual = infer(*literal->value);
    unify(type, actual, pattern.location, "Pattern cannot match value of this type");
  }
}

void Checker::pattern_constructor(const Pattern& pattern, const PatternConstructor& constructor, Ty type,
                                  Names& names) {
  std::vector<Ty> payload;
  const auto* sum = store_.get_if<TySum>(type);
  if (sum)
    for (const auto& [name, parts] : sum->constructors)
      if (name == constructor.name) payload = parts;
  if (payload.size() != constructor.payload.size() || !sum) {
    payload.clear();
    for (const PatternPtr& part : constructor.payload) payload.push_back(fresh(part->location));
    want_constructor(type, constructor.name, payload, pattern.location);
  }
  for (const auto& [part, of] : ranges::views::zip(constructor.payload, payload)) this->pattern(*part, of, names);
}

bool Checker::is_refutable(const Pattern& pattern) {
  if (std::holds_alternative<PatternLiteral>(pattern.node) || std::holds_alternative<PatternConstructor>(pattern.node))
    return true;
  if (const auto* typed = std::get_if<PatternTyped>(&pattern.node)) return is_refutable(*typed->pattern);
  bool refutable = false;
  if (const auto* tuple = std::get_if<PatternTuple>(&pattern.node))
    for (const PatternPtr& element : tuple->elements) refutable = refutable || is_refutable(*element);
  if (const auto* record = std::get_if<PatternRecord>(&pattern.node))
    for (const auto& field : record->fields) refutable = refutable || is_refutable(*field.value);
  return refutable;
}

// Parameters and what `let` and `loop` bind take every value.
void Checker::require_irrefutable(const Pattern& pattern) {
  if (is_refutable(pattern))
    exhaustive_.push_back({{&pattern}, out_.pattern_types[pattern.id], pattern.location, false});
}

// What a `let` with this type in its pattern asks of the value: names of the pattern itself are sizes of the value, in
// brackets by definition, others by a check when the program runs.
Ty Checker::with_own_sizes(const Pattern& pattern, Ty annotated) {
  TypeMap any = own_names_->known;
  for (BinderId binder : store_.free_sizes(annotated, 0)) {
    if (binder < own_names_->first || any.sizes.contains(binder)) continue;
    any.sizes.emplace(binder, store_.size_variable(level_, pattern.location));
    out_.checked_patterns.insert(pattern.id);
  }
  return store_.substitute(annotated, any);
}

void Checker::pattern_tuple(const Pattern& pattern, const PatternTuple& tuple, Ty type, Names& names) {
  std::vector<Ty> elements;
  const auto* record = store_.get_if<TyRecord>(type);
  if (record && store_.is_tuple(*record) && record->fields.size() == tuple.elements.size()) {
    for (const auto& field : record->fields) elements.push_back(field.second);
  } else {
    for (const PatternPtr& element : tuple.elements) elements.push_back(fresh(element->location));
    unify(type, store_.tuple(elements), pattern.location, "Pattern cannot match value of this type");
  }
  for (const auto& [part, of] : ranges::views::zip(tuple.elements, elements)) this->pattern(*part, of, names);
}

void Checker::pattern_record(const Pattern& pattern, const PatternRecord& record, Ty type, Names& names) {
  std::vector<std::pair<std::string, Ty>> fields;
  Names labels;
  for (const auto& field : record.fields) {
    if (field.name.size() > 1 && field.name[0] == '_')
      report(Code::type_mismatch, field.location,
             "Underscore-prefixed fields are not allowed. Did you mean \"" + field.name.substr(1) + "=_\"?");
    const Ty field_type = fresh(field.location);
    if (claim_field(labels, field.name, field.location, "record pattern")) fields.emplace_back(field.name, field_type);
  }
  unify(type, store_.record(fields), pattern.location, "Pattern cannot match value of this type");
  for (const auto& field : record.fields) {
    Ty field_type = store_.error();
    for (const auto& [name, known] : fields)
      if (name == field.name) field_type = known;
    this->pattern(*field.value, field_type, names);
  }
}

void Checker::binders_of(const Pattern& pattern, std::vector<BinderId>& out) const {
  if (std::holds_alternative<PatternName>(pattern.node)) {
    out.push_back(out_.pattern_binders[pattern.id]);
  } else if (const auto* typed = std::get_if<PatternTyped>(&pattern.node)) {
    binders_of(*typed->pattern, out);
  } else if (const auto* tuple = std::get_if<PatternTuple>(&pattern.node)) {
    for (const PatternPtr& element : tuple->elements) binders_of(*element, out);
  } else if (const auto* record = std::get_if<PatternRecord>(&pattern.node)) {
    for (const auto& field : record->fields) binders_of(*field.value, out);
  } else if (const auto* constructor = std::get_if<PatternConstructor>(&pattern.node)) {
    for (const PatternPtr& part : constructor->payload) binders_of(*part, out);
  }
}

}  // namespace apl::frontend
