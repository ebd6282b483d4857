// Types and sizes of the source language, as inference sees them: terms with variables, in one store.
// Equal ids are equal terms; different ids may be, once their variables are followed (`find`).
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "ir/diagnostic.h"
#include "ir/scalar.h"

namespace apl::frontend {

struct Expr;

struct Ty {
  static constexpr std::uint32_t kNone = UINT32_MAX;
  std::uint32_t id = kNone;
  explicit operator bool() const { return id != kNone; }
  bool operator==(const Ty&) const = default;
};

struct Size {
  static constexpr std::uint32_t kNone = UINT32_MAX;
  std::uint32_t id = kNone;
  explicit operator bool() const { return id != kNone; }
  bool operator==(const Size&) const = default;
};

// What a name stands for: every binder of the program has its own number. Those of type i64 can be sizes.
using BinderId = std::uint32_t;
using ParamId = std::uint32_t;  // of a type parameter `'t`
using AbstractId = std::uint32_t;
constexpr std::uint32_t kNoId = UINT32_MAX;

// Sets of scalar types, a bit each; 0 means any type at all.
using ScalarSet = std::uint16_t;
constexpr ScalarSet bit_of(ScalarType type) { return static_cast<ScalarSet>(1U << static_cast<unsigned>(type)); }
constexpr bool contains(ScalarSet set, ScalarType type) { return (set & bit_of(type)) != 0; }
constexpr ScalarSet kIntegers = 0xFF;
constexpr ScalarSet kFloats = bit_of(ScalarType::f16) | bit_of(ScalarType::f32) | bit_of(ScalarType::f64);
constexpr ScalarSet kNumbers = kIntegers | kFloats;
constexpr ScalarSet kOrdered = kNumbers | bit_of(ScalarType::boolean);
constexpr ScalarSet kBits = kIntegers | bit_of(ScalarType::boolean);

// What a type variable may become.
struct Constraint {
  ScalarSet scalars = 0;
  bool equality = false;     // compared with ==: no functions, no type parameters
  bool first_order = false;  // no functions: elements of arrays, loop and branch results
  bool regular = false;      // no types whose sizes may vary: elements of arrays
  const char* reason = "";   // of first_order, for messages
};

// ---- sizes ------------------------------------------------------------------------------------

struct SizeVar {
  Size link;
  std::uint32_t level;
  Location origin;
  BinderId param = kNoId;  // the size parameter that it stands for where that is used
};
struct SizeConst {
  std::int64_t value;
};
struct SizeName {
  BinderId binder;
};
struct SizeOp {
  char op;
  Size x, y;
};  // + - *
// Any other operation: the same as another of the same kind on the same parts, and else nothing is known of it. Its
// parts are terms too, but may stand for values of any type.
struct SizeExpr {
  enum class Kind : std::uint8_t {
    name,     // of a definition or of the prelude: `text`, told apart by `identity`
    literal,  // `text`
    call,     // of the first part
    field,    // `text` of the part
    other,    // the operation of `expr` on its children, the alternative `identity` of expressions
  };
  Kind kind = Kind::other;
  std::string text;
  std::uint64_t identity = 0;
  const Expr* expr = nullptr;  // of the program
  std::vector<Size> parts;
  std::vector<std::string> fields;  // of a tuple or record: the parts' names
};
using SizeNode = std::variant<SizeVar, SizeConst, SizeName, SizeOp, SizeExpr>;

// The operation and the operands of a size that is computed; + - * are calls as others are.
struct SizeParts {
  SizeExpr::Kind kind;
  std::string text;
  std::uint64_t identity;
  std::vector<Size> parts;
  bool same_operation(const SizeParts& other) const {
    return kind == other.kind && identity == other.identity && text == other.text && parts.size() == other.parts.size();
  }
};

// ---- types ------------------------------------------------------------------------------------

struct TyVar {
  Ty link;
  std::uint32_t level;
  Constraint constraint;
  Location origin;
};
struct TyParam {
  ParamId param;
};
struct TyScalar {
  ScalarType type;
};
struct TyArray {
  Size size;
  Ty element;
};
// Tuples have the fields 0, 1, ...; records are sorted by name. Unit is the empty tuple.
struct TyRecord {
  std::vector<std::pair<std::string, Ty>> fields;
};
// `param` is set where the result's sizes mention it: `(n: i64) -> [n]t`. `unknown` are sizes that exist once
// the function is applied, and that nothing outside can name.
struct TyArrow {
  Ty from, to;
  BinderId param = kNoId;
  std::vector<BinderId> unknown;
};
// `#leaf i32 | #node`, sorted by name.
struct TySum {
  std::vector<std::pair<std::string, std::vector<Ty>>> constructors;
};
// A type that a module type keeps from those who use the module, with the arguments for its parameters. `link` is what
// it stands for, once nothing is hidden any more (TypeStore::reveal).
struct TyAbstract {
  AbstractId id;
  std::vector<Ty> types;
  std::vector<Size> sizes;
  Ty link;
};
struct TyError {};  // after an error was reported: equal to everything
using TyNode = std::variant<TyVar, TyParam, TyScalar, TyArray, TyRecord, TyArrow, TySum, TyAbstract, TyError>;

// What is known of a binder, besides its value.
struct Binder {
  enum class Kind : std::uint8_t { value, size_param, inferred_size, unknown_size, global };
  Kind kind = Kind::value;
  std::string name;
  Location location;
  std::uint32_t level = 0;  // of its scope: 0 is the whole program
  Ty type;
  std::string why;  // of an unknown size, for messages: "the length of a range"
};

struct TypeParamInfo {
  std::string name;
  Location location;
  Constraint constraint;
  bool lifted = false;       // '^t: may be a function
  bool size_lifted = false;  // '~t, '^t: its sizes may vary
  std::uint32_t level = 0;   // of its scope, as of a binder
};

// `type pair 'a [n] = ([n]a, [n]a)`: a type with parameters, in the order in which arguments are written.
struct TypeFunction {
  struct Param {
    bool is_size = false;
    ParamId type = kNoId;
    BinderId size = kNoId;
  };
  std::vector<Param> params;
  Ty body;
};

// What is known of an abstract type. `body` is none where nothing implements it: inside of a parametric module.
struct AbstractInfo {
  std::string name;
  Constraint constraint;
  bool lifted = false;
  bool size_lifted = false;
  TypeFunction implementation;
  bool accumulator = false;  // of arrays: what is written to one (modules/prelude_source.cpp)
};

// Type parameters and sizes replaced.
struct TypeMap {
  std::unordered_map<ParamId, Ty> params;
  std::unordered_map<BinderId, Size> sizes;
  std::unordered_map<std::uint32_t, Size> size_variables;  // open ones, by their ids
  std::unordered_map<AbstractId, TypeFunction> abstracts;
  bool empty() const { return params.empty() && sizes.empty() && size_variables.empty() && abstracts.empty(); }
};

class TypeStore {
 public:
  TypeStore();

