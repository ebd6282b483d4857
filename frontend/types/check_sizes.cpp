// Expressions as sizes. Numbers, names, +, - and * make polynomials; any other operation is kept as it is written,
// and is the same size as another one that is written the same. What binds names (lets, lambdas, loops) is no size.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "frontend/syntax/children.h"
#include "frontend/types/checker.h"

namespace apl::frontend {

namespace {

// Of names, numbers and operations in one size.
constexpr int kMaxSizeTerms = 32;

bool binds_names(const Expr& expr) {
  return std::holds_alternative<LambdaExpr>(expr.node) || std::holds_alternative<LetExpr>(expr.node) ||
         std::holds_alternative<LoopExpr>(expr.node) || std::holds_alternative<MatchExpr>(expr.node);
}

bool has_binding(const Expr& expr) {
  bool found = binds_names(expr);
  for_each_child(expr, [&](const Expr& child) { found = found || has_binding(child); });
  return found;
}

// What tells two operations on the same number of children apart, besides their alternative of Expr: names of fields,
// which parts are there.
struct OperationText {
  static std::string dims(const std::vector<IndexDim>& dims) {
    std::string text;
    for (const IndexDim& dim : dims) {
      text += dim.start ? "x" : "";
      if (dim.slice) text += std::string(":") + (dim.end ? "x" : "") + ":" + (dim.stride ? "x" : "");
      text += ",";
    }
    return "[" + text + "]";
  }
  static std::string steps(const std::vector<AccessStep>& steps) {
    std::string text;
    for (const AccessStep& step : steps) text += step.is_field ? "." + step.field : dims(step.dims);
    return text;
  }
  std::string operator()(const RecordExpr& e) const {
    std::string text;
    for (const auto& field : e.fields) text += field.name + ",";
    return text;
  }
  std::string operator()(const StringLiteral& e) const { return e.text; }
  std::string operator()(const IndexExpr& e) const { return dims(e.dims); }
  std::string operator()(const AccessSection& e) const { return steps(e.steps); }
  std::string operator()(const UpdateExpr& e) const { return steps(e.steps); }
  std::string operator()(const Section& e) const { return e.op.to_string() + (e.left ? "<" : e.right ? ">" : ""); }
  std::string operator()(const Infix& e) const { return e.op.to_string(); }
  std::string operator()(const ConstructorExpr& e) const { return e.name; }
  std::string operator()(const RangeExpr& e) const {
    return std::to_string(static_cast<int>(e.kind)) + (e.second ? ".." : "");
  }
  template <class Other>
  std::string operator()(const Other& /* its alternative says it all */) const {
    return "";
  }
};

}  // namespace

Size Checker::size_of_type(const Expr& expr) {
  const int errors = errors_;
  check(expr, store_.scalar(ScalarType::i64), "Size \"" + to_text(expr) + "\" does not have expected type");
  // What is wrong with the expression was said.
  if (errors_ != errors) return store_.size_variable(level_, expr.location);
  int budget = kMaxSizeTerms;
  if (auto size = as_size(expr, budget)) return *size;
  if (has_binding(expr))
    report(Code::type_size_mismatch, expr.location, "Size expression with binding is forbidden.");
  else
    report(Code::unsupported_construct, expr.location,
           "a size that has more than " + std::to_string(kMaxSizeTerms) +
               " parts or uses a polymorphic local function cannot be compiled yet; give it a name with 'let' before");
  return store_.size_variable(level_, expr.location);
}

// What a definition or a name of the prelude is called in sizes; of a local name itself.
std::optional<Size> Checker::size_of_name(const Resolution& resolution, const Expr& expr) {
  if (resolution.kind == Resolution::Kind::local) {
    // How a polymorphic local function is used is not kept.
    const auto scheme = local_schemes_.find(resolution.binder);
    if (scheme != local_schemes_.end() && !(scheme->second.params.empty() && scheme->second.sizes.empty()))
      return std::nullopt;
    return store_.name(resolution.binder);
  }
  SizeExpr name{.kind = SizeExpr::Kind::name, .text = {}, .identity = 0, .expr = &expr, .parts = {}, .fields = {}};
  if (resolution.kind == Resolution::Kind::global) {
    const Global& global = out_.globals[resolution.global];
    if (global.binder != kNoId) return store_.name(global.binder);
    name.text = global.definition->name;
    name.identity = resolution.global + std::uint64_t{1};
  } else if (resolution.kind == Resolution::Kind::prelude) {
    name.text = (resolution.module ? std::string(apl::to_text(*resolution.module)) + "." : "") + resolution.member;
  } else {
    return std::nullopt;
  }
  return store_.size_expr(std::move(name));
}

Size Checker::size_field(Size record, const std::string& field) {
  return store_.size_expr(
      {.kind = SizeExpr::Kind::field, .text = field, .identity = 0, .expr = nullptr, .parts = {record}, .fields = {}});
}

// An expression of type i64 as a size.
std::optional<Size> Checker::as_size(const Expr& expr, int& budget) {
  if (--budget < 0) return std::nullopt;
  if (const auto* number = std::get_if<NumberLiteral>(&expr.node)) {
    if (number->is_float || !number->too_large.empty() || number->integer > INT64_MAX) return std::nullopt;
    return store_.constant(static_cast<std::int64_t>(number->integer));
  }
  if (const auto* literal = std::get_if<Literal>(&expr.node)) {
    if (literal->value.type() != ScalarType::i64) return std::nullopt;
    return store_.constant(literal->value.as_int());
  }
  if (const auto* ascribe = std::get_if<Ascribe>(&expr.node)) return as_size(*ascribe->x, budget);
  if (const auto* attributed = std::get_if<Attributed>(&expr.node)) return as_size(*attributed->x, budget);
  if (const auto* assertion = std::get_if<AssertExpr>(&expr.node)) return as_size(*assertion->value, budget);
  if (const auto* variable = std::get_if<Variable>(&expr.node); variable && variable->name.qualifiers.empty()) {
    const auto resolution = resolve_simple(variable->name.text);
    if (!resolution) return std::nullopt;
    BinderId binder = kNoId;
    if (resolution->kind == Resolution::Kind::local) binder = resolution->binder;
    if (resolution->kind == Resolution::Kind::global) binder = out_.globals[resolution->global].binder;
    if (binder == kNoId) return std::nullopt;
    const Ty type = store_.binder(binder).type;
    if (!store_.get_if<TyVar>(type) && store_.as_scalar(type) != ScalarType::i64) return std::nullopt;
    return store_.name(binder);
  }
  if (const auto* infix = std::get_if<Infix>(&expr.node); infix && infix->op.qualifiers.empty()) {
    const std::string& op = infix->op.text;
    const auto resolution = op == "+" || op == "-" || op == "*" ? resolve_simple(op) : std::nullopt;
    if (resolution && resolution->kind == Resolution::Kind::prelude) {
      const auto x = as_size(*infix->x, budget);
      if (!x) return std::nullopt;
      const auto y = as_size(*infix->y, budget);
      if (!y) return std::nullopt;
      return store_.size_op(op[0], *x, *y);
    }
  }
  return as_size_part(expr, ++budget);
}

// An expression of any type as a part of a size, by what it does and what it does that to.
std::optional<Size> Checker::as_size_part(const Expr& expr, int& budget) {
  if (--budget < 0 || binds_names(expr)) return std::nullopt;
  if (const auto* attributed = std::get_if<Attributed>(&expr.node)) return as_size_part(*attributed->x, budget);
  if (const auto* ascribe = std::get_if<Ascribe>(&expr.node); ascribe && !ascribe->coerce)
    return as_size_part(*ascribe->x, budget);
  if (const auto* open = std::get_if<LocalOpen>(&expr.node)) {
    const ModulePtr module = find_opened(open->module);
    if (!module) return std::nullopt;
    Scope scope(*this);
    const std::size_t opened = open_modules_.size();
    open_module(*module);
    const auto size = as_size_part(*open->body, budget);
    open_modules_.resize(opened);
    return size;
  }
  if (const auto* number = std::get_if<NumberLiteral>(&expr.node))
    return store_.size_expr({.kind = SizeExpr::Kind::literal,
                             .text = number->is_float ? fmt::format("{}", number->real) : to_text(expr),
                             .identity = 0,
                             .expr = &expr,
                             .parts = {},
                             .fields = {}});
  if (const auto* literal = std::get_if<Literal>(&expr.node)) {
    if (literal->value.type() == ScalarType::i64) return store_.constant(literal->value.as_int());
    return store_.size_expr({.kind = SizeExpr::Kind::literal,
                             .text = to_text(expr),
                             .identity = 0,
                             .expr = &expr,
                             .parts = {},
                             .fields = {}});
  }
  if (const auto* variable = std::get_if<Variable>(&expr.node)) {
    const Name& name = variable->name;
    std::optional<Resolution> resolution = resolve_quietly(name);
    auto size = resolution ? size_of_name(*resolution, expr) : std::nullopt;
    for (std::size_t k = 0; size && resolution && k < resolution->fields.size(); ++k)
      size = size_field(*size, resolution->fields[k]);
    return size;
  }
  if (const auto* project = std::get_if<Project>(&expr.node)) {
    const auto record = as_size_part(*project->record, budget);
    return record ? std::optional(size_field(*record, project->field)) : std::nullopt;
  }
  SizeExpr result{.kind = SizeExpr::Kind::other,
                  .text = std::visit(OperationText{}, expr.node),
                  .identity = expr.node.index(),
                  .expr = &expr,
                  .parts = {},
                  .fields = {}};
  const auto* infix = std::get_if<Infix>(&expr.node);
  const auto* section = std::get_if<Section>(&expr.node);
  if (infix || section) {
    const auto resolution = resolve_quietly(infix ? infix->op : section->op);
    if (!resolution || !resolution->fields.empty()) return std::nullopt;
    if (section && !section->left && !section->right) return size_of_name(*resolution, expr);
    // Not each operator is a function of its operands: `&&` may not look at its second one.
    const bool lazy = resolution->entry &&
                      (resolution->entry->builtin == Builtin::both || resolution->entry->builtin == Builtin::either);
    if (infix && !lazy) {
      const auto op = size_of_name(*resolution, expr);
      if (!op) return std::nullopt;
      result.kind = SizeExpr::Kind::call;
      result.text.clear();
      result.identity = 0;
      result.parts.push_back(*op);
    } else if (resolution->kind != Resolution::Kind::prelude) {
      return std::nullopt;
    }
  } else if (std::holds_alternative<Call>(expr.node)) {
    result.kind = SizeExpr::Kind::call;
    result.identity = 0;
  }
  if (const auto* record = std::get_if<RecordExpr>(&expr.node))
    for (const auto& field : record->fields) result.fields.push_back(field.name);
  if (const auto* tuple = std::get_if<TupleExpr>(&expr.node))
    for (std::size_t k = 0; k < tuple->elements.size(); ++k) result.fields.push_back(std::to_string(k));
  bool all = true;
  for_each_child(expr, [&](const Expr& child) {
    const auto part = all ? as_size_part(child, budget) : std::nullopt;
    all = part.has_value();
    if (part) result.parts.push_back(*part);
  });
  return all ? std::optional(store_.size_expr(std::move(result))) : std::nullopt;
}

void Checker::warn_of_binding(const Expr& size) {
  if (has_binding(size))
    warn(Code::warning_no_effect, size.location, "Size expression with binding is replaced by unknown size.");
}

Size Checker::size_of_argument(const Expr& argument, Ty type) {
  int budget = kMaxSizeTerms;
  const bool number = store_.as_scalar(type) == ScalarType::i64;
  if (auto size = number ? as_size(argument, budget) : as_size_part(argument, budget)) return *size;
  warn_of_binding(argument);
  const BinderId binder = store_.add_binder({.kind = Binder::Kind::unknown_size,
                                             .name = to_text(argument),
                                             .location = argument.location,
                                             .level = level_,
                                             .type = type});
  out_.argument_sizes[argument.id] = binder;
  return store_.name(binder);
}

}  // namespace apl::frontend
