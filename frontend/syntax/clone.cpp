#include "frontend/syntax/clone.h"

#include <utility>

namespace apl::frontend {

namespace {

class Cloner {
 public:
  explicit Cloner(Program& program) : program_(program) {}

  ModuleLambda operator()(const ModuleLambda& e) {
    return {{e.param.name, e.param.location, (*this)(e.param.type)}, (*this)(e.result), (*this)(e.body)};
  }

 private:
  template <class T>
  std::vector<T> operator()(const std::vector<T>& items) {
    std::vector<T> result;
    result.reserve(items.size());
    for (const T& item : items) result.push_back((*this)(item));
    return result;
  }
  template <class T>
  Field<T> operator()(const Field<T>& field) {
    return {field.name, field.location, (*this)(field.value)};
  }

  // ---- types
  TypeExprPtr operator()(const TypeExprPtr& type) {
    if (!type) return nullptr;
    auto result = std::make_unique<TypeExpr>();
    result->location = type->location;
    std::visit([&](const auto& node) { result->node = (*this)(node); }, type->node);
    return result;
  }
  TypeName operator()(const TypeName& t) { return t; }
  TypeTuple operator()(const TypeTuple& t) { return {(*this)(t.elements)}; }
  TypeRecord operator()(const TypeRecord& t) { return {(*this)(t.fields)}; }
  TypeArray operator()(const TypeArray& t) { return {(*this)(t.size), (*this)(t.element)}; }
  TypeArrow operator()(const TypeArrow& t) { return {t.param, t.param_location, (*this)(t.from), (*this)(t.to)}; }
  TypeUnique operator()(const TypeUnique& t) { return {(*this)(t.type)}; }
  TypeArgumentExpr operator()(const TypeArgumentExpr& t) {
    return {t.is_size, (*this)(t.size), (*this)(t.type), t.location};
  }
  TypeApply operator()(const TypeApply& t) { return {t.name, (*this)(t.arguments)}; }
  SumConstructor operator()(const SumConstructor& t) { return {t.name, t.location, (*this)(t.payload)}; }
  TypeSum operator()(const TypeSum& t) { return {(*this)(t.constructors)}; }
  TypeExists operator()(const TypeExists& t) { return {t.sizes, (*this)(t.type)}; }

  // ---- patterns
  PatternPtr operator()(const PatternPtr& pattern) {
    if (!pattern) return nullptr;
    auto result = std::make_unique<Pattern>();
    result->location = pattern->location;
    result->id = program_.pattern_count++;
    std::visit([&](const auto& node) { result->node = (*this)(node); }, pattern->node);
    return result;
  }
  PatternName operator()(const PatternName& p) { return p; }
  PatternWildcard operator()(const PatternWildcard& p) { return p; }
  PatternTuple operator()(const PatternTuple& p) { return {(*this)(p.elements)}; }
  PatternRecord operator()(const PatternRecord& p) { return {(*this)(p.fields)}; }
  PatternTyped operator()(const PatternTyped& p) { return {(*this)(p.pattern), (*this)(p.type)}; }
  PatternLiteral operator()(const PatternLiteral& p) { return {(*this)(p.value)}; }
  PatternConstructor operator()(const PatternConstructor& p) { return {p.name, (*this)(p.payload)}; }

