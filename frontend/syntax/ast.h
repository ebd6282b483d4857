// The source program as the parser found it: plain structs in variants, each with the range it came from.
// Names are not resolved and nothing is typed; what inference finds out lies in tables by `id`.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "ir/diagnostic.h"
#include "ir/op.h"
#include "ir/scalar.h"

namespace apl::frontend {

struct Expr;
struct Pattern;
struct TypeExpr;
using ExprPtr = std::unique_ptr<Expr>;
using PatternPtr = std::unique_ptr<Pattern>;
using TypeExprPtr = std::unique_ptr<TypeExpr>;

// A field of a record, or of a tuple where it is a number. `value` may be null for the pun `{x}`.
template <class T>
struct Field {
  std::string name;
  Location location;
  T value;
};

// `f32.sum`: qualifiers and text. Whether `r.x` is a member or a field is known when names are resolved.
struct Name {
  std::vector<std::string> qualifiers;
  std::string text;
  Location location;

  std::string to_string() const;
};

// ---- types ------------------------------------------------------------------------------------

struct TypeName {
  Name name;
};
struct TypeTuple {
  std::vector<TypeExprPtr> elements;
};  // empty: unit
struct TypeRecord {
  std::vector<Field<TypeExprPtr>> fields;
};
struct TypeArray {
  ExprPtr size;
  TypeExprPtr element;
};  // no size: anonymous
struct TypeArrow {
  std::string param;
  Location param_location;
  TypeExprPtr from, to;
};
struct TypeUnique {
  TypeExprPtr type;
};  // `*t`
struct TypeUnsupported {
  std::string what;
};  // parsed, but of a later tier

struct TypeExpr {
  Location location;
  std::variant<TypeName, TypeTuple, TypeRecord, TypeArray, TypeArrow, TypeUnique, TypeUnsupported> node;
};

// `[n]` or `'t`.
struct TypeParam {
  enum class Kind : std::uint8_t { size, type, size_lifted, lifted };  // [n] 't '~t '^t
  Kind kind = Kind::size;
  std::string name;
  Location location;
};

// ---- patterns ---------------------------------------------------------------------------------

struct PatternName {
  std::string name;
};
struct PatternWildcard {};
struct PatternTuple {
  std::vector<PatternPtr> elements;
};
struct PatternRecord {
  std::vector<Field<PatternPtr>> fields;
};
struct PatternTyped {
  PatternPtr pattern;
  TypeExprPtr type;
};

struct Pattern {
  Location location;
  std::uint32_t id = 0;
  std::variant<PatternName, PatternWildcard, PatternTuple, PatternRecord, PatternTyped> node;
};

// ---- expressions ------------------------------------------------------------------------------

struct Literal {
  Scalar value;
};                      // bool, or a number with a suffix
struct NumberLiteral {  // without suffix: its type is inferred
  bool is_float = false;
  std::uint64_t integer = 0;
  double real = 0;
  std::string too_large;  // the text of an integer that 64 bits do not hold: as a float it is `real`

