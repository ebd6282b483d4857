// What the `*` of written types say.
#include <range/v3/view/zip.hpp>

#include <string>
#include <utility>

#include "frontend/consume/checker.h"
#include "frontend/syntax/parser.h"

namespace apl::frontend {

namespace {

// Abbreviations of abbreviations, at most.
constexpr int kMaxAbbreviations = 100;

// The outline of a signature of the prelude. Members speak of their module's type, which is scalar.
FlowPtr outline_of(const TypeExpr& type, bool member) {
  Flow flow;
  if (const auto* name = std::get_if<TypeName>(&type.node)) {
    const std::string& text = name->name.text;
    if (find_module(text) || (member && (text == "t" || text == "int_t"))) return make_flow(flow);
    flow.kind = Flow::Kind::leaf;
    flow.parameter = true;
  } else if (const auto* unique = std::get_if<TypeUnique>(&type.node)) {
    return outline_of(*unique->type, member);
  } else if (const auto* tuple = std::get_if<TypeTuple>(&type.node)) {
    flow.kind = Flow::Kind::record;
    for (std::size_t k = 0; k < tuple->elements.size(); ++k)
      flow.fields.emplace_back(std::to_string(k), outline_of(*tuple->elements[k], member));
  } else if (std::holds_alternative<TypeArray>(type.node)) {
    flow.kind = Flow::Kind::leaf;
  } else if (const auto* arrow = std::get_if<TypeArrow>(&type.node)) {
    flow.kind = Flow::Kind::arrow;
    flow.from = outline_of(*arrow->from, member);
    flow.to = outline_of(*arrow->to, member);
  }
  return make_flow(std::move(flow));
}

}  // namespace

// The outline with what the written type adds to it.
FlowPtr Consumption::written(const TypeExpr& type, const FlowPtr& outline, int depth) {
  if (depth > kMaxAbbreviations) return outline;
  if (const auto* unique = std::get_if<TypeUnique>(&type.node))
    return with_uniqueness(written(*unique->type, outline, depth + 1), true);
  Flow copy = *outline;
  if (const auto* tuple = std::get_if<TypeTuple>(&type.node)) {
    if (copy.fields.size() != tuple->elements.size()) return outline;
    for (auto&& [field, element] : ranges::views::zip(copy.fields, tuple->elements))
      field.second = written(*element, field.second, depth + 1);
    return make_flow(std::move(copy));
  }
  if (const auto* record = std::get_if<TypeRecord>(&type.node)) {
    for (const auto& field : record->fields)
      for (auto& [name, flow] : copy.fields)
        if (name == field.name) flow = written(*field.value, flow, depth + 1);
    return make_flow(std::move(copy));
  }
  if (const auto* arrow = std::get_if<TypeArrow>(&type.node)) {
    if (copy.kind != Flow::Kind::arrow) return outline;
    if (copy.from) copy.from = written(*arrow->from, copy.from, depth + 1);
    copy.consumes = copy.from && any_unique(copy.from);
    copy.to = written(*arrow->to, copy.to, depth + 1);
    return make_flow(std::move(copy));
  }
  if (const auto* exists = std::get_if<TypeExists>(&type.node)) return written(*exists->type, outline, depth + 1);
  // An abbreviation keeps what its arrows consume, but is not unique itself.
  if (const auto found = program_.abbreviations.find(&type); found != program_.abbreviations.end())
    return with_uniqueness(written(*found->second, outline, depth + 1), false);
  return outline;
}

FlowPtr Consumption::signature(const PreludeEntry& entry, bool member) {
  const std::string key = (member ? "member " : "") + std::string(entry.signature);
  if (const auto found = signatures_.find(key); found != signatures_.end()) return found->second;
  FlowPtr flow = make_flow({.kind = Flow::Kind::arrow, .from = make_flow({}), .to = make_flow({})});  // a conversion
  if (!entry.signature.empty()) {
    const TypeSignature parsed = parse_signature(entry.signature);
    flow = written(*parsed.type, outline_of(*parsed.type, member));
  }
  signatures_.emplace(key, flow);
  return flow;
}

// A parameter's type; its unique parts are consumed.
FlowPtr Consumption::parameter(const Pattern& pattern) {
  const FlowPtr outline = outlines_.of(program_.pattern_types[pattern.id]);
  if (const auto* typed = std::get_if<PatternTyped>(&pattern.node)) return written(*typed->type, outline);
  Flow copy = *outline;
  if (const auto* tuple = std::get_if<PatternTuple>(&pattern.node)) {
    if (copy.fields.size() != tuple->elements.size()) return outline;
    for (auto&& [field, element] : ranges::views::zip(copy.fields, tuple->elements)) field.second = parameter(*element);
    return make_flow(std::move(copy));
  }
  if (const auto* record = std::get_if<PatternRecord>(&pattern.node)) {
    for (const auto& field : record->fields)
      for (auto& [name, flow] : copy.fields)
        if (name == field.name) flow = parameter(*field.value);
    return make_flow(std::move(copy));
  }
  return outline;
}

// Sizes are computed where nobody expects it: they consume nothing.
void Consumption::check_sizes(const TypeExpr& type) {
  if (const auto* unique = std::get_if<TypeUnique>(&type.node)) return check_sizes(*unique->type);
  if (const auto* tuple = std::get_if<TypeTuple>(&type.node))
    for (const TypeExprPtr& element : tuple->elements) check_sizes(*element);
  if (const auto* record = std::get_if<TypeRecord>(&type.node))
    for (const auto& field : record->fields) check_sizes(*field.value);
  if (const auto* apply = std::get_if<TypeApply>(&type.node))
    for (const TypeArgumentExpr& argument : apply->arguments)
      if (argument.type) check_sizes(*argument.type);
  const auto* array = std::get_if<TypeArray>(&type.node);
  if (array == nullptr) return;
  if (array->size) {
    const std::uint32_t outer = std::exchange(barrier_, order_);
    const std::size_t consumed = consumed_log_.size();
    check(*array->size);
    take_consumed(consumed);
    barrier_ = outer;
  }
  check_sizes(*array->element);
}

void Consumption::check_sizes(const Pattern& pattern) {
  if (const auto* typed = std::get_if<PatternTyped>(&pattern.node)) {
    check_sizes(*typed->type);
    check_sizes(*typed->pattern);
  } else if (const auto* tuple = std::get_if<PatternTuple>(&pattern.node)) {
    for (const PatternPtr& element : tuple->elements) check_sizes(*element);
  } else if (const auto* record = std::get_if<PatternRecord>(&pattern.node)) {
    for (const auto& field : record->fields) check_sizes(*field.value);
  } else if (const auto* constructor = std::get_if<PatternConstructor>(&pattern.node)) {
    for (const PatternPtr& element : constructor->payload) check_sizes(*element);
  }
}

}  // namespace apl::frontend
