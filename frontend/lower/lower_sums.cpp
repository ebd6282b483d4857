// Values of sum types, and what patterns ask of them. A value is a record of a tag and slots, which all constructors
// share: a scalar of a payload takes the first slot of its type that its constructor does not use yet, an array one
// that is its alone.
//
//   #circle f32 | #box f32 f32 | #text ([n]u8)     tag: u8, f32, f32, [n]u8
//
// Slots that a value's constructor does not use are zero.
#include <range/v3/view/zip.hpp>

#include <algorithm>
#include <utility>

#include "frontend/lower/lowerer.h"

namespace apl::frontend {

namespace {

std::string slot_name(std::size_t slot) { return "#" + std::to_string(slot); }

}  // namespace

// The arrays and scalars that a value of the type consists of, in the order of its leaves.
void Lowerer::add_leaf_types(TypeArgument type, std::vector<SizeArgument> dims, std::vector<LeafType>& into) {
  type = resolve_type(type.type, type.frame);
  const TyNode node = store_.node(type.type);
  count_leaves(into.size());
  if (const auto* array = std::get_if<TyArray>(&node)) {
    dims.push_back({array->size, type.frame});
    add_leaf_types({array->element, type.frame}, std::move(dims), into);
  } else if (const auto* record = std::get_if<TyRecord>(&node); record && !record->fields.empty()) {
    for (const auto& [label, field] : record->fields) add_leaf_types({field, type.frame}, dims, into);
  } else if (std::holds_alternative<TySum>(node)) {
    const SumLayout layout = sum_layout(type);
    into.push_back({ScalarType::u8, dims});
    for (const LeafType& slot : layout.slots) {
      std::vector<SizeArgument> all = dims;
      all.insert(all.end(), slot.dims.begin(), slot.dims.end());
      into.push_back({slot.element, std::move(all)});
    }
  } else {
    into.push_back({store_.as_scalar(type.type).value_or(ScalarType::unit), std::move(dims)});
  }
}

Lowerer::SumLayout Lowerer::sum_layout(TypeArgument type) {
  const TySum sum = *store_.get_if<TySum>(type.type);
  SumLayout layout;
  for (const auto& [name, payload] : sum.constructors) {
    std::vector<char> used(layout.slots.size());
    SumLayout::Constructor constructor{.name = name, .parts = {}};
    for (Ty part : payload) {
      std::vector<LeafType> leaves;
      add_leaf_types({part, type.frame}, {}, leaves);
      std::vector<std::size_t> slots;
      for (LeafType& leaf : leaves) {
        std::size_t slot = 0;
        while (slot < used.size() && (used[slot] || !leaf.dims.empty() || !layout.slots[slot].dims.empty() ||
                                      layout.slots[slot].element != leaf.element))
          ++slot;
        if (slot == used.size()) {
          layout.slots.push_back(std::move(leaf));
          used.push_back(0);
        }
        used[slot] = 1;
        slots.push_back(slot);
      }
      constructor.parts.push_back({part, std::move(slots)});
    }
    layout.constructors.push_back(std::move(constructor));
  }
  return layout;
}

// A value of the type from its leaves.
StaticValue Lowerer::from_leaves(TypeArgument type, const Values& leaves, std::size_t& next) {
  type = resolve_type(type.type, type.frame);
  const TyNode node = store_.node(type.type);
  if (const auto* array = std::get_if<TyArray>(&node)) return from_leaves({array->element, type.frame}, leaves, next);
  StaticValue::Fields fields;
  if (const auto* record = std::get_if<TyRecord>(&node); record && !record->fields.empty()) {
    for (const auto& [label, field] : record->fields)
      fields.emplace_back(label, from_leaves({field, type.frame}, leaves, next));
    return StaticValue(std::move(fields));
  }
  if (!std::holds_alternative<TySum>(node)) return leaves[next++];
  const std::size_t slots = sum_layout(type).slots.size();
  fields.emplace_back(kTag, leaves[next++]);
  for (std::size_t k = 0; k < slots; ++k) fields.emplace_back(slot_name(k), leaves[next++]);
  return StaticValue(std::move(fields));
}

// One part of a constructor's payload; what it says of a value of another constructor has no meaning.
StaticValue Lowerer::payload(const StaticValue& value, const SumLayout::Part& part, Frame* frame) {
  Values leaves;
  for (std::size_t slot : part.slots) leaves.push_back(project(value, slot_name(slot)));
  std::size_t next = 0;
  return from_leaves({part.type, frame}, leaves, next);
}

StaticValue Lowerer::lower_constructor(const Expr& expr, const ConstructorExpr& constructor) {
  const TypeArgument type = resolve_type(checked_.types[expr.id], frame_);
  const SumLayout layout = sum_layout(type);
  const auto found = std::ranges::find(layout.constructors, constructor.name, &SumLayout::Constructor::name);
  std::vector<std::optional<StaticValue>> slots(layout.slots.size());
  for (std::size_t k = 0; k < constructor.arguments.size(); ++k) {
    std::size_t next = 0;
    const std::vector<std::size_t>& places = found->parts[k].slots;
    map_leaves(lower(*constructor.arguments[k]), [&](const StaticValue& leaf) {
      if (next < places.size()) slots[places[next++]] = leaf;
      return leaf;
    });
  }
  StaticValue::Fields fields;
  fields.emplace_back(kTag, StaticValue(Operand(Scalar::integer(
                                ScalarType::u8, static_cast<std::int64_t>(found - layout.constructors.begin())))));
  for (std::size_t k = 0; k < slots.size(); ++k)
    fields.emplace_back(slot_name(k), slots[k] ? *slots[k] : blank(layout.slots[k]));
  return StaticValue(std::move(fields));
}

// Zero, as often as the type says; an array that holds nothing yet where `scratch`.
StaticValue Lowerer::blank(const LeafType& type, bool scratch) {
  if (type.dims.empty()) return scalar(Scalar::zero(type.element));
  std::vector<Poly> shape;
  for (const SizeArgument& dim : type.dims)
    shape.push_back(safe_size(size_value(dim.size, dim.frame).value_or(Poly(0))));
  if (scratch) return StaticValue(Operand(builder_->let("x", Scratch{type.element, shape})));
  return StaticValue(Operand(builder_->let("x", Replicate{shape, Operand(Scalar::zero(type.element))})));
}

// Whether the value matches the pattern; nullopt if every value of its type does.
std::optional<StaticValue> Lowerer::matches(const Pattern& pattern, const StaticValue& value) {
  std::optional<StaticValue> result;
  const auto both = [&](const std::optional<StaticValue>& more) {
    if (more) result = result ? binary(BinaryOp::conj, *result, *more) : *more;
  };
  if (const auto* typed = std::get_if<PatternTyped>(&pattern.node)) return matches(*typed->pattern, value);
  if (const auto* literal = std::get_if<PatternLiteral>(&pattern.node)) return equal(value, lower(*literal->value));
  if (const auto* tuple = std::get_if<PatternTuple>(&pattern.node))
    for (std::size_t k = 0; k < tuple->elements.size(); ++k)
      both(matches(*tuple->elements[k], project(value, std::to_string(k))));
  if (const auto* record = std::get_if<PatternRecord>(&pattern.node))
    for (const auto& field : record->fields) both(matches(*field.value, project(value, field.name)));
  const auto* constructor = std::get_if<PatternConstructor>(&pattern.node);
  if (constructor == nullptr) return result;
  const TypeArgument type = resolve_type(checked_.pattern_types[pattern.id], frame_);
  const SumLayout layout = sum_layout(type);
  const auto found = std::ranges::find(layout.constructors, constructor->name, &SumLayout::Constructor::name);
  const auto index = static_cast<std::int64_t>(found - layout.constructors.begin());
  const StaticValue tag = project(value, std::string(kTag));
  const Scalar wanted = Scalar::integer(ScalarType::u8, index);
  if (const Operand* known = tag.operand(); known && known->is_constant()) {
    if (known->constant() != wanted) return StaticValue(Operand(Scalar::boolean(false)));
  } else if (layout.constructors.size() > 1) {
    both(compare(CompareOp::eq, tag, StaticValue(Operand(wanted))));
  }
  for (const auto& [pattern, part] : ranges::views::zip(constructor->payload, found->parts))
    both(matches(*pattern, payload(value, part, type.frame)));
  return result;
}

void Lowerer::bind_constructor(const Pattern& pattern, const PatternConstructor& constructor,
                               const StaticValue& value) {
  const TypeArgument type = resolve_type(checked_.pattern_types[pattern.id], frame_);
  const SumLayout layout = sum_layout(type);
  const auto found = std::ranges::find(layout.constructors, constructor.name, &SumLayout::Constructor::name);
  for (const auto& [pattern, part] : ranges::views::zip(constructor.payload, found->parts))
    bind_pattern(*pattern, payload(value, part, type.frame));
}

// `???` fails; what would come after it still has a value.
StaticValue Lowerer::lower_hole(const Expr& expr) {
  const TypeArgument type = resolve_type(checked_.types[expr.id], frame_);
  builder_->let("c", Assert{Operand(Scalar::boolean(false)), {"Reached hole of type: " + store_.to_text(type.type)}});
  return hole_value(type);
}

// A value of the expression's type without computing it; none where only computing it says how long its arrays are.
std::optional<StaticValue> Lowerer::any_value(const Expr& expr, bool scratch) {
  const TypeArgument type = resolve_type(checked_.types[expr.id], frame_);
  bool known = !store_.contains_function(type.type);
  store_.walk(
      type.type, [](Ty, const TyNode&) {},
      [&](Size, const SizeNode& node) {
        const auto* name = std::get_if<SizeName>(&node);
        known = known && !(name && store_.binder(name->binder).kind == Binder::Kind::unknown_size);
      });
  if (!known) return std::nullopt;
  return hole_value(type, scratch);
}

StaticValue Lowerer::hole_value(TypeArgument type, bool scratch) {
  type = resolve_type(type.type, type.frame);
  if (store_.get_if<TyArrow>(type.type)) return make_closure({.what = Closure::HoleFunction{type}, .arguments = {}});
  if (store_.contains_function(type.type)) unsupported(location_, "a hole of a type with functions in it");
  std::vector<LeafType> types;
  add_leaf_types(type, {}, types);
  Values leaves;
  for (const LeafType& leaf : types) leaves.push_back(blank(leaf, scratch));
  std::size_t next = 0;
  return from_leaves(type, leaves, next);
}

}  // namespace apl::frontend
