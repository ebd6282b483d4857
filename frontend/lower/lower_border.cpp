// The border of entries: what callers hand over and get back, and what it is called.
#include <algorithm>
#include <unordered_map>
#include <utility>

#include "frontend/lower/lowerer.h"
#include "ir/attributes.h"

namespace apl::frontend {

namespace {

bool is_compound(const TypeStore& store, Ty type) {
  const auto* record = store.get_if<TyRecord>(type);
  return store.get_if<TySum>(type) != nullptr || (record != nullptr && !record->fields.empty());
}

// `point`, or `path [n]`: sizes are no part of a name that callers know a type by.
const Name* name_of(const TypeExpr& written) {
  if (const auto* name = std::get_if<TypeName>(&written.node)) return &name->name;
  const auto* applied = std::get_if<TypeApply>(&written.node);
  const bool is_name = applied != nullptr && std::ranges::all_of(applied->arguments, &TypeArgumentExpr::is_size);
  return is_name ? &applied->name : nullptr;
}

// What Futhark calls a type that is written so: without sizes, `*` and `?[n].`, and fields in their order.
std::string written_name(const TypeExpr& written) {
  const auto join = [](const auto& parts, const std::string& separator, const auto& text_of) {
    std::string text;
    for (std::size_t k = 0; k < parts.size(); ++k) text += (k > 0 ? separator : "") + text_of(parts[k]);
    return text;
  };
  const auto name = [](const TypeExprPtr& part) { return written_name(*part); };
  if (const Name* named = name_of(written)) return named->to_string();
  if (const auto* unique = std::get_if<TypeUnique>(&written.node)) return written_name(*unique->type);
  if (const auto* exists = std::get_if<TypeExists>(&written.node)) return written_name(*exists->type);
  if (const auto* array = std::get_if<TypeArray>(&written.node)) return "[]" + written_name(*array->element);
  if (const auto* tuple = std::get_if<TypeTuple>(&written.node)) return "(" + join(tuple->elements, ", ", name) + ")";
  if (const auto* record = std::get_if<TypeRecord>(&written.node))
    return "{" + join(record->fields, ", ", [&](const auto& f) { return f.name + ": " + name(f.value); }) + "}";
  if (const auto* sum = std::get_if<TypeSum>(&written.node))
    return join(sum->constructors, " | ", [&](const auto& c) { return c.name + ":" + join(c.payload, " ", name); });
  const auto* applied = std::get_if<TypeApply>(&written.node);
  if (applied == nullptr) return "";
  return applied->name.to_string() + " " + join(applied->arguments, " ", [&](const TypeArgumentExpr& argument) {
           return argument.type ? written_name(*argument.type) : "[]";
         });
}

// A tuple, or a record with its fields in the order that types have them: these names follow from those of the parts.
bool is_usual(const TypeStore& store, Ty type, const TypeExpr& written) {
  const auto* record = std::get_if<TypeRecord>(&written.node);
  const auto* fields = store.get_if<TyRecord>(type);
  if (record == nullptr || fields == nullptr) return std::holds_alternative<TypeTuple>(written.node);
  return std::ranges::equal(
      record->fields, fields->fields, {}, [](const auto& f) { return f.name; }, [](const auto& f) { return f.first; });
}

using Abbreviations = std::unordered_map<const TypeExpr*, const TypeExpr*>;

// The names that the source gives a type or its elements, and those that it gives fields of them, also where these are
// written in the type that a name stands for. A name of an array as a whole has the place "PLACE[]": `paths [n]`, and
// `[]paths` of an array of such.
void name_types(const TypeStore& store, const Abbreviations& abbreviations, const std::string& place, Ty type,
                const TypeExpr* written, Function& function) {
  std::string outer;
  while (written != nullptr) {
    if (const auto* unique = std::get_if<TypeUnique>(&written->node)) {
      written = unique->type.get();
      continue;
    }
    const auto* array = std::get_if<TypeArray>(&written->node);
    const auto* elements = store.get_if<TyArray>(type);
    if (array == nullptr || elements == nullptr) break;
    written = array->element.get();
    type = elements->element;
    outer += "[]";
  }
  if (written == nullptr) return;
  if (const auto* array = store.get_if<TyArray>(type)) {
    const Name* name = name_of(*written);
    Ty element = array->element;
    while (const auto* inner = store.get_if<TyArray>(element)) element = inner->element;
    if (name != nullptr && is_compound(store, element))
      function.attributes.push_back(make_attribute(attribute::type_name, place + "[]", outer + name->to_string()));
    return;
  }
  if (!is_compound(store, type)) return;
  if (const std::string name = written_name(*written); !name.empty() && !is_usual(store, type, *written))
    function.attributes.push_back(make_attribute(attribute::type_name, place, name));
  if (name_of(*written) != nullptr) {
    for (auto meant = abbreviations.find(written); meant != abbreviations.end(); meant = abbreviations.find(written))
      written = meant->second;
  }
  const auto* record = store.get_if<TyRecord>(type);
  const auto name_field = [&](const std::string& label, const TypeExpr* of) {
    const auto field = std::ranges::find(record->fields, label, [](const auto& f) { return f.first; });
    if (field != record->fields.end())
      name_types(store, abbreviations, place + "." + label, field->second, of, function);
  };
  if (record == nullptr) return;
  if (const auto* tuple = std::get_if<TypeTuple>(&written->node)) {
    for (std::size_t k = 0; k < tuple->elements.size(); ++k) name_field(std::to_string(k), tuple->elements[k].get());
  } else if (const auto* fields = std::get_if<TypeRecord>(&written->node)) {
    for (const auto& field : fields->fields) name_field(field.name, field.value.get());
  }
}

bool has_sum(const TypeStore& store, Ty type) {
  const TyNode& node = store.node(type);
  if (const auto* array = std::get_if<TyArray>(&node)) return has_sum(store, array->element);
  const auto* record = std::get_if<TyRecord>(&node);
  return std::holds_alternative<TySum>(node) ||
         (record != nullptr &&
          std::ranges::any_of(record->fields, [&](const auto& field) { return has_sum(store, field.second); }));
}

// What values alone do not say of an entry's border: how they make up the result and parameters of sum types, and what
// its types are called.
void describe(const Definition& source, const TypeStore& store, const Abbreviations& abbreviations, Ty type,
              std::size_t params, Function& function) {
  for (std::size_t k = 0; k < params; ++k) {
    const TyArrow arrow = *store.get_if<TyArrow>(type);
    const auto* typed = k < source.params.size() ? std::get_if<PatternTyped>(&source.params[k]->node) : nullptr;
    if (has_sum(store, arrow.from))
      function.attributes.push_back(
          make_attribute(attribute::param_type, std::to_string(k), store.to_text(arrow.from)));
    name_types(store, abbreviations, std::to_string(k), arrow.from, typed != nullptr ? typed->type.get() : nullptr,
               function);
    type = arrow.to;
  }
  name_types(store, abbreviations, "result", type, source.params.size() == params ? source.result.get() : nullptr,
             function);
  Ty inner = type;
  while (const auto* array = store.get_if<TyArray>(inner)) inner = array->element;
  if (is_compound(store, inner))
    function.attributes.push_back(make_attribute(attribute::result_type, store.to_text(type)));
}

}  // namespace

void Lowerer::describe_border(const Global& global, const Instance& instance) {
  describe(*global.definition, store_, checked_.abbreviations, global.type, instance.counts.size(), *function_);
}

// As with values that are read: no interface has room for more sizes.
void Lowerer::refuse_rank(const Type& type) {
  if (type.rank() > kMaxRank)
    unsupported(function_->location,
                fmt::format("an array of {} dims at the border of an entry ({} at most)", type.rank(), kMaxRank));
}

// The type as callers of an entry see it: a value of a sum type is its tag and its slots.
Ty Lowerer::border_type(Ty type) {
  const TyNode node = store_.node(type);
  if (const auto* array = std::get_if<TyArray>(&node)) return store_.array(array->size, border_type(array->element));
  if (const auto* record = std::get_if<TyRecord>(&node)) {
    auto fields = record->fields;
    for (auto& [label, field] : fields) field = border_type(field);
    return fields.empty() ? type : store_.record(std::move(fields));
  }
  if (const auto* arrow = std::get_if<TyArrow>(&node)) {
    const Ty from = border_type(arrow->from);
    return store_.arrow(from, border_type(arrow->to), arrow->param, arrow->unknown);
  }
  if (!std::holds_alternative<TySum>(node)) return type;
  std::vector<LeafType> leaves;
  add_leaf_types({type, frame_}, {}, leaves);
  std::vector<Ty> parts;
  for (const LeafType& leaf : leaves) {
    Ty part = leaf.element == ScalarType::unit ? store_.unit() : store_.scalar(leaf.element);
    for (auto dim = leaf.dims.rbegin(); dim != leaf.dims.rend(); ++dim) part = store_.array(dim->size, part);
    parts.push_back(part);
  }
  return parts.size() == 1 ? parts.front() : store_.tuple(parts);
}

EntryInfo Lowerer::entry_info(const Global& global, const Instance& instance) {
  EntryInfo info;
  info.name = global.definition->name;
  info.param_values = instance.counts;
  Ty type = global.type;
  const std::map<std::string, ScalarType> narrow = narrow_params(global);
  for (std::size_t k = 0; k < instance.counts.size(); ++k) {
    const TyArrow arrow = *store_.get_if<TyArrow>(type);
    std::string text = store_.to_text(border_type(arrow.from));
    if (const auto kept = narrow.find(instance.names[k]); kept != narrow.end())
      text.replace(text.rfind(']') + 1, std::string::npos, to_text(kept->second));
    info.params.push_back({instance.names[k], std::move(text)});
    type = arrow.to;
  }
  // One text for each value that the entry gives.
  std::vector<std::pair<Ty, std::string>> todo = {{border_type(type), ""}};
  while (!todo.empty()) {
    auto [next, dims] = todo.back();
    todo.pop_back();
    const TyNode node = store_.node(next);
    if (const auto* array = std::get_if<TyArray>(&node)) {
      bool inner = false;
      store_.walk_size(array->size, [&](Size, const SizeNode& part) {
        const auto* name = std::get_if<SizeName>(&part);
        inner = inner || (name && store_.binder(name->binder).kind == Binder::Kind::unknown_size);
      });
      todo.emplace_back(array->element, dims + "[" + (inner ? "" : store_.to_text(array->size)) + "]");
    } else if (const auto* record = std::get_if<TyRecord>(&node); record && !record->fields.empty()) {
      for (auto field = record->fields.rbegin(); field != record->fields.rend(); ++field)
        todo.emplace_back(field->second, dims);
    } else {
      info.results.push_back({dims + store_.to_text(next)});
    }
  }
  return info;
}

}  // namespace apl::frontend
