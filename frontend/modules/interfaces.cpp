// Module types.
#include <range/v3/view/zip.hpp>

#include <algorithm>
#include <utility>

#include "frontend/modules/modules.h"

namespace apl::frontend {

namespace {

// An array without a size in what a function takes.
const TypeExpr* anonymous_parameter(const TypeExpr& type) {
  const auto* arrow = std::get_if<TypeArrow>(&type.node);
  if (arrow == nullptr) return nullptr;
  if (const TypeExpr* found = anonymous_size(*arrow->from)) return found;
  return anonymous_parameter(*arrow->to);
}

InterfacePtr wrong_interface() {
  Interface result;
  result.wrong = true;
  return std::make_shared<const Interface>(std::move(result));
}

}  // namespace

InterfacePtr Modules::interface(const ModuleTypeExpr& expr) {
  if (const auto* name = std::get_if<Name>(&expr.node)) {
    InterfacePtr found;
    if (name->qualifiers.empty()) {
      found = checker_.scope_.interface(name->text);
      if (!found) found = prelude_interface(name->text);
    } else if (const ModulePtr module = checker_.scope_.module(name->qualifiers, name->qualifiers.size())) {
      if (module->wrong) return wrong_interface();
      const auto member = module->members.interfaces.find(name->text);
      if (member != module->members.interfaces.end()) found = member->second;
    }
    if (found) return fresh(found);
    report(Code::type_unknown_name, name->location, "Unknown module type \"" + name->to_string() + "\"");
    return wrong_interface();
  }
  if (const auto* body = std::get_if<SpecBody>(&expr.node)) return specs(*body);
  if (const auto* refinement = std::get_if<ModuleTypeWith>(&expr.node)) return with(*refinement, expr.location);
  return arrow(std::get<ModuleTypeArrow>(expr.node));
}

InterfacePtr Modules::specs(const SpecBody& body) {
  Checker::Scope scope(checker_);
  Interface result;
  std::map<std::string, Location> defined;
  for (const Spec& next : body.specs) spec(next, result, defined);
  return std::make_shared<const Interface>(std::move(result));
}

void Modules::spec(const Spec& spec, Interface& into, std::map<std::string, Location>& defined) {
  if (const auto* value = std::get_if<ValueSpec>(&spec.node)) return value_spec(*value, into, defined);
  if (const auto* type = std::get_if<TypeDefinition>(&spec.node)) return type_spec(*type, into, defined);
  if (const auto* module = std::get_if<ModuleSpec>(&spec.node)) {
    const InterfacePtr type = interface(*module->type);
    claim(defined, module->name + " (module)", spec.location, "");
    into.wrong = into.wrong || type->wrong;
    into.own.insert(into.own.end(), type->own.begin(), type->own.end());
    into.existential.insert(into.existential.end(), type->existential.begin(), type->existential.end());
    into.modules.insert_or_assign(module->name, type);
    checker_.scope_.enter(module->name, module_in_types(type));
    return;
  }
  const InterfacePtr included = interface(*std::get<IncludeSpec>(spec.node).type);
  into.wrong = into.wrong || included->wrong;
  into.own.insert(into.own.end(), included->own.begin(), included->own.end());
  into.existential.insert(into.existential.end(), included->existential.begin(), included->existential.end());
  for (const auto& [name, type] : included->types) {
    if (into.types.contains(name))
      checker_.warn(Code::warning_no_effect, spec.location, "Inclusion shadows type \"" + name + "\".");
    into.types.insert_or_assign(name, type);
    checker_.scope_.enter(name, type);
  }
  for (const auto& [name, type] : included->modules) {
    into.modules.insert_or_assign(name, type);
    checker_.scope_.enter(name, module_in_types(type));
  }
  for (const auto& [name, value] : included->values) {
    into.values.insert_or_assign(name, value);
    if (value.constant != kNoId)
      checker_.scope_.enter(
          name, Target{.kind = Resolution::Kind::global, .global = checker_.out_.global_sizes.at(value.constant)});
  }
}

void Modules::type_spec(const TypeDefinition& definition, Interface& into, std::map<std::string, Location>& defined) {
  claim(defined, definition.name + " (type)", definition.name_location, "");
  TypeBinding binding = checker_.type_binding(definition, definition.type.get());
  if (!definition.type) {
    AbstractInfo info;
    info.name = definition.name;
    info.lifted = definition.liftedness == Liftedness::lifted;
    info.size_lifted = definition.liftedness != Liftedness::unlifted;
    info.implementation.params = binding.function.params;
    const AbstractId id = store_.add_abstract(std::move(info));
    binding.abstract = id;
    binding.function = store_.abstract_function(id, binding.function.params);
    into.own.push_back(id);
  }
  const auto shared = std::make_shared<const TypeBinding>(std::move(binding));
  into.types.insert_or_assign(definition.name, shared);
  checker_.scope_.enter(definition.name, TypeBindingPtr(shared));
}

void Modules::value_spec(const ValueSpec& spec, Interface& into, std::map<std::string, Location>& defined) {
  claim(defined, spec.name, spec.name_location, "");
  Interface::Value value;
  value.spec = &spec;
  {
    Checker::Scope scope(checker_);
    checker_.level_ = 1;
    Checker::Names names;
    checker_.enter_type_params(spec.type_params, names, &value.params, &value.sizes);
    value.type = checker_.type_of(*spec.type);
    if (const TypeExpr* found = anonymous_parameter(*spec.type))
      report(Code::type_ambiguous, found->location,
             "Type of value \"" + spec.name + "\": parameters must have non-anonymous sizes");
    if (!store_.get_if<TyArrow>(value.type))
      value.type = checker_.with_sizes(value.type, [&](Size size) {
        if (!store_.get_if<SizeVar>(size)) return size;
        value.unknown.push_back(store_.add_binder({.kind = Binder::Kind::unknown_size,
                                                   .name = "the size of " + spec.name,
                                                   .location = spec.type->location,
                                                   .level = 1,
                                                   .type = store_.scalar(ScalarType::i64)}));
        return store_.name(value.unknown.back());
      });
    checker_.generalise(value.type, 0, nullptr, value.sizes);
  }
  std::unordered_set<BinderId> mentioned;
  store_.mentioned(value.type, mentioned);
  for (BinderId size : value.sizes)
    if (!mentioned.contains(size) && !store_.get_if<TyError>(value.type))
      report(Code::type_ambiguous, store_.binder(size).location,
             "Size [" + store_.binder(size).name + "] is not used in the type of \"" + spec.name + "\"");
  // Sizes after it may mention it.
  if (store_.as_scalar(value.type) == ScalarType::i64) {
    const Target target = abstract_value(spec.name, value, value.type);
    value.constant = checker_.out_.globals[target.global].binder;
    checker_.scope_.enter(spec.name, target);
  }
  into.values.insert_or_assign(spec.name, std::move(value));
}

namespace {

// The path to a type of a module type; nullptr if there is none.
TypeBindingPtr find_spec(const Interface& interface, const Name& name) {
  const Interface* inner = &interface;
  for (const std::string& qualifier : name.qualifiers) {
    const auto found = inner->modules.find(qualifier);
    if (found == inner->modules.end()) return nullptr;
    inner = found->second.get();
  }
  const auto found = inner->types.find(name.text);
  return found == inner->types.end() ? nullptr : found->second;
}

}  // namespace

InterfacePtr Modules::with(const ModuleTypeWith& with, Location location) {
  const InterfacePtr base = interface(*with.base);
  if (base->wrong) return base;
  const std::string name = with.type.to_string();
  const TypeBindingPtr wanted = find_spec(*base, with.type);
  if (!wanted) {
    report(Code::type_unknown_name, with.type.location,
           "Cannot refine a type having the name \"" + name + "\": the module type has none");
    return wrong_interface();
  }
  TypeDefinition definition;
  definition.liftedness = Liftedness::lifted;
  definition.name = name;
  definition.name_location = with.type.location;
  definition.params = with.params;
  const TypeBinding actual = checker_.type_binding(definition, with.to.get());
  if (!wanted->abstract || std::ranges::find(base->own, *wanted->abstract) == base->own.end()) {
    report(Code::type_mismatch, location,
           "Cannot refine a type that is not an abstract type of this module type: \"" + name + "\"");
    return wrong_interface();
  }
  if (!match_type(name, *wanted, actual, with.type.location, "Cannot refine a type: ")) return wrong_interface();
  for (const auto& [param, given] : ranges::views::zip(wanted->function.params, actual.function.params)) {
    if (param.is_size) continue;
    const TypeParamInfo& asked = store_.type_param(param.type);
    const TypeParamInfo& has = store_.type_param(given.type);
    if ((has.lifted || !asked.lifted) && (has.size_lifted || !asked.size_lifted)) continue;
    report(Code::type_mismatch, with.type.location,
           "Cannot refine a type: \"" + name + "\" takes any type for its parameter \"" + asked.name + "\", which is " +
               (asked.lifted ? "lifted" : "size-lifted") + ", and the type that refines it does not");
    return wrong_interface();
  }
  TypeMap map;
  map.abstracts.emplace(*wanted->abstract, actual.function);
  Interface result = *substitute(base, map);
  std::erase(result.own, *wanted->abstract);
  result.existential.insert(result.existential.end(), actual.existential.begin(), actual.existential.end());
  leave_open(result, actual.existential);
  return std::make_shared<const Interface>(std::move(result));
}

// Types that mention these sizes have others at each use.
void Modules::leave_open(Interface& interface, const std::vector<BinderId>& sizes) {
  if (sizes.empty()) return;
  for (auto& [name, type] : interface.types) {
    TypeBinding binding = *type;
    for (BinderId size : sizes)
      if (store_.mentions(binding.function.body, size)) binding.existential.push_back(size);
    type = std::make_shared<const TypeBinding>(std::move(binding));
  }
  for (auto& [name, inner] : interface.modules) {
    Interface copy = *inner;
    leave_open(copy, sizes);
    inner = std::make_shared<const Interface>(std::move(copy));
  }
}

InterfacePtr Modules::arrow(const ModuleTypeArrow& arrow) {
  Interface result;
  result.from = interface(*arrow.from);
  result.param = arrow.param;
  Checker::Scope scope(checker_);
  if (!arrow.param.empty()) checker_.scope_.enter(arrow.param, module_in_types(result.from));
  result.to = interface(*arrow.to);
  result.wrong = result.from->wrong || result.to->wrong;
  return std::make_shared<const Interface>(std::move(result));
}

// The interface with types in place of abstract ones.
InterfacePtr Modules::substitute(const InterfacePtr& interface, const TypeMap& map) {
  Interface result = *interface;
  for (auto& [name, binding] : result.types) {
    TypeBinding copy = *binding;
    copy.function.body = store_.substitute(copy.function.body, map);
    if (copy.abstract && map.abstracts.contains(*copy.abstract)) {
      const auto* other = store_.get_if<TyAbstract>(copy.function.body);
      copy.abstract = other ? std::optional(other->id) : std::nullopt;
    }
    binding = std::make_shared<const TypeBinding>(std::move(copy));
  }
  for (auto& [name, value] : result.values) {
    value.type = store_.substitute(value.type, map);
    const auto constant = map.sizes.find(value.constant);
    if (const auto* other = constant == map.sizes.end() ? nullptr : store_.get_if<SizeName>(constant->second))
      value.constant = other->binder;
  }
  for (auto& [name, inner] : result.modules) inner = substitute(inner, map);
  if (result.from) result.from = substitute(result.from, map);
  if (result.to) result.to = substitute(result.to, map);
  return std::make_shared<const Interface>(std::move(result));
}

// New abstract types for these, which are replaced.
TypeMap Modules::fresh_types(std::vector<AbstractId>& own) {
  TypeMap map;
  for (AbstractId& id : own) {
    AbstractInfo info = store_.abstract_info(id);
    info.implementation.body = {};
    const std::vector<TypeFunction::Param> params = info.implementation.params;
    const AbstractId made = store_.add_abstract(std::move(info));
    map.abstracts.emplace(id, store_.abstract_function(made, params));
    id = made;
  }
  return map;
}

// The same for values that sizes mention.
void Modules::fresh_constants(const Interface& interface, TypeMap& map) {
  for (const auto& [name, value] : interface.values) {
    if (value.constant == kNoId) continue;
    const Target target = abstract_value(name, value, value.type);
    map.sizes.emplace(value.constant, store_.name(checker_.out_.globals[target.global].binder));
  }
  for (const auto& [name, inner] : interface.modules)
    if (!inner->from) fresh_constants(*inner, map);
}

// The interface with abstract types of its own.
InterfacePtr Modules::fresh(const InterfacePtr& interface) {
  if (interface->from) {
    Interface result = *interface;
    std::vector<AbstractId> own = result.from->own;
    TypeMap map = fresh_types(own);
    fresh_constants(*result.from, map);
    Interface from = *substitute(result.from, map);
    from.own = std::move(own);
    result.from = std::make_shared<const Interface>(std::move(from));
    result.to = fresh(substitute(result.to, map));
    return std::make_shared<const Interface>(std::move(result));
  }
  std::vector<AbstractId> own = interface->own;
  TypeMap map = fresh_types(own);
  fresh_constants(*interface, map);
  if (map.empty()) return interface;
  Interface result = *substitute(interface, map);
  result.own = std::move(own);
  return std::make_shared<const Interface>(std::move(result));
}

}  // namespace apl::frontend
