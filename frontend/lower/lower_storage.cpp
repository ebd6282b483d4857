// `#[bf16(A, B)]` on an entry: arrays of f32 that callers hand over rounded to bf16. The source goes on reading f32.
#include <algorithm>

#include "frontend/lower/lowerer.h"
#include "ir/attributes.h"

namespace apl::frontend {
// The parameters that the attributes of an entry name.
std::vector<std::string> Lowerer::narrow_params(const Global& global) const {
  std::vector<std::string> names;
  for (const Attribute& attribute : global.declaration->attributes) {
    if (attribute.name != attribute::bf16.name) continue;
    if (!global.entry) refuse_storage(global, Code::type_mismatch, "#[bf16] is for entries");
    const auto arguments = read_attribute(attribute, attribute::bf16);
    if (!arguments) refuse_storage(global, Code::type_mismatch, "#[bf16] takes the names of parameters");
    for (const std::string& name : std::get<0>(*arguments)) {
      if (std::ranges::find(names, name) != names.end())
        refuse_storage(global, Code::type_mismatch, "#[bf16(" + name + ")]: said twice");
      names.push_back(name);
    }
  }
  return names;
}

void Lowerer::refuse_storage(const Global& global, Code code, const std::string& message) const {
  if (sink_) sink_(make_error(code, global.declaration->location, message));
  throw LowerAbort{};
}

// The parameter as it is kept, and a map that gives what the program reads.
StaticValue Lowerer::widen_param(const Global& global, const std::string& name, const StaticValue& param) {
  const Operand* wide = param.operand();
  const Type type = wide != nullptr ? type_of(*wide) : Type{};
  if (wide == nullptr || !type.is_array() || type.element != ScalarType::f32)
    refuse_storage(global, Code::type_mismatch,
                   "#[bf16(" + name + ")]: an operand kept as bf16 is an array of f32, `" + name + "` is none");
  const Value narrow = wide->value();
  function_->values.set_type(narrow, Type::array(ScalarType::bf16, type.shape));
  Screma map;
  map.widths = type.shape;
  for (std::size_t k = 0; k < type.rank(); ++k)
    map.indices.push_back(builder_->values().add(Type::scalar(ScalarType::i64), "i"));
  map.inputs = {narrow};
  map.map = builder_->lambda({Type::scalar(ScalarType::bf16)}, {"x"}, [](Builder& body, const std::vector<Value>& x) {
    return std::vector<Operand>{body.convert(ScalarType::f32, x.front())};
  });
  return leaf(builder_->let(name, std::move(map)));
}

// Every name has been found; the types of the parameters say the rest.
void Lowerer::finish_storage(const Global& global, const Instance& instance, const std::vector<std::string>& narrow) {
  for (const std::string& name : narrow)
    if (std::ranges::find(instance.names, name) == instance.names.end())
      refuse_storage(
          global, Code::type_unknown_name,
          "#[bf16(" + name + ")]: the entry `" + global.definition->name + "` has no parameter `" + name + "`");
  erase_attribute(function_->attributes, attribute::bf16);
}

}  // namespace apl::frontend