  // ---- making
  Ty scalar(ScalarType type) const { return scalars_[static_cast<std::size_t>(type)]; }
  Ty error() const { return error_; }
  Ty unit() const { return unit_; }
  Ty variable(std::uint32_t level, Location origin, Constraint constraint = {});
  Ty param(ParamId id) { return add(TyParam{id}); }
  Ty array(Size size, Ty element) { return add(TyArray{size, element}); }
  Ty tuple(const std::vector<Ty>& elements);
  Ty record(std::vector<std::pair<std::string, Ty>> fields);  // sorts
  Ty arrow(Ty from, Ty to, BinderId param = kNoId, std::vector<BinderId> unknown = {}) {
    return add(TyArrow{from, to, param, std::move(unknown)});
  }
  Ty sum(std::vector<std::pair<std::string, std::vector<Ty>>> constructors);  // sorts
  Ty abstract(AbstractId id, std::vector<Ty> types, std::vector<Size> sizes) {
    return add(TyAbstract{id, std::move(types), std::move(sizes), {}});
  }
  // The type function on its own parameters.
  TypeFunction abstract_function(AbstractId id, std::vector<TypeFunction::Param> params);
  Ty apply(const TypeFunction& function, const std::vector<Ty>& types, const std::vector<Size>& sizes);
  Size size_variable(std::uint32_t level, Location origin, BinderId param = kNoId);
  Size constant(std::int64_t value);
  Size name(BinderId binder);
  Size size_op(char op, Size x, Size y);
  Size size_expr(SizeExpr expr);
  BinderId add_binder(Binder binder);
  ParamId add_param(TypeParamInfo info);
  AbstractId add_abstract(AbstractInfo info);

  // ---- looking
  Ty find(Ty type) const;  // variables followed
  Size find(Size size) const;
  const TyNode& node(Ty type) const { return types_[find(type).id]; }
  // Whether it is a type that a module type hides, also when what it stands for is known by now.
  bool is_abstract(Ty type) const;
  const SizeNode& node(Size size) const { return sizes_[find(size).id]; }
  template <class T>
  const T* get_if(Ty type) const {
    return std::get_if<T>(&node(type));
  }
  template <class T>
  const T* get_if(Size size) const {
    return std::get_if<T>(&node(size));
  }
  Binder& binder(BinderId id) { return binders_[id]; }
  const Binder& binder(BinderId id) const { return binders_[id]; }
  const TypeParamInfo& type_param(ParamId id) const { return params_[id]; }
  const AbstractInfo& abstract_info(AbstractId id) const { return abstracts_[id]; }
  void implement(AbstractId id, TypeFunction implementation) {
    abstracts_[id].implementation = std::move(implementation);
  }
  void rename_abstract(AbstractId id, std::string name) { abstracts_[id].name = std::move(name); }
  // From now on abstract types are what implements them.
  void reveal();
  std::size_t binder_count() const { return binders_.size(); }