  // ---- expressions
  ExprPtr operator()(const ExprPtr& expr) {
    if (!expr) return nullptr;
    auto result = std::make_unique<Expr>();
    result->location = expr->location;
    result->id = program_.expr_count++;
    result->depth = expr->depth;
    std::visit([&](const auto& node) { result->node = (*this)(node); }, expr->node);
    return result;
  }
  Literal operator()(const Literal& e) { return e; }
  NumberLiteral operator()(const NumberLiteral& e) { return e; }
  StringLiteral operator()(const StringLiteral& e) { return e; }
  Variable operator()(const Variable& e) { return e; }
  TupleExpr operator()(const TupleExpr& e) { return {(*this)(e.elements)}; }
  RecordExpr operator()(const RecordExpr& e) { return {(*this)(e.fields)}; }
  ArrayExpr operator()(const ArrayExpr& e) { return {(*this)(e.elements)}; }
  Project operator()(const Project& e) { return {(*this)(e.record), e.field}; }
  LocalOpen operator()(const LocalOpen& e) { return {e.module, (*this)(e.body)}; }
  IndexDim operator()(const IndexDim& d) {
    return {(*this)(d.start), (*this)(d.end), (*this)(d.stride), d.slice, d.location};
  }
  IndexExpr operator()(const IndexExpr& e) { return {(*this)(e.array), (*this)(e.dims)}; }
  Call operator()(const Call& e) { return {(*this)(e.function), (*this)(e.arguments)}; }
  Negate operator()(const Negate& e) { return {(*this)(e.x)}; }
  Not operator()(const Not& e) { return {(*this)(e.x)}; }
  Infix operator()(const Infix& e) { return {e.op, (*this)(e.x), (*this)(e.y)}; }
  Section operator()(const Section& e) { return {e.op, (*this)(e.left), (*this)(e.right)}; }
  AccessStep operator()(const AccessStep& s) { return {s.field, (*this)(s.dims), s.is_field, s.location}; }
  AccessSection operator()(const AccessSection& e) { return {(*this)(e.steps)}; }
  LambdaExpr operator()(const LambdaExpr& e) { return {(*this)(e.params), (*this)(e.result), (*this)(e.body)}; }
  IfExpr operator()(const IfExpr& e) {
    IfExpr result;
    for (const IfArm& arm : e.arms) result.arms.push_back({(*this)(arm.condition), (*this)(arm.value)});
    result.else_value = (*this)(e.else_value);
    return result;
  }
  LetPattern operator()(const LetPattern& e) { return {e.sizes, (*this)(e.pattern), (*this)(e.value)}; }
  LetFunction operator()(const LetFunction& e) {
    return {e.name, e.type_params, (*this)(e.params), (*this)(e.result), (*this)(e.body)};
  }
  LetUpdate operator()(const LetUpdate& e) { return {e.name, (*this)(e.steps), (*this)(e.value)}; }
  LetBinding operator()(const LetBinding& binding) {
    LetBinding result;
    result.location = binding.location;
    result.id = program_.expr_count++;
    std::visit([&](const auto& node) { result.node = (*this)(node); }, binding.node);
    return result;
  }
  LetExpr operator()(const LetExpr& e) { return {(*this)(e.bindings), (*this)(e.body)}; }
  ForLess operator()(const ForLess& f) { return {f.name, f.location, program_.pattern_count++, (*this)(f.bound)}; }
  ForIn operator()(const ForIn& f) { return {(*this)(f.pattern), (*this)(f.array)}; }
  While operator()(const While& f) { return {(*this)(f.condition)}; }
  LoopExpr operator()(const LoopExpr& e) {
    LoopExpr result;
    result.pattern = (*this)(e.pattern);
    result.initial = (*this)(e.initial);
    std::visit([&](const auto& form) { result.form = (*this)(form); }, e.form);
    result.body = (*this)(e.body);
    return result;
  }
  Ascribe operator()(const Ascribe& e) { return {(*this)(e.x), (*this)(e.type), e.coerce}; }
  RangeExpr operator()(const RangeExpr& e) { return {(*this)(e.start), (*this)(e.second), (*this)(e.end), e.kind}; }
  UpdateExpr operator()(const UpdateExpr& e) { return {(*this)(e.source), (*this)(e.steps), (*this)(e.value)}; }
  AssertExpr operator()(const AssertExpr& e) { return {(*this)(e.condition), (*this)(e.value)}; }
  Attributed operator()(const Attributed& e) { return {e.attribute, (*this)(e.x)}; }
  ConstructorExpr operator()(const ConstructorExpr& e) { return {e.name, (*this)(e.arguments)}; }
  MatchCase operator()(const MatchCase& c) { return {(*this)(c.pattern), (*this)(c.body), c.location}; }
  MatchExpr operator()(const MatchExpr& e) { return {(*this)(e.x), (*this)(e.cases)}; }
  Hole operator()(const Hole& e) { return e; }

  // ---- declarations
  Definition operator()(const Definition& d) {
    return {d.entry, d.name, d.name_location, d.type_params, (*this)(d.params), (*this)(d.result), (*this)(d.body)};
  }
  TypeDefinition operator()(const TypeDefinition& d) {
    return {d.liftedness, d.name, d.name_location, d.params, (*this)(d.type)};
  }
  ModuleDefinition operator()(const ModuleDefinition& d) { return {d.name, d.name_location, (*this)(d.body)}; }
  ModuleTypeDefinition operator()(const ModuleTypeDefinition& d) { return {d.name, d.name_location, (*this)(d.type)}; }
  OpenDeclaration operator()(const OpenDeclaration& d) { return {(*this)(d.module)}; }
  Declaration operator()(const Declaration& declaration) {
    Declaration result;
    result.location = declaration.location;
    result.local = declaration.local;
    result.attributes = declaration.attributes;
    std::visit([&](const auto& node) { result.node = (*this)(node); }, declaration.node);
    return result;
  }

  // ---- modules
  ModuleExprPtr operator()(const ModuleExprPtr& module) {
    if (!module) return nullptr;
    auto result = std::make_unique<ModuleExpr>();
    result->location = module->location;
    std::visit([&](const auto& node) { result->node = (*this)(node); }, module->node);
    return result;
  }
  Name operator()(const Name& name) { return name; }
  ModuleBody operator()(const ModuleBody& e) { return {(*this)(e.declarations)}; }
  ModuleImport operator()(const ModuleImport& e) { return e; }
  ModuleAscribe operator()(const ModuleAscribe& e) { return {(*this)(e.module), (*this)(e.type)}; }
  ModuleApply operator()(const ModuleApply& e) { return {(*this)(e.function), (*this)(e.argument)}; }

  // ---- module types
  ModuleTypePtr operator()(const ModuleTypePtr& type) {
    if (!type) return nullptr;
    auto result = std::make_unique<ModuleTypeExpr>();
    result->location = type->location;
    std::visit([&](const auto& node) { result->node = (*this)(node); }, type->node);
    return result;
  }
  SpecBody operator()(const SpecBody& t) { return {(*this)(t.specs)}; }
  ModuleTypeWith operator()(const ModuleTypeWith& t) { return {(*this)(t.base), t.type, t.params, (*this)(t.to)}; }
  ModuleTypeArrow operator()(const ModuleTypeArrow& t) { return {t.param, (*this)(t.from), (*this)(t.to)}; }
  ValueSpec operator()(const ValueSpec& s) { return {s.name, s.name_location, s.type_params, (*this)(s.type)}; }
  ModuleSpec operator()(const ModuleSpec& s) { return {s.name, (*this)(s.type)}; }
  IncludeSpec operator()(const IncludeSpec& s) { return {(*this)(s.type)}; }
  Spec operator()(const Spec& spec) {
    Spec result;
    result.location = spec.location;
    std::visit([&](const auto& node) { result.node = (*this)(node); }, spec.node);
    return result;
  }

  Program& program_;
};

}  // namespace

ModuleLambda clone(const ModuleLambda& lambda, Program& program) { return Cloner(program)(lambda); }

}  // namespace apl::frontend
