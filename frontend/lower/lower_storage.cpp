// `#[TYPE(A, B)]` on an entry, with a type that arrays are kept in alone: arrays of f32 that callers hand over rounded
// to it. The source goes on reading f32.
#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "frontend/lower/lowerer.h"

namespace apl::frontend {
namespace {

std::optional<ScalarType> storage_of(const Attribute& attribute) {
  const auto type = scalar_type_from_text(attribute.name);
  return type && is_storage(*type) ? type : std::nullopt;
}

}  // namespace

// The parameters that the attributes of an entry name, and as what they are kept.
std::map<std::string, ScalarType> Lowerer::narrow_params(const Global& global) const {
  std::map<std::string, ScalarType> all;
  for (const Attribute& attribute : global.declaration->attributes) {
    const auto type = storage_of(attribute);
    if (!type) continue;
    if (!global.entry) refuse_storage(global, Code::type_mismatch, "#[" + attribute.name + "] is for entries");
    if (attribute.arguments.empty())
      refuse_storage(global, Code::type_mismatch, "#[" + attribute.name + "] takes the names of parameters");
    for (const std::string& name : attribute.arguments)
      if (!all.emplace(name, *type).second)
        refuse_storage(global, Code::type_mismatch, "#[" + attribute.name + "(" + name + ")]: said twice");
  }
  return all;
}

void Lowerer::refuse_storage(const Global& global, Code code, const std::string& message) const {
  if (sink_) sink_(make_error(code, global.declaration->location, message));
  throw LowerAbort{};
}

// The parameter as it is kept, and a map that gives what the program reads.
StaticValue Lowerer::widen_param(const Global& global, const std::string& name, ScalarType kept,
                                 const StaticValue& param) {
  const Operand* wide = param.operand();
  const Type type = wide != nullptr ? type_of(*wide) : Type{};
  if (wide == nullptr || !type.is_array() || type.element != ScalarType::f32)
    refuse_storage(global, Code::type_mismatch,
                   "#[" + std::string(to_text(kept)) + "(" + name + ")]: an operand kept as " +
                       std::string(to_text(kept)) + " is an array of f32, `" + name + "` is none");
  const Value narrow = wide->value();
  function_->values.set_type(narrow, Type::array(kept, type.shape));
  Screma map;
  map.widths = type.shape;
  for (std::size_t k = 0; k < type.rank(); ++k)
    map.indices.push_back(builder_->values().add(Type::scalar(ScalarType::i64), "i"));
  map.inputs = {narrow};
  map.map = builder_->lambda({Type::scalar(kept)}, {"x"}, [](Builder& body, const std::vector<Value>& x) {
    return std::vector<Operand>{body.convert(ScalarType::f32, x.front())};
  });
  return leaf(builder_->let(name, std::move(map)));
}

// Every name has been found; the types of the parameters say the rest.
void Lowerer::finish_storage(const Global& global, const Instance& instance,
                             const std::map<std::string, ScalarType>& narrow) {
  for (const auto& [name, kept] : narrow)
    if (std::ranges::find(instance.names, name) == instance.names.end())
      refuse_storage(global, Code::type_unknown_name,
                     "#[" + std::string(to_text(kept)) + "(" + name + ")]: the entry `" + global.definition->name +
                         "` has no parameter `" + name + "`");
  std::erase_if(function_->attributes, [](const Attribute& a) { return storage_of(a).has_value(); });
}

}  // namespace apl::frontend
