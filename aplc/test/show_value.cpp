#include "aplc/test/show_value.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace aplc {
namespace {

using apl::library::ApiType;
using Values = std::vector<apl::HostValue>;

// The part at one index of the first dim.
apl::HostValue part_of(const apl::HostValue& value, std::int64_t index) {
  apl::HostValue part{value.type, {value.shape.begin() + 1, value.shape.end()}, {}};
  const std::size_t bytes = value.data.size() / static_cast<std::size_t>(value.shape[0]);
  const auto from = value.data.begin() + static_cast<std::ptrdiff_t>(bytes * static_cast<std::size_t>(index));
  part.data.assign(from, from + static_cast<std::ptrdiff_t>(bytes));
  return part;
}

std::string show_array(const ApiType& item, std::size_t outer, const Values& values) {
  if (outer == 0) return show_value(item, values);
  std::vector<std::string> parts;
  for (std::int64_t k = 0; !values.empty() && k < values[0].shape[0]; ++k) {
    Values part;
    for (const apl::HostValue& value : values) part.push_back(part_of(value, k));
    parts.push_back(show_array(item, outer - 1, part));
  }
  return fmt::format("[{}]", fmt::join(parts, ", "));
}

Values slice(const Values& values, std::size_t first, std::size_t count) {
  const auto from = values.begin() + static_cast<std::ptrdiff_t>(first);
  return {from, from + static_cast<std::ptrdiff_t>(count)};
}

std::string show_fields(const ApiType& type, const Values& values) {
  std::vector<std::string> parts;
  const bool is_tuple = type.structure.starts_with('(');
  for (const ApiType::Field& field : type.fields) {
    const std::string text = show_value(*field.type, slice(values, field.first, field.type->value_count()));
    parts.push_back(is_tuple ? text : field.name + " = " + text);
  }
  return fmt::format("{}{}{}", is_tuple ? '(' : '{', fmt::join(parts, ", "), is_tuple ? ')' : '}');
}

std::string show_variant(const ApiType& type, const Values& values) {
  const auto number = static_cast<std::size_t>(values[0].at(0).as_int());
  if (number >= type.variants.size()) return fmt::format("a {} without a constructor of number {}", type.name, number);
  const ApiType::Variant& variant = type.variants[number];
  std::string text = "#" + variant.name;
  for (const ApiType::Field& field : variant.payload) {
    Values payload;
    for (std::size_t k = 0; k < field.type->value_count(); ++k)
      payload.push_back(values[variant.places[field.first + k]]);
    const std::string part = show_value(*field.type, payload);
    text += field.type->variants.empty() ? " " + part : " (" + part + ")";
  }
  return text;
}

}  // namespace

std::string show_value(const ApiType& type, const Values& values) {
  if (type.kind != ApiType::Kind::opaque) return values[0].to_text();
  if (type.item != nullptr) return show_array(*type.item, type.outer, values);
  if (!type.variants.empty()) return show_variant(type, values);
  if (type.is_record()) return show_fields(type, values);
  if (type.element == apl::ScalarType::unit && type.soa.empty()) return "()";
  std::vector<std::string> parts;
  for (const apl::HostValue& value : values) parts.push_back(value.to_text());
  return fmt::format("{}", fmt::join(parts, " "));
}

}  // namespace aplc
