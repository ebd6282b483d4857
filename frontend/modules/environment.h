// What names stand for, in a module and in a scope.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "frontend/types/checked.h"

namespace apl::frontend {

// What the name of a value refers to.
struct Target {
  Resolution::Kind kind = Resolution::Kind::local;
  BinderId binder = kNoId;
  std::uint32_t global = 0;
  const PreludeEntry* entry = nullptr;
  std::optional<ScalarType> module;
  std::string member;

  Resolution resolution() const {
    return {.kind = kind, .binder = binder, .global = global, .entry = entry, .module = module, .member = member};
  }
};

// What the name of a type stands for.
struct TypeBinding {
  TypeFunction function;
  std::vector<BinderId> existential;  // sizes that are others at each use
  Liftedness liftedness = Liftedness::unlifted;
  std::optional<AbstractId> abstract;  // it is this abstract type itself
  const TypeExpr* written = nullptr;   // of an abbreviation
  Location location;
};
using TypeBindingPtr = std::shared_ptr<const TypeBinding>;

struct ModuleValue;
struct Interface;
using ModulePtr = std::shared_ptr<const ModuleValue>;
using InterfacePtr = std::shared_ptr<const Interface>;

struct Environment {
  std::map<std::string, Target> values;
  std::map<std::string, TypeBindingPtr> types;
  std::map<std::string, ModulePtr> modules;
  std::map<std::string, InterfacePtr> interfaces;

  // Names of the other hide those of this one.
  void add(const Environment& other);
};

// Names of one kind in nested scopes; the last one entered counts.
template <class T>
class ScopedNames {
 public:
  struct Entry {
    T what;
    std::size_t order = 0;  // of entering
  };
  void enter(const std::string& name, T what, std::size_t order) {
    names_[name].push_back({std::move(what), order});
    undo_.push_back(name);
  }
  const Entry* find(const std::string& name) const {
    const auto found = names_.find(name);
    return found == names_.end() || found->second.empty() ? nullptr : &found->second.back();
  }
  std::size_t mark() const { return undo_.size(); }
  void leave(std::size_t mark) {
    for (; undo_.size() > mark; undo_.pop_back()) names_[undo_.back()].pop_back();
  }
  template <class Visit>
  void each(Visit visit) const {
    for (const auto& [name, entries] : names_)
      if (!entries.empty()) visit(name, entries.back().what);
  }

 private:
  std::unordered_map<std::string, std::vector<Entry>> names_;
  std::vector<std::string> undo_;
};

// All names in scope.
class ScopeTable {
 public:
  struct Mark {
    std::size_t values, types, modules, interfaces;
  };
  Mark mark() const { return {values_.mark(), types_.mark(), modules_.mark(), interfaces_.mark()}; }
  void leave(const Mark& mark);

  void enter(const std::string& name, Target target) { values_.enter(name, std::move(target), ++order_); }
  void enter(const std::string& name, TypeBindingPtr type) { types_.enter(name, std::move(type), ++order_); }
  void enter(const std::string& name, ModulePtr module) { modules_.enter(name, std::move(module), ++order_); }
  void enter(const std::string& name, InterfacePtr type) { interfaces_.enter(name, std::move(type), ++order_); }
  void enter(const Environment& names);

  const ScopedNames<Target>::Entry* value(const std::string& name) const { return values_.find(name); }
  TypeBindingPtr type(const std::string& name) const;
  ModulePtr module(const std::string& name) const;
  InterfacePtr interface(const std::string& name) const;
  // The module that a path names; nullptr if there is none.
  ModulePtr module(const std::vector<std::string>& path, std::size_t length) const;

  std::size_t next_order() { return ++order_; }
  // All that can be seen.
  Environment visible() const;

 private:
  ScopedNames<Target> values_;
  ScopedNames<TypeBindingPtr> types_;
  ScopedNames<ModulePtr> modules_;
  ScopedNames<InterfacePtr> interfaces_;
  std::size_t order_ = 0;
};

// A parametric module: one of the program with what its body sees, or one that only has a type, `module`'s if it has
// an implementation.
struct ModuleFunction {
  const ModuleLambda* lambda = nullptr;
  std::shared_ptr<const Environment> scope;
  ModulePtr module;
  InterfacePtr type;
};

struct ModuleValue {
  Environment members;
  std::optional<ScalarType> scalar;  // f32, i64, ...: its members are in the prelude's table
  std::shared_ptr<const ModuleFunction> function;
  bool wrong = false;  // an error was reported: nothing more is said of its members
};

// A module type, evaluated. Each use has abstract types of its own.
struct Interface {
  struct Value {
    std::vector<ParamId> params;
    std::vector<BinderId> sizes;
    std::vector<BinderId> unknown;  // of a constant
    Ty type;
    const ValueSpec* spec = nullptr;
    BinderId constant = kNoId;  // an i64: what sizes of the module type call it
  };
  std::vector<AbstractId> own;  // the abstract types of it and of its modules
  std::map<std::string, TypeBindingPtr> types;
  std::map<std::string, Value> values;
  std::map<std::string, InterfacePtr> modules;
  std::vector<BinderId> existential;  // sizes that types which it was refined with leave open
  // Of a parametric module.
  std::string param;
  InterfacePtr from, to;
  bool wrong = false;
};

}  // namespace apl::frontend
