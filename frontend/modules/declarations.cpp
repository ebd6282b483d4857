// Lists of declarations: of files and of modules.
#include <utility>

#include "frontend/modules/modules.h"

namespace apl::frontend {

void Modules::run() {
  enter_prelude();
  for (const ImportedFile& file : checker_.out_.program.files) {
    Checker::Scope scope(checker_);
    ModuleValue value;
    value.members = declarations(file.declarations, false);
    files_.push_back(std::make_shared<const ModuleValue>(std::move(value)));
  }
  declarations(checker_.out_.program.declarations, true);
}

Environment Modules::declarations(const std::vector<Declaration>& list, bool program) {
  Members members;
  for (const Declaration& declaration : list) declare(declaration, members, program);
  return std::move(members.exported);
}

void Modules::declare(const Declaration& declaration, Members& members, bool program) {
  if (const auto* value = std::get_if<Definition>(&declaration.node))
    define_value(declaration, *value, members, program);
  else if (const auto* type = std::get_if<TypeDefinition>(&declaration.node))
    define_type(declaration, *type, members);
  else if (const auto* module = std::get_if<ModuleDefinition>(&declaration.node))
    define_module(declaration, *module, members);
  else if (const auto* interface = std::get_if<ModuleTypeDefinition>(&declaration.node))
    define_interface(declaration, *interface, members);
  else
    open(declaration, std::get<OpenDeclaration>(declaration.node), members);
}

// A name is defined once in a list, but may hide one from outside.
bool Modules::claim(std::map<std::string, Location>& defined, const std::string& name, Location location,
                    const std::string& what) {
  const auto [before, first] = defined.emplace(name, location);
  if (!first)
    report(Code::syntax_error, location, "Duplicate definition of " + what + "\"" + name + "\"",
           {{"it is also defined here", before->second}});
  return first;
}

void Modules::define_value(const Declaration& declaration, const Definition& definition, Members& members,
                           bool program) {
  if (definition.entry && in_module_)
    report(Code::syntax_error, definition.name_location, "Entry points may not be declared inside modules.");
  const Target target = checker_.definition(declaration, definition, program);
  checker_.out_.globals[target.global].label = path_ + definition.name;
  claim(members.values, definition.name, definition.name_location, "");
  add(definition.name, target, members.exported.values, declaration.local);
}

void Modules::define_type(const Declaration& declaration, const TypeDefinition& definition, Members& members) {
  const auto binding = std::make_shared<const TypeBinding>(checker_.type_binding(definition, definition.type.get()));
  claim(members.types, definition.name, definition.name_location, "type ");
  add<TypeBindingPtr>(definition.name, binding, members.exported.types, declaration.local);
}

void Modules::define_module(const Declaration& declaration, const ModuleDefinition& definition, Members& members) {
  const std::string outer = std::exchange(path_, path_ + definition.name + ".");
  const ModulePtr value = module(*definition.body);
  path_ = outer;
  claim(members.modules, definition.name, definition.name_location, "module ");
  add(definition.name, value, members.exported.modules, declaration.local);
}

void Modules::define_interface(const Declaration& declaration, const ModuleTypeDefinition& definition,
                               Members& members) {
  const InterfacePtr value = interface(*definition.type);
  claim(members.interfaces, definition.name, definition.name_location, "module type ");
  add(definition.name, value, members.exported.interfaces, declaration.local);
}

void Modules::open(const Declaration& declaration, const OpenDeclaration& opened, Members& members) {
  const ModulePtr value = module(*opened.module);
  if (value->function) {
    report(Code::type_mismatch, declaration.location, "Cannot open parametric module.");
    return;
  }
  const Environment scalar = value->scalar ? scalar_members(*value->scalar) : Environment{};
  for (const Environment* names : {&scalar, &value->members}) {
    checker_.scope_.enter(*names);
    if (!declaration.local) members.exported.add(*names);
  }
}

}  // namespace apl::frontend
