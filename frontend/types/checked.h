// What inference found out about a program: tables beside the AST, by the ids of expressions and patterns.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "frontend/prelude.h"
#include "frontend/syntax/ast.h"
#include "frontend/types/types.h"

namespace apl::frontend {

// What a name refers to.
struct Resolution {
  enum class Kind : std::uint8_t { unknown, local, global, prelude };
  Kind kind = Kind::unknown;
  BinderId binder = kNoId;              // local
  std::uint32_t global = 0;             // index in Checked::globals
  const PreludeEntry* entry = nullptr;  // prelude
  std::optional<ScalarType> module;     // prelude: of a member
  std::string member;                   // prelude: the name
  std::vector<std::string> fields;      // `r.x.y`: what is projected from it
  TypeMap instance;                     // global and prelude: what its parameters are here
};

// A definition, at the top level or in a module.
struct Global {
  const Declaration* declaration = nullptr;
  const Definition* definition = nullptr;
  std::vector<ParamId> type_params;  // in order; inferred ones last
  std::vector<BinderId> sizes;       // the same
  std::vector<BinderId> unknown;     // of a constant: sizes known once it is evaluated
  Ty type;
  BinderId binder = kNoId;  // the constant as a size
  bool entry = false;
  bool abstract = false;           // its type is an abstract one
  bool failed = false;             // it has errors of its own
  bool applied = false;            // of a parametric module that is applied, and was checked for every argument
  std::string label;               // its name with those of the modules that it is in
  const TypeExpr* spec = nullptr;  // of a value that a module type gives a type
};

struct Checked {
  Program program;
  TypeStore store;
  std::vector<Global> globals;
  std::vector<Ty> types;  // of expressions; of local functions by the id of their binding
  std::vector<Ty> pattern_types;
  std::vector<BinderId> pattern_binders;                       // of PatternName
  std::unordered_map<std::uint32_t, Resolution> names;         // of Variable, Infix, Section; of LetUpdate by binding
  std::unordered_map<std::uint32_t, Resolution> implied;       // of loops without initial value, by PatternName
  std::unordered_map<std::uint32_t, BinderId> argument_sizes;  // the expression's value is that size
  std::unordered_map<std::uint32_t, std::vector<BinderId>>
      unknown_sizes;                                                    // fixed by the shape of the expression's value
  std::unordered_map<std::uint32_t, std::vector<BinderId>> loop_sizes;  // sizes of a loop that vary, inside of it
  std::unordered_map<std::uint32_t, std::vector<BinderId>> pattern_sizes;  // `let [n] pattern`, by pattern
  std::unordered_set<std::uint32_t> checked_patterns;                      // PatternTyped: sizes checked at run time
  std::unordered_map<std::uint32_t, BinderId> binding_binders;             // of LetFunction, LetUpdate by binding
  std::unordered_map<BinderId, std::uint32_t> global_sizes;                // of constants that are sizes

  // TypeName, TypeApply: what the abbreviation stands for, as it is written.
  std::unordered_map<const TypeExpr*, const TypeExpr*> abbreviations;
  // What the checker made: copies of parametric modules, definitions that give values other types.
  std::vector<std::unique_ptr<ModuleExpr>> copies;
  std::vector<std::unique_ptr<Declaration>> made;

  const Global* find(std::string_view name) const;
};

// Resolves names and infers types and sizes. Errors go to the sink; nullopt if there was one.
std::optional<Checked> check_program(Program program, const DiagnosticSink& sink);

}  // namespace apl::frontend