  bool is_tuple(const TyRecord& record) const;
  std::optional<ScalarType> as_scalar(Ty type) const;
  bool contains_function(Ty type) const;
  bool mentions(Ty type, BinderId binder) const;
  bool mentions(Size size, BinderId binder) const;
  void mentioned(Ty type, std::unordered_set<BinderId>& into) const;  // all names of sizes in it
  std::optional<SizeParts> parts_of(Size size) const;
  bool is_polynomial(Size size) const;  // made of +, - and * alone
  // Names of sizes in the type whose scope is deeper than `level`, but those that an arrow inside binds itself.
  std::vector<BinderId> free_sizes(Ty type, std::uint32_t level) const;
  // A type parameter in the type whose scope is deeper than `level`.
  std::optional<ParamId> free_param(Ty type, std::uint32_t level) const;

  // ---- changing
  Ty substitute(Ty type, const TypeMap& map);
  Size substitute(Size size, const TypeMap& map);
  void bind(Ty variable, Ty to);
  void bind(Size variable, Size to);
  void constrain(Ty variable, const Constraint& constraint);
  // Unbound variables get at most this level.
  void lower_level(Ty type, std::uint32_t level);
  void lower_level(Size size, std::uint32_t level);

  // Every node of a type once, outermost first; sizes too.
  template <class VisitType, class VisitSize>
  void walk(Ty type, VisitType visit_type, VisitSize visit_size) const;
  template <class VisitSize>
  void walk_size(Size size, VisitSize visit) const;

  // How many nodes the type has written out as a tree; parts may be shared, so it can be very large.
  std::size_t tree_size(Ty type) const;

  std::string to_text(Ty type) const;
  std::string to_text(Size size) const;

 private:
  std::size_t tree_size(Ty type, std::unordered_map<std::uint32_t, std::size_t>& done) const;
  std::string to_text(Size size, int depth) const;
  std::optional<std::int64_t> constant_value(Size size, int depth) const;
  Ty add(TyNode node);
  Size add(SizeNode node);
  struct Done {
    std::unordered_map<std::uint32_t, Ty> types;
    std::unordered_map<std::uint32_t, Size> sizes;
  };
  Ty substitute(Ty type, const TypeMap& map, Done& done);
  bool substitute_all(std::vector<Ty>& types, const TypeMap& map, Done& done);
  Size substitute(Size size, const TypeMap& map, Done& done);

  // Deques: what was read of them stays where it is while more is added.
  std::deque<TyNode> types_;
  std::deque<SizeNode> sizes_;
  std::deque<Binder> binders_;
  std::deque<TypeParamInfo> params_;
  std::deque<AbstractInfo> abstracts_;
  std::vector<Ty> scalars_;
  Ty error_, unit_;
};

template <class VisitSize>
void TypeStore::walk_size(Size size, VisitSize visit) const {
  std::unordered_map<std::uint32_t, bool> seen;  // of the operations alone: their parts may be shared
  std::vector<Size> todo = {find(size)};
  while (!todo.empty()) {
    const Size s = todo.back();
    todo.pop_back();
    const auto* op = std::get_if<SizeOp>(&sizes_[s.id]);
    const auto* expr = std::get_if<SizeExpr>(&sizes_[s.id]);
    if ((op || expr) && !seen.emplace(s.id, true).second) continue;
    visit(s, sizes_[s.id]);
    if (op) {
      todo.push_back(find(op->x));
      todo.push_back(find(op->y));
    } else if (expr) {
      for (Size part : expr->parts) todo.push_back(find(part));
    }
  }
}

template <class VisitType, class VisitSize>
void TypeStore::walk(Ty type, VisitType visit_type, VisitSize visit_size) const {
  std::unordered_map<std::uint32_t, bool> seen;
  std::vector<Ty> todo = {find(type)};
  while (!todo.empty()) {
    const Ty t = todo.back();
    todo.pop_back();
    if (!seen.emplace(t.id, true).second) continue;
    visit_type(t, types_[t.id]);
    const TyNode& node = types_[t.id];
    if (const auto* array = std::get_if<TyArray>(&node)) {
      walk_size(array->size, visit_size);
      todo.push_back(find(array->element));
    } else if (const auto* record = std::get_if<TyRecord>(&node)) {
      for (auto field = record->fields.rbegin(); field != record->fields.rend(); ++field)
        todo.push_back(find(field->second));
    } else if (const auto* arrow = std::get_if<TyArrow>(&node)) {
      todo.push_back(find(arrow->to));
      todo.push_back(find(arrow->from));
    } else if (const auto* sum = std::get_if<TySum>(&node)) {
      for (auto part = sum->constructors.rbegin(); part != sum->constructors.rend(); ++part)
        for (auto payload = part->second.rbegin(); payload != part->second.rend(); ++payload)
          todo.push_back(find(*payload));
    } else if (const auto* abstract = std::get_if<TyAbstract>(&node)) {
      for (Size size : abstract->sizes) walk_size(size, visit_size);
      for (auto part = abstract->types.rbegin(); part != abstract->types.rend(); ++part) todo.push_back(find(*part));
    }
  }
}

}  // namespace apl::frontend
