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

#include "frontend/syntax/place.h"
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

// `[n]` or `'t`.
struct TypeParam {
  enum class Kind : std::uint8_t { size, type, size_lifted, lifted };  // [n] 't '~t '^t
  Kind kind = Kind::size;
  std::string name;
  Location location;
};

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
// `vec [n] i32`: each argument is a size (null: `[]`) or a type.
struct TypeArgumentExpr {
  bool is_size = false;
  ExprPtr size;
  TypeExprPtr type;
  Location location;
};
struct TypeApply {
  Name name;
  std::vector<TypeArgumentExpr> arguments;
};
// `#leaf i32 | #node`
struct SumConstructor {
  std::string name;
  Location location;
  std::vector<TypeExprPtr> payload;
};
struct TypeSum {
  std::vector<SumConstructor> constructors;
};
// `?[n].[n]t`
struct TypeExists {
  std::vector<TypeParam> sizes;
  TypeExprPtr type;
};

struct TypeExpr {
  Location location;
  std::variant<TypeName, TypeTuple, TypeRecord, TypeArray, TypeArrow, TypeUnique, TypeApply, TypeSum, TypeExists> node;
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
// `1`, `-2.5`, `true`: a literal, perhaps negated.
struct PatternLiteral {
  ExprPtr value;
};
// `#node left right`
struct PatternConstructor {
  std::string name;
  std::vector<PatternPtr> payload;
};

struct Pattern {
  Location location;
  std::uint32_t id = 0;
  std::variant<PatternName, PatternWildcard, PatternTuple, PatternRecord, PatternTyped, PatternLiteral,
               PatternConstructor>
      node;
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
struct IfArm {
  ExprPtr condition, value;
};
// `if a then x else if b then y else z` is one expression with two arms.
struct IfExpr {
  std::vector<IfArm> arms;
  ExprPtr else_value;
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
struct SyntaxAttribute : Attribute {
  Location location;
};
struct Attributed {
  SyntaxAttribute attribute;
  ExprPtr x;
};
// `#node left right`
struct ConstructorExpr {
  std::string name;
  std::vector<ExprPtr> arguments;
};
struct MatchCase {
  PatternPtr pattern;
  ExprPtr body;
  Location location;
};
struct MatchExpr {
  ExprPtr x;
  std::vector<MatchCase> cases;
};
struct Hole {};  // `???`

struct Expr {
  Location location;
  std::uint32_t id = 0;
  std::uint32_t depth = 1;  // of the tree below
  std::variant<Literal, NumberLiteral, StringLiteral, Variable, TupleExpr, RecordExpr, ArrayExpr, Project, LocalOpen,
               IndexExpr, Call, Negate, Not, Infix, Section, AccessSection, LambdaExpr, IfExpr, LetExpr, LoopExpr,
               Ascribe, RangeExpr, UpdateExpr, AssertExpr, Attributed, ConstructorExpr, MatchExpr, Hole>
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

// How much a type may hold: `type` is an array's element, `type~` has sizes that vary, `type^` functions.
enum class Liftedness : std::uint8_t { unlifted, size_lifted, lifted };

struct TypeDefinition {
  Liftedness liftedness = Liftedness::unlifted;
  std::string name;
  Location name_location;
  std::vector<TypeParam> params;
  TypeExprPtr type;  // null in module types: an abstract type
};

struct Declaration;
struct ModuleExpr;
struct ModuleTypeExpr;
struct Spec;
using ModuleExprPtr = std::unique_ptr<ModuleExpr>;
using ModuleTypePtr = std::unique_ptr<ModuleTypeExpr>;

struct ModuleParam {
  std::string name;
  Location location;
  ModuleTypePtr type;
};
struct ModuleBody {
  std::vector<Declaration> declarations;
};  // `{ def x = 1 }`
// `import "lib/sorts"`; `file` is an index of Program::files once the loader has found it.
struct ModuleImport {
  std::string path;
  std::optional<std::uint32_t> file;
};
struct ModuleAscribe {
  ModuleExprPtr module;
  ModuleTypePtr type;
};  // `m : t`
struct ModuleApply {
  ModuleExprPtr function, argument;
};
struct ModuleLambda {
  ModuleParam param;
  ModuleTypePtr result;  // may be null
  ModuleExprPtr body;
};  // also `module m (p: t) : result = body`
struct ModuleExpr {
  Location location;
  std::variant<Name, ModuleBody, ModuleImport, ModuleAscribe, ModuleApply, ModuleLambda> node;
};

struct SpecBody {
  std::vector<Spec> specs;
};  // `{ val x : i32 }`
struct ModuleTypeWith {
  ModuleTypePtr base;
  Name type;
  std::vector<TypeParam> params;
  TypeExprPtr to;
};  // `t with u = i32`
struct ModuleTypeArrow {
  std::string param;  // may be empty
  ModuleTypePtr from, to;
};
struct ModuleTypeExpr {
  Location location;
  std::variant<Name, SpecBody, ModuleTypeWith, ModuleTypeArrow> node;
};

struct ValueSpec {
  std::string name;
  Location name_location;
  std::vector<TypeParam> type_params;
  TypeExprPtr type;
};
struct ModuleSpec {
  std::string name;
  ModuleTypePtr type;
};
struct IncludeSpec {
  ModuleTypePtr type;
};
struct Spec {
  Location location;
  std::variant<ValueSpec, TypeDefinition, ModuleSpec, IncludeSpec> node;
};

struct ModuleDefinition {
  std::string name;
  Location name_location;
  ModuleExprPtr body;
};
struct ModuleTypeDefinition {
  std::string name;
  Location name_location;
  ModuleTypePtr type;
};
struct OpenDeclaration {
  ModuleExprPtr module;
};  // `open m`, `import "x"`

struct Declaration {
  Location location;
  bool local = false;  // not seen by those who open the module
  std::vector<SyntaxAttribute> attributes;
  std::variant<Definition, TypeDefinition, ModuleDefinition, ModuleTypeDefinition, OpenDeclaration> node;
};

// A file that is imported, once however often it is.
struct ImportedFile {
  std::string name;  // as messages give it
  std::vector<Declaration> declarations;
};

// Where the text of an imported file comes from; the number in locations is one more than its index.
struct SourceInfo {
  std::string name;
  Location imported_at;
};

struct Program {
  std::vector<Declaration> declarations;
  std::vector<SourceInfo> sources;
  std::vector<ImportedFile> files;    // what a file imports comes before it
  std::vector<ImportedFile> prelude;  // what of the prelude is source, where it is used
  bool uses_prelude_source = false;   // a name of it occurs
  std::uint32_t expr_count = 0;       // ids of expressions and let bindings are below this
  std::uint32_t pattern_count = 0;    // ids of patterns
};

// The source text of a type, e.g. `[n][m]f32`, for entries and messages.
std::string to_text(const TypeExpr& type);
// The same for expressions, shortened: `length xs`, `...`.
enum class Parentheses : std::uint8_t { needed, all };  // `all`: around every operation inside another
std::string to_text(const Expr& expr, Parentheses parentheses = Parentheses::needed);

// The name that a pattern binds, if it binds just one, perhaps with a type.
const PatternName* as_name(const Pattern& pattern);

}  // namespace apl::frontend
