#include "codegen/emit/library/api_types.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include "ir/attributes.h"
#include "runtime/names.h"

namespace apl::library {
namespace {

std::string brackets(std::size_t rank) {
  std::string text;
  for (std::size_t k = 0; k < rank; ++k) text += "[]";
  return text;
}

std::string scalar_name(ScalarType type) { return type == ScalarType::unit ? "()" : std::string(apl::to_text(type)); }

// The name, with a number if it is taken: different ones may look alike in C.
std::string unique(const std::string& name, std::set<std::string>& taken) {
  std::string result = name;
  for (int again = 1; !taken.insert(result).second; ++again) result = fmt::format("{}_{}", name, again);
  return result;
}

void skip_blanks(std::string_view& text) {
  while (!text.empty() && text[0] == ' ') text.remove_prefix(1);
}
bool accept(std::string_view& text, char c) {
  skip_blanks(text);
  if (text.empty() || text[0] != c) return false;
  text.remove_prefix(1);
  return true;
}
std::string word(std::string_view& text) {
  skip_blanks(text);
  std::size_t length = 0;
  while (length < text.size() &&
         (std::isalnum(static_cast<unsigned char>(text[length])) != 0 || text[length] == '_' || text[length] == '\''))
    ++length;
  std::string result(text.substr(0, length));
  text.remove_prefix(length);
  return result;
}
// Past the `]` that belongs to a `[` before; sizes are of no interest.
bool skip_size(std::string_view& text) {
  for (int depth = 1; !text.empty(); text.remove_prefix(1)) {
    if (text[0] == '[') ++depth;
    if (text[0] == ']' && --depth == 0) {
      text.remove_prefix(1);
      return true;
    }
  }
  return false;
}

// A type in parentheses, which are no tuple: no comma is between them.
bool is_enclosed(std::string_view text) {
  if (!accept(text, '(')) return false;
  skip_blanks(text);
  int depth = 1;
  for (std::size_t k = 0; k < text.size() && depth > 0; ++k) {
    const char c = text[k];
    depth += c == '(' || c == '[' || c == '{' ? 1 : c == ')' || c == ']' || c == '}' ? -1 : 0;
    if (depth == 1 && c == ',') return false;
  }
  return !text.starts_with(')');
}

}  // namespace

const ApiType* ApiTypes::add(ApiType type) {
  if (auto known = by_name_.find(type.name); known != by_name_.end()) return known->second;
  type.c_name = unique(type.c_name, c_names_);
  for (ApiType::Field& field : type.fields) {
    const std::string prefix = type.c_name + "_";
    // The first character of a tuple's field is a digit.
    const std::string name = api_name("f" + field.name) == "f" + field.name ? field.name : z_encoded(field.name);
    field.c_name = unique(prefix + name, projections_).substr(prefix.size());
  }
  // Their functions are called as those that make a type of this name.
  for (ApiType::Variant& variant : type.variants) {
    const std::string prefix = type.c_name + "_";
    const std::string name =
        api_name("f" + variant.name) == "f" + variant.name ? variant.name : z_encoded(variant.name);
    variant.c_name = unique(prefix + name, c_names_).substr(prefix.size());
  }
  types_.push_back(std::move(type));
  return by_name_[types_.back().name] = &types_.back();
}

const ApiType* ApiTypes::leaf(ScalarType element, std::size_t rank) {
  ApiType type;
  type.element = element;
  type.rank = rank;
  type.name = brackets(rank) + scalar_name(element);
  if (element == ScalarType::unit) {
    // C has no such values, the API no such arrays.
    type.kind = ApiType::Kind::opaque;
    type.c_name = rank == 0 ? "opaque_unit" : fmt::format("opaque_arr{}d_unit", rank);
    ApiType part = type;
    part.kind = rank == 0 ? ApiType::Kind::scalar : ApiType::Kind::array;
    part.name = fmt::format("unit values of rank {}", rank);
    part.c_name = fmt::format("unit_{}d", rank);
    type.values = {add(std::move(part))};
    if (rank > 0) type.item = leaf(element, 0), type.outer = rank;
  } else {
    type.kind = rank == 0 ? ApiType::Kind::scalar : ApiType::Kind::array;
    type.c_name = rank == 0 ? scalar_name(element) : fmt::format("{}_{}d", scalar_name(element), rank);
  }
  return add(std::move(type));
}

const ApiType* ApiTypes::compound(std::vector<ApiType::Field> fields, bool is_tuple, const std::string& known) {
  ApiType type;
  type.kind = ApiType::Kind::opaque;
  std::string name, structure;
  for (ApiType::Field& field : fields) {
    field.first = type.values.size();
    if (field.type->kind == ApiType::Kind::opaque) {
      type.values.insert(type.values.end(), field.type->values.begin(), field.type->values.end());
    } else {
      type.values.push_back(field.type);
    }
    const std::string label = (name.empty() ? "" : ", ") + (is_tuple ? "" : field.name + ": ");
    name += label + field.type->name;
    structure += label + (field.type->structure.empty() ? field.type->name : field.type->structure);
  }
  type.fields = std::move(fields);
  const auto enclosed = [&](const std::string& text) { return is_tuple ? "(" + text + ")" : "{" + text + "}"; };
  type.name = enclosed(name);
  return named(std::move(type), enclosed(structure), known);
}

const ApiType* ApiTypes::named(ApiType type, const std::string& structure, const std::string& known) {
  type.kind = ApiType::Kind::opaque;
  type.structure = structure;
  // Types of several modules may have one name.
  const auto taken = by_name_.find(known);
  const bool is_free = taken == by_name_.end() || taken->second->structure == structure;
  if (!known.empty() && is_free) type.name = known;
  if (type.name.empty()) type.name = structure;
  type.c_name = opaque_name(type.name);
  return add(std::move(type));
}

const ApiType* ApiTypes::array_of(const ApiType& element, std::size_t rank, const std::string& known) {
  if (rank == 0) return &element;
  if (element.kind != ApiType::Kind::opaque) return leaf(element.element, element.rank + rank);
  if (element.item != nullptr) return array_of(*element.item, element.outer + rank, known);
  if (&element == leaf(ScalarType::unit, 0)) return leaf(ScalarType::unit, rank);
  ApiType type;
  type.item = &element;
  type.outer = rank;
  // Each value has the outer dims, too.
  for (const ApiType* value : element.values) {
    value = leaf(value->element, value->rank + rank);
    type.values.push_back(value->kind == ApiType::Kind::opaque ? value->values[0] : value);
  }
  for (const ApiType::Field& field : element.fields)
    type.fields.push_back({field.name, array_of(*field.type, rank), field.first, ""});
  const bool is_sum = !element.variants.empty();
  const auto enclosed = [&](const std::string& text, bool wanted) {
    return brackets(rank) + (wanted ? "(" + text + ")" : text);
  };
  type.name = enclosed(element.name, is_sum && element.name == element.structure);
  return named(std::move(type), enclosed(element.structure, is_sum), known);
}

// As frontend/lower/lower_sums.cpp lays it out: scalars of payloads share places of their type, arrays have their own.
const ApiType* ApiTypes::sum(std::string_view& text, const std::string& known) {
  ApiType type;
  type.values.push_back(leaf(ScalarType::u8, 0));
  std::string structure;
  do {
    if (!structure.empty() && !accept(text, '#')) return nullptr;
    ApiType::Variant variant{word(text), {}, {}, {}};
    structure += (structure.empty() ? "#" : " | #") + variant.name;
    std::vector<char> used(type.values.size());
    for (skip_blanks(text); !text.empty() && text[0] != '|' && text[0] != ')' && text[0] != ',' && text[0] != '}';
         skip_blanks(text)) {
      const ApiType* part = parse(text, "", {});
      if (!part) return nullptr;
      variant.payload.push_back({"", part, variant.places.size(), ""});
      structure += " " + (part->variants.empty() ? part->name : "(" + part->name + ")");
      const std::vector<const ApiType*> own = {part};
      for (const ApiType* value : part->kind == ApiType::Kind::opaque ? part->values : own) {
        std::size_t place = 1;
        while (place < used.size() && (used[place] != 0 || type.values[place] != value || value->rank > 0)) ++place;
        if (place == used.size()) {
          type.values.push_back(value);
          used.push_back(0);
        }
        used[place] = 1;
        variant.places.push_back(place);
      }
    }
    type.variants.push_back(std::move(variant));
  } while (accept(text, '|'));
  return named(std::move(type), structure, known);
}

std::string ApiTypes::entry_name(const std::string& name) { return unique(api_name(name), entries_); }

void ApiTypes::want(const SparseSoa& soa) { wanted_[soa.element].insert(soa.fields.begin(), soa.fields.end()); }

const ApiType* ApiTypes::sparse(ScalarType element) {
  ApiType type;
  type.kind = ApiType::Kind::opaque;
  type.name = type.c_name = fmt::format("sparse_{}", apl::to_text(element));
  for (const SoaField field : wanted_[element]) {
    type.soa.push_back(field);
    type.values.push_back(leaf(element_of(field, element), field == SoaField::shape ? 3 : 1));
  }
  return add(std::move(type));
}

const ApiType* ApiTypes::tuple(const std::vector<const ApiType*>& parts) {
  std::vector<ApiType::Field> fields;
  for (const ApiType* part : parts) fields.push_back({std::to_string(fields.size()), part, 0, {}});
  return compound(std::move(fields), true, "");
}

const ApiType* ApiTypes::parse(std::string_view& text, const std::string& place, const Names& names) {
  std::size_t rank = 0;
  const auto found = names.find(place);
  const std::string known = found == names.end() ? "" : found->second;
  const auto found_array = names.find(place + "[]");
  const std::string known_array = found_array == names.end() ? "" : found_array->second;
  while (accept(text, '*')) continue;
  while (accept(text, '[')) {
    if (!skip_size(text)) return nullptr;
    ++rank;
  }
  while (accept(text, '*')) continue;
  if (accept(text, '#')) return rank == 0 ? sum(text, known) : nullptr;
  if (is_enclosed(text)) {
    accept(text, '(');
    const ApiType* type = parse(text, place, names);
    return type != nullptr && accept(text, ')') ? array_of(*type, rank, known_array) : nullptr;
  }
  const bool is_tuple = accept(text, '(');
  if (!is_tuple && !accept(text, '{')) {
    const auto scalar = scalar_type_from_text(word(text));
    return scalar && *scalar != ScalarType::unit ? leaf(*scalar, rank) : nullptr;
  }
  const char close = is_tuple ? ')' : '}';
  if (accept(text, close)) return leaf(ScalarType::unit, rank);
  std::vector<ApiType::Field> fields;
  do {
    std::string label = std::to_string(fields.size());
    if (!is_tuple) {
      label = word(text);
      if (!accept(text, ':')) return nullptr;
    }
    const ApiType* field = parse(text, place + "." + label, names);
    if (!field) return nullptr;
    fields.push_back({label, field, 0, {}});
  } while (accept(text, ','));
  if (!accept(text, close)) return nullptr;
  return array_of(*compound(std::move(fields), is_tuple, known), rank, known_array);
}

const ApiType* ApiTypes::parse(std::string_view text, const std::vector<const ApiType*>& flat, const Names& names) {
  const ApiType* type = parse(text, "", names);
  if (!type) return nullptr;
  const auto same = [](const ApiType* a, const ApiType* b) { return a->element == b->element && a->rank == b->rank; };
  const std::vector<const ApiType*> values =
      type->kind == ApiType::Kind::opaque ? type->values : std::vector<const ApiType*>{type};
  return std::ranges::equal(values, flat, same) ? type : nullptr;
}

ApiEntry api_entry(const Function& function, ApiTypes& types) {
  const EntryInfo& info = *function.entry;
  ApiEntry entry{info.name, types.entry_name(info.name), {}, nullptr};
  const auto type_names = [&](const std::string& of) {
    ApiTypes::Names names;
    for (const Attribute& attribute : function.attributes)
      if (const auto named = read_attribute(attribute, attribute::type_name)) {
        const auto& [place, name] = *named;
        if (place == of || place == of + "[]" || place.starts_with(of + ".")) names[place.substr(of.size())] = name;
      }
    return names;
  };
  const auto param_type = [&](std::size_t k) {
    for (const Attribute& attribute : function.attributes)
      if (const auto of = read_attribute(attribute, attribute::param_type); of && std::get<0>(*of) == std::to_string(k))
        return std::get<1>(*of);
    return info.params[k].type;
  };
  const auto leaves = [&](auto first, auto last, const auto& type_of) {
    std::vector<const ApiType*> flat;
    for (; first != last; ++first) flat.push_back(types.leaf(type_of(*first).element, type_of(*first).rank()));
    return flat;
  };
  const auto whole = [&](const std::string& text, const std::vector<const ApiType*>& flat,
                         const ApiTypes::Names& names) {
    const ApiType* type = types.parse(text, flat, names);
    if (!type) type = flat.size() == 1 ? flat[0] : types.tuple(flat);
    return type;
  };
  const std::vector<SparseSoa> soas = find_soas(function);
  const std::span<const Value> given = function.given_params();
  auto param = given.begin();
  for (std::size_t k = 0; param != given.end(); ++k) {
    const bool is_named = k < info.params.size();
    const std::size_t count = is_named && k < info.param_values.size() ? info.param_values[k] : 1;
    const auto flat = leaves(param, param + static_cast<std::ptrdiff_t>(count),
                             [&](Value v) -> const Type& { return function.type(v); });
    param += static_cast<std::ptrdiff_t>(count);
    if (const auto soa = std::ranges::find(soas, k, &SparseSoa::param); soa != soas.end()) {
      ApiEntry::Input input{info.params[k].name, types.sparse(soa->element), {}};
      for (const SoaField field : soa->fields)
        input.picks.push_back(
            static_cast<std::size_t>(std::ranges::find(input.type->soa, field) - input.type->soa.begin()));
      entry.inputs.push_back(std::move(input));
      continue;
    }
    entry.inputs.push_back({is_named ? info.params[k].name : fmt::format("in{}", k),
                            whole(is_named ? param_type(k) : "", flat, type_names(std::to_string(k))),
                            {}});
  }
  const auto flat =
      leaves(function.results.begin(), function.results.end(), [](const Type& t) -> const Type& { return t; });
  const auto result_type = find_attribute(function.attributes, attribute::result_type);
  std::string text = result_type ? std::get<0>(*result_type) : "";
  if (text.empty() && info.results.size() == 1) text = info.results[0].type;
  entry.output = whole(text, flat, type_names("result"));
  return entry;
}

std::string api_scalar(ScalarType type) {
  return type == ScalarType::boolean ? "bool" : std::string(facts(type).host_type);
}

std::string type_constant(ScalarType type) {
  std::string text = type == ScalarType::boolean ? "bool" : std::string(apl::to_text(type));
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return "APL_" + text;
}

}  // namespace apl::library