  double as_float() const { return is_float || !too_large.empty() ? real : static_cast<double>(integer); }
};
struct StringLiteral {
  std::string text;
};
struct Variable {
  Name name;
};
struct TupleExpr {
  std::vector<ExprPtr> elements;
};  // empty: unit
struct RecordExpr {
  std::vector<Field<ExprPtr>> fields;
};
struct ArrayExpr {
  std::vector<ExprPtr> elements;
};
struct Project {
  ExprPtr record;
  std::string field;
};
struct LocalOpen {
  Name module;
  ExprPtr body;
};  // `f32.(e)`

// One dim of an index: `i`, or a slice `start:end:stride` whose parts may be missing.
struct IndexDim {
  ExprPtr start, end, stride;
  bool slice = false;
  Location location;
};
struct IndexExpr {
  ExprPtr array;
  std::vector<IndexDim> dims;
};

struct Call {
  ExprPtr function;
  std::vector<ExprPtr> arguments;
};
struct Negate {
  ExprPtr x;
};
struct Not {
  ExprPtr x;
};
struct Infix {
  Name op;
  ExprPtr x, y;
};
struct Section {
  Name op;
  ExprPtr left, right;
};  // `(x op)`, `(op x)`, or `(op)`
// `(.f.g)` and `(.[i])`: what each step takes.
struct AccessStep {
  std::string field;
  std::vector<IndexDim> dims;
  bool is_field = true;
  Location location;
};
struct AccessSection {
  std::vector<AccessStep> steps;
};
struct LambdaExpr {
  std::vector<PatternPtr> params;
  TypeExprPtr result;
  ExprPtr body;
};
struct IfExpr {
  ExprPtr condition, then_value, else_value;
};

struct LetPattern {
  std::vector<TypeParam> sizes;
  PatternPtr pattern;
  ExprPtr value;
};
struct LetFunction {
  std::string name;
  std::vector<TypeParam> type_params;
  std::vector<PatternPtr> params;
  TypeExprPtr result;
  ExprPtr body;
};
struct LetUpdate {
  Name name;
  std::vector<AccessStep> steps;
  ExprPtr value;
};  // `let a[i] = v`
struct LetBinding {
  Location location;
  std::uint32_t id = 0;
  std::variant<LetPattern, LetFunction, LetUpdate> node;
};
// A chain of lets is one node, so that long programs are not deep ones.
struct LetExpr {
  std::vector<LetBinding> bindings;
  ExprPtr body;
};

struct ForLess {
  std::string name;
  Location location;
  std::uint32_t pattern_id;
  ExprPtr bound;
};
struct ForIn {
  PatternPtr pattern;
  ExprPtr array;
};
struct While {
  ExprPtr condition;
};
// `initial` is null where it is implied: the variables of the pattern, as they are outside.
struct LoopExpr {
  PatternPtr pattern;
  ExprPtr initial;
  std::variant<ForLess, ForIn, While> form;
  ExprPtr body;
};

struct Ascribe {
  ExprPtr x;
  TypeExprPtr type;
  bool coerce = false;
};  // `x : t`; coerce: `x :> t`
struct RangeExpr {
  enum class End : std::uint8_t { inclusive, below, above };  // `...`, `..<`, `..>`
  ExprPtr start, second, end;
  End kind = End::inclusive;
};
struct UpdateExpr {
  ExprPtr source;
  std::vector<AccessStep> steps;
  ExprPtr value;
};  // `source with steps = value`
struct AssertExpr {
  ExprPtr condition, value;
};
struct Attributed {
  Attribute attribute;
  ExprPtr x;
};

struct Expr {
  Location location;
  std::uint32_t id = 0;
  std::uint32_t depth = 1;  // of the tree below
  std::variant<Literal, NumberLiteral, StringLiteral, Variable, TupleExpr, RecordExpr, ArrayExpr, Project, LocalOpen,
               IndexExpr, Call, Negate, Not, Infix, Section, AccessSection, LambdaExpr, IfExpr, LetExpr, LoopExpr,
               Ascribe, RangeExpr, UpdateExpr, AssertExpr, Attributed>
      node;
};

// ---- declarations -----------------------------------------------------------------------------

// `def`, `entry` or top-level `let`.
struct Definition {
  bool entry = false;
  std::string name;
  Location name_location;
  std::vector<TypeParam> type_params;
  std::vector<PatternPtr> params;
  TypeExprPtr result;
  ExprPtr body;
};

struct TypeDefinition {
  std::string name;
  Location name_location;
  std::vector<TypeParam> params;
  TypeExprPtr type;
};

struct Declaration {
  Location location;
  std::vector<Attribute> attributes;
  std::variant<Definition, TypeDefinition> node;
};

struct Program {
  std::vector<Declaration> declarations;
  std::uint32_t expr_count = 0;     // ids of expressions and let bindings are below this
  std::uint32_t pattern_count = 0;  // ids of patterns
};

// The source text of a type, e.g. `[n][m]f32`, for entries and messages.
std::string to_text(const TypeExpr& type);
// The same for expressions, shortened: `length xs`, `...`.
enum class Parentheses : std::uint8_t { needed, all };  // `all`: around every operation inside another
std::string to_text(const Expr& expr, Parentheses parentheses = Parentheses::needed);

// The name that a pattern binds, if it binds just one, perhaps with a type.
const PatternName* as_name(const Pattern& pattern);

}  // namespace apl::frontend
