// Operands, shapes and the leaves of values.
#include <algorithm>
#include <utility>

#include "frontend/lower/lowerer.h"

namespace apl::frontend {

struct StaticValue::Record {
  Fields fields;
  std::size_t leaves = 0;
  bool first_order = true;
};

StaticValue::StaticValue() : StaticValue(Fields{}) {}

StaticValue::StaticValue(Fields fields) {
  auto record = std::make_shared<Record>();
  for (const auto& [name, field] : fields) {
    record->leaves = std::min(record->leaves + field.leaf_count(), SIZE_MAX / 4);
    record->first_order = record->first_order && field.is_first_order();
  }
  if (fields.empty()) record->leaves = 1;
  record->fields = std::move(fields);
  state_ = std::shared_ptr<const Record>(std::move(record));
}

const StaticValue::Fields* StaticValue::fields() const {
  const auto* record = std::get_if<std::shared_ptr<const Record>>(&state_);
  return record ? &(*record)->fields : nullptr;
}

std::size_t StaticValue::leaf_count() const {
  const auto* record = std::get_if<std::shared_ptr<const Record>>(&state_);
  return record ? (*record)->leaves : 1;
}

bool StaticValue::is_first_order() const {
  const auto* record = std::get_if<std::shared_ptr<const Record>>(&state_);
  return record ? (*record)->first_order : closure() == nullptr;
}

const StaticValue* StaticValue::field(std::string_view name) const {
  const Fields* all = fields();
  if (all == nullptr) return nullptr;
  for (const auto& [label, value] : *all)
    if (label == name) return &value;
  return nullptr;
}

StaticValue tuple_value(std::vector<StaticValue> elements) {
  StaticValue::Fields fields;
  for (std::size_t k = 0; k < elements.size(); ++k) fields.emplace_back(std::to_string(k), std::move(elements[k]));
  return StaticValue(std::move(fields));
}

Operand Lowerer::operand(const StaticValue& value) {
  if (const Operand* operand = value.operand()) return *operand;
  if (const Poly* poly = value.index()) {
    if (auto operand = as_operand(*poly)) return *operand;
    return builder_->size(*poly);
  }
  unsupported(location_, "a function used as a value");
}

Poly Lowerer::index(const StaticValue& value) {
  if (const Poly* poly = value.index()) return *poly;
  return as_poly(operand(value));
}

Value Lowerer::array(const StaticValue& value) {
  const Operand result = operand(value);
  if (result.is_value()) return result.value();
  return builder_->let("x", Use{result});
}

StaticValue Lowerer::scalar(Operand operand) {
  if (operand.is_constant() ? operand.constant().type() == ScalarType::i64
                            : type_of(operand).same(Type::scalar(ScalarType::i64)))
    return StaticValue(as_poly(operand));
  return StaticValue(operand);
}

StaticValue Lowerer::leaf(Value value) { return scalar(Operand(value)); }

void Lowerer::count_leaves(std::size_t count) {
  if (count > kMaxLeaves) unsupported(location_, "a value of more than " + std::to_string(kMaxLeaves) + " parts");
}

std::vector<Operand> Lowerer::leaves(const StaticValue& value) {
  std::vector<Operand> result;
  count_leaves(value.leaf_count());
  std::vector<const StaticValue*> todo = {&value};
  while (!todo.empty()) {
    const StaticValue* next = todo.back();
    todo.pop_back();
    const auto* fields = next->fields();
    if (fields == nullptr) {
      result.push_back(operand(*next));
      continue;
    }
    // Unit has no parts, but the number of units in an array must not be lost.
    if (fields->empty()) result.emplace_back(Scalar::unit());
    for (auto field = fields->rbegin(); field != fields->rend(); ++field) todo.push_back(&field->second);
  }
  return result;
}

StaticValue Lowerer::with_leaves(const StaticValue& like, const std::vector<Operand>& leaves) {
  std::size_t next = 0;
  return map_leaves(like, [&](const StaticValue&) { return scalar(leaves[next++]); });
}

StaticValue Lowerer::map_leaves(const StaticValue& value,
                                const std::function<StaticValue(const StaticValue&)>& change) {
  const auto* fields = value.fields();
  if (fields == nullptr || fields->empty()) return change(value);
  StaticValue::Fields result;
  for (const auto& [name, field] : *fields) result.emplace_back(name, map_leaves(field, change));
  return StaticValue(std::move(result));
}

std::vector<Poly> Lowerer::shape(const StaticValue& array) {
  const StaticValue* first = &array;
  while (const auto* fields = first->fields()) {
    if (fields->empty()) return {};
    first = &fields->front().second;
  }
  const Operand* operand = first->operand();
  return operand ? type_of(*operand).shape : std::vector<Poly>{};
}

Poly Lowerer::length(const StaticValue& array) {
  const std::vector<Poly> dims = shape(array);
  if (dims.empty()) unsupported(location_, "an array of units");
  return dims.front();
}

// The same array with sizes that are equal, but are written in another way.
StaticValue Lowerer::coerced(const StaticValue& leaf, const std::vector<Poly>& shape) {
  if (leaf.operand() == nullptr || type_of(*leaf.operand()).shape == shape || shape.empty()) return leaf;
  return StaticValue(Operand(builder_->let(builder_->values().name(array(leaf)), Reshape{array(leaf), shape})));
}

StaticValue Lowerer::with_length(const StaticValue& array, const Poly& length) {
  return map_leaves(array, [&](const StaticValue& leaf) {
    std::vector<Poly> dims = shape(leaf);
    if (!dims.empty()) dims.front() = length;
    return coerced(leaf, dims);
  });
}

void Lowerer::unsupported(Location location, const std::string& what) {
  // A definition that several entries use is wrong once.
  const auto key = std::tuple(location.line, location.column, what);
  if (reported_.insert(key).second && sink_)
    sink_(make_error(Code::unsupported_construct, location, what + " cannot be compiled yet"));
  throw LowerAbort{};
}

}  // namespace apl::frontend
