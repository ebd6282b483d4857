// Where a value may come from: its type's outline, with the variables that each part may share memory with.
//
//   let a = iota n              a: {a}
//   let (b, c) = (a, copy a)    b: {a, b}, c: {c}
//   f: *[]i32 -> []i32          an arrow that consumes; its result may share memory with what f is closed over
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "frontend/types/types.h"

namespace apl::frontend {

// Variables of this pass: binders below kGlobals, then globals, then results that have no name.
using VarId = std::uint32_t;
constexpr VarId kGlobals = 1U << 30U;
constexpr VarId kResults = 1U << 31U;

// A part of a variable that a value may share memory with. `bound`: the variable is in scope. One that has left its
// scope still tells which values share their memory.
struct Alias {
  VarId variable = 0;
  std::uint32_t path = 0;  // of fields, numbered by Paths; 0 is the whole
  bool bound = true;
  auto operator<=>(const Alias&) const = default;
};

// Sorted, without duplicates.
using Aliases = std::vector<Alias>;

Aliases joined(const Aliases& a, const Aliases& b);
bool overlap(const Aliases& a, const Aliases& b);
void insert(Aliases& set, Alias alias);

struct Flow;
using FlowPtr = std::shared_ptr<const Flow>;

struct Flow {
  enum class Kind : std::uint8_t {
    scalar,  // shares nothing
    leaf,    // an array or a value of a type parameter
    record,
    arrow,
  };
  Kind kind = Kind::scalar;
  bool parameter = false;  // leaf: its type is a type parameter
  bool unique = false;     // leaf: `*` is written on it; of a parameter: it is consumed
  bool consumes = false;   // arrow: its argument
  Aliases aliases;         // leaf, arrow
  std::vector<std::pair<std::string, FlowPtr>> fields;
  FlowPtr from, to;  // arrow; `from` is null where nothing is known of it

  const FlowPtr* field(const std::string& name) const;
};

FlowPtr make_flow(Flow flow);

// All aliases of all parts; `functions`: those of what functions are closed over, too.
Aliases all_aliases(const FlowPtr& flow, bool functions = true);
// Whether a part is unique: a parameter like that consumes.
bool any_unique(const FlowPtr& flow);
// The same outline with other aliases.
FlowPtr with_aliases(const FlowPtr& flow, const std::function<Aliases(const Flow&)>& aliases);
FlowPtr with_aliases(const FlowPtr& flow, const Aliases& aliases);
// The same outline, its leaves all unique or not.
FlowPtr with_uniqueness(const FlowPtr& flow, bool unique);
// What both may be.
FlowPtr joined(const FlowPtr& a, const FlowPtr& b);
// Calls `visit` with the parts of both that correspond.
void pairwise(const FlowPtr& a, const FlowPtr& b, const std::function<void(const FlowPtr&, const FlowPtr&)>& visit);

// Field paths by number.
class Paths {
 public:
  std::uint32_t of(std::uint32_t parent, const std::string& field);

 private:
  std::unordered_map<std::string, std::uint32_t> numbers_;
};

// The flow of a variable: what it already was, and itself.
FlowPtr with_self(const FlowPtr& flow, VarId variable, Paths& paths);

// The outlines of types.
class Outlines {
 public:
  explicit Outlines(const TypeStore& store) : store_(store) {}
  // Nothing is unique, no arrow consumes, nothing aliases.
  FlowPtr of(Ty type);
  // The outline of a type like `flow`, where its type parameters stand for what they are in `type`.
  FlowPtr adapted(const FlowPtr& flow, Ty type);

 private:
  FlowPtr make(Ty type);

  const TypeStore& store_;
  std::unordered_map<std::uint32_t, FlowPtr> done_;
};

}  // namespace apl::frontend
