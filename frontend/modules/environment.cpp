#include "frontend/modules/environment.h"

#include <utility>

namespace apl::frontend {

void Environment::add(const Environment& other) {
  for (const auto& [name, value] : other.values) values.insert_or_assign(name, value);
  for (const auto& [name, type] : other.types) types.insert_or_assign(name, type);
  for (const auto& [name, module] : other.modules) modules.insert_or_assign(name, module);
  for (const auto& [name, type] : other.interfaces) interfaces.insert_or_assign(name, type);
}

void ScopeTable::leave(const Mark& mark) {
  values_.leave(mark.values);
  types_.leave(mark.types);
  modules_.leave(mark.modules);
  interfaces_.leave(mark.interfaces);
}

void ScopeTable::enter(const Environment& names) {
  for (const auto& [name, value] : names.values) enter(name, value);
  for (const auto& [name, type] : names.types) enter(name, type);
  for (const auto& [name, module] : names.modules) enter(name, module);
  for (const auto& [name, type] : names.interfaces) enter(name, type);
}

namespace {

template <class T>
T found_or_null(const ScopedNames<T>& names, const std::string& name) {
  const auto* entry = names.find(name);
  return entry ? entry->what : nullptr;
}

}  // namespace

TypeBindingPtr ScopeTable::type(const std::string& name) const { return found_or_null(types_, name); }
InterfacePtr ScopeTable::interface(const std::string& name) const { return found_or_null(interfaces_, name); }

ModulePtr ScopeTable::module(const std::string& name) const {
  if (ModulePtr module = found_or_null(modules_, name)) return module;
  const auto scalar = find_module(name);
  if (!scalar) return nullptr;
  ModuleValue value;
  value.scalar = scalar;
  return std::make_shared<const ModuleValue>(std::move(value));
}

ModulePtr ScopeTable::module(const std::vector<std::string>& path, std::size_t length) const {
  ModulePtr module;
  for (std::size_t k = 0; k < length; ++k) {
    if (k == 0) {
      module = this->module(path[k]);
    } else {
      const auto inner = module->members.modules.find(path[k]);
      if (inner == module->members.modules.end()) return module->wrong ? module : nullptr;
      module = inner->second;
    }
    if (!module) return nullptr;
  }
  return module;
}

Environment ScopeTable::visible() const {
  Environment result;
  values_.each([&](const std::string& name, const Target& target) { result.values.emplace(name, target); });
  types_.each([&](const std::string& name, const TypeBindingPtr& type) { result.types.emplace(name, type); });
  modules_.each([&](const std::string& name, const ModulePtr& module) { result.modules.emplace(name, module); });
  interfaces_.each([&](const std::string& name, const InterfacePtr& type) { result.interfaces.emplace(name, type); });
  return result;
}

}  // namespace apl::frontend
