// Evaluates modules while the program is checked: each definition inside of one becomes a global of its own, those of a
// parametric module once for each application, and names are resolved to them. So modules exist at compile time only:
// nothing after the checker knows of them. Each part is defined in the file named above it.
//
//   module type number = { type t val + : t -> t -> t }
//   module double (n: number) = { def twice (x: n.t) = n.(x + x) }
//   module d = double i32                                              globals: d.twice, and + as number has it
//   def f = d.twice 1
//
// A module type's abstract types are types of their own (TyAbstract) for those who use a module that it is ascribed to;
// what implements them is looked at once everything is checked. The body of a parametric module is checked once with
// abstract types and values for its parameter, applied or not, and again, as a copy, for each application.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "frontend/modules/environment.h"
#include "frontend/types/checker.h"

namespace apl::frontend {

class Modules {
 public:
  explicit Modules(Checker& checker) : checker_(checker), store_(checker.store_) {}
  // All files of the program, imported ones first.
  void run();

 private:
  // What a list of declarations has defined so far, and what others see of it.
  struct Members {
    Environment exported;
    std::map<std::string, Location> values, types, modules, interfaces;
  };

  // declarations.cpp
  Environment declarations(const std::vector<Declaration>& list, bool program);
  void declare(const Declaration& declaration, Members& members, bool program);
  void define_value(const Declaration& declaration, const Definition& definition, Members& members, bool program);
  void define_type(const Declaration& declaration, const TypeDefinition& definition, Members& members);
  void define_module(const Declaration& declaration, const ModuleDefinition& definition, Members& members);
  void define_interface(const Declaration& declaration, const ModuleTypeDefinition& definition, Members& members);
  void open(const Declaration& declaration, const OpenDeclaration& opened, Members& members);
  bool claim(std::map<std::string, Location>& defined, const std::string& name, Location location,
             const std::string& what);
  template <class T>
  void add(const std::string& name, const T& what, std::map<std::string, T>& exported, bool local) {
    checker_.scope_.enter(name, what);
    if (!local) exported.insert_or_assign(name, what);
  }

  // evaluate.cpp
  ModulePtr module(const ModuleExpr& expr);
  ModulePtr named(const Name& name);
  ModulePtr lambda(const ModuleLambda& lambda, Location location);
  ModulePtr apply(const ModulePtr& function, const ModulePtr& argument, Location location);
  ModulePtr apply_lambda(const ModuleFunction& function, const ModulePtr& argument, Location location);
  ModulePtr apply_typed(const ModuleFunction& function, const ModulePtr& argument, Location location);
  void check_once(const ModuleLambda& lambda);
  ModulePtr abstract_module(const InterfacePtr& interface);
  ModulePtr module_in_types(const InterfacePtr& interface);
  void abstract_constants(const Interface& interface, TypeMap& map, std::map<BinderId, Target>& made);
  ModulePtr abstract_members(const Interface& interface, const TypeMap& map, const std::map<BinderId, Target>& made,
                             std::set<BinderId> open);
  void name_abstracts(const Interface& interface, const std::string& path, const std::set<AbstractId>& own);
  Target abstract_value(const std::string& name, const Interface::Value& value, Ty type);
  static ModulePtr wrong();
  Environment scalar_members(ScalarType type) const;

  // interfaces.cpp
  InterfacePtr interface(const ModuleTypeExpr& expr);
  InterfacePtr specs(const SpecBody& body);
  void spec(const Spec& spec, Interface& into, std::map<std::string, Location>& defined);
  void type_spec(const TypeDefinition& definition, Interface& into, std::map<std::string, Location>& defined);
  void value_spec(const ValueSpec& value, Interface& into, std::map<std::string, Location>& defined);
  InterfacePtr with(const ModuleTypeWith& with, Location location);
  void leave_open(Interface& interface, const std::vector<BinderId>& sizes);
  InterfacePtr arrow(const ModuleTypeArrow& arrow);
  InterfacePtr substitute(const InterfacePtr& interface, const TypeMap& map);
  InterfacePtr fresh(const InterfacePtr& interface);
  TypeMap fresh_types(std::vector<AbstractId>& own);
  void fresh_constants(const Interface& interface, TypeMap& map);

  // match.cpp
  struct Matching {
    Location location;
    bool opaque = false;
    std::set<AbstractId> own;             // the abstract types of the module type
    TypeMap inside = {};                  // what its names are in the module
    TypeMap shown = {};                   // and for those who use the result
    std::set<BinderId> existential = {};  // sizes that implementations leave open
    std::map<BinderId, Target> constants = {};
  };
  ModulePtr coerce(const ModulePtr& module, const InterfacePtr& interface, bool opaque, Location location);
  bool fits_every_argument(const ModulePtr& function, Location location);
  bool match_types(const ModuleValue& module, const Interface& interface, const std::string& path, Matching& matching);
  bool match_type(const std::string& name, const TypeBinding& wanted, const TypeBinding& actual, Location location,
                  const std::string& mismatch);
  bool match_liftedness(const std::string& name, const TypeBinding& wanted, const TypeBinding& actual,
                        Location location);
  bool match_sizes(const std::string& name, const TypeBinding& wanted, const TypeBinding& actual, Location location);
  bool match_constants(const ModuleValue& module, const Interface& interface, const std::string& path,
                       Matching& matching);
  void match_abbreviation(const std::string& name, const TypeBinding& wanted, const TypeBinding& actual,
                          const Matching& matching);
  Environment match_members(const ModuleValue& module, const Interface& interface, const std::string& path,
                            Matching& matching);
  std::optional<Target> match_value(const std::string& name, const std::string& path, const Interface::Value& wanted,
                                    Resolution actual, Matching& matching);
  Ty with_open_sizes(Ty type, const std::set<BinderId>& open, Location location, std::vector<BinderId>& unknown);
  TypeBindingPtr member_type(const ModuleValue& module, const std::string& name) const;
  bool match_plain_types(const ModuleValue& module, const Interface& interface, const std::string& path,
                         const Matching& matching);
  std::string type_text(const std::string& name, const TypeBinding& type) const;
  std::string spec_text(const std::string& name, const Interface::Value& value, Ty type) const;
  void report_missing(const std::string& name, const std::string& path, const Interface::Value& wanted,
                      const Matching& matching);

  // prelude_source.cpp
  void evaluate_prelude();
  void enter_prelude();
  InterfacePtr prelude_interface(const std::string& name);

  void report(Code code, Location location, std::string message, std::vector<Note> notes = {}) {
    checker_.report(code, location, std::move(message), std::move(notes));
  }
  void resize_tables();

  Checker& checker_;
  TypeStore& store_;
  std::vector<ModulePtr> files_;
  std::string path_;    // of the module being evaluated, with a dot at its end
  std::string inside_;  // of a parametric module that is matched with its module type, in the module around it
  int applications_ = 0;
  int depth_ = 0;  // of applications
  bool in_module_ = false;
  bool applying_ = false;  // the body is a copy that was checked before
  std::optional<Environment> prelude_;
};

}  // namespace apl::frontend
