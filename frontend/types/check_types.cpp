// Written types and sizes to terms.
#include <utility>

#include "frontend/types/checker.h"

namespace apl::frontend {

namespace {

constexpr Constraint kElement{.first_order = true, .reason = "an array element"};
// Of names, numbers and operators in one size.
constexpr int kMaxSizeTerms = 32;

}  // namespace

Ty Checker::type_of_name(const Name& name) {
  if (name.qualifiers.empty()) {
    const auto found = type_names_.find(name.text);
    if (found != type_names_.end() && !found->second.empty()) return found->second.back();
    if (const auto scalar = find_module(name.text)) return store_.scalar(*scalar);
  }
  report(Code::type_unknown_name, name.location, "Unknown type \"" + name.to_string() + "\"");
  return store_.error();
}

Ty Checker::type_of(const TypeExpr& type) {
  if (const auto* name = std::get_if<TypeName>(&type.node)) return type_of_name(name->name);
  if (const auto* unique = std::get_if<TypeUnique>(&type.node)) {
    const Ty result = type_of(*unique->type);
    bool shares = false;
    store_.walk(
        result,
        [&](Ty, const TyNode& node) {
          shares = shares || std::holds_alternative<TyArray>(node) || std::holds_alternative<TyParam>(node);
        },
        [](Size, const SizeNode&) {});
    if (!shares && !store_.get_if<TyError>(result))
      warn(Code::warning_no_effect, type.location,
           "Declaring \"" + store_.to_text(result) + "\" as unique has no effect.");
    return result;
  }
  if (const auto* tuple = std::get_if<TypeTuple>(&type.node)) {
    std::vector<Ty> elements;
    for (const TypeExprPtr& element : tuple->elements) elements.push_back(type_of(*element));
    return store_.tuple(elements);
  }
  if (const auto* record = std::get_if<TypeRecord>(&type.node)) {
    Names names;
    std::vector<std::pair<std::string, Ty>> fields;
    for (const auto& field : record->fields) {
      const Ty field_type = type_of(*field.value);
      if (claim_field(names, field.name, field.location, "record type")) fields.emplace_back(field.name, field_type);
    }
    return store_.record(std::move(fields));
  }
  if (const auto* array = std::get_if<TypeArray>(&type.node)) {
    const Size size = array->size ? size_of_type(*array->size) : store_.size_variable(level_, type.location);
    const Ty element = type_of(*array->element);
    if (!require(element, kElement, type.location, "This array type is not possible")) return store_.error();
    return store_.array(size, element);
  }
  if (const auto* arrow = std::get_if<TypeArrow>(&type.node)) {
    Scope scope(*this);
    const Ty from = type_of(*arrow->from);
    ++level_;
    BinderId param = kNoId;
    if (!arrow->param.empty()) param = bind(arrow->param, arrow->param_location, from);
    // `[]` in a result is a size that only the function knows.
    std::vector<BinderId> unknown;
    const Ty to = with_sizes(type_of(*arrow->to), [&](Size size) {
      if (!store_.get_if<SizeVar>(size)) return size;
      unknown.push_back(store_.add_binder({.kind = Binder::Kind::unknown_size,
                                           .name = "this result",
                                           .location = arrow->to->location,
                                           .level = level_,
                                           .type = store_.scalar(ScalarType::i64)}));
      return store_.name(unknown.back());
    });
    return store_.arrow(from, to, param != kNoId && store_.mentions(to, param) ? param : kNoId, std::move(unknown));
  }
  const auto& unsupported = std::get<TypeUnsupported>(type.node);
  report(Code::unsupported_construct, type.location, unsupported.what + " cannot be compiled yet");
  return store_.error();
}

Size Checker::size_of_type(const Expr& expr) {
  check(expr, store_.scalar(ScalarType::i64), "This size does not have expected type");
  int budget = kMaxSizeTerms;
  if (auto size = as_size(expr, budget)) return *size;
  report(Code::unsupported_construct, expr.location,
         "a size must be made of names, numbers, +, - and *; \"" + to_text(expr) + "\" cannot be compiled yet");
  return store_.size_variable(level_, expr.location);
}

std::optional<Size> Checker::as_size(const Expr& expr, int& budget) {
  if (--budget < 0) return std::nullopt;
  if (const auto* number = std::get_if<NumberLiteral>(&expr.node)) {
    if (number->is_float || number->integer > INT64_MAX) return std::nullopt;
    return store_.constant(static_cast<std::int64_t>(number->integer));
  }
  if (const auto* literal = std::get_if<Literal>(&expr.node)) {
    if (literal->value.type() != ScalarType::i64) return std::nullopt;
    return store_.constant(literal->value.as_int());
  }
  if (const auto* ascribe = std::get_if<Ascribe>(&expr.node)) return as_size(*ascribe->x, budget);
  if (const auto* attributed = std::get_if<Attributed>(&expr.node)) return as_size(*attributed->x, budget);
  if (const auto* assertion = std::get_if<AssertExpr>(&expr.node)) return as_size(*assertion->value, budget);
  if (const auto* variable = std::get_if<Variable>(&expr.node)) {
    if (!variable->name.qualifiers.empty()) return std::nullopt;
    const auto resolution = resolve_simple(variable->name.text);
    if (!resolution) return std::nullopt;
    BinderId binder = kNoId;
    if (resolution->kind == Resolution::Kind::local) binder = resolution->binder;
    if (resolution->kind == Resolution::Kind::global) binder = out_.globals[resolution->global].binder;
    if (binder == kNoId) return std::nullopt;
    const Ty type = store_.binder(binder).type;
    if (!store_.get_if<TyVar>(type) && store_.as_scalar(type) != ScalarType::i64) return std::nullopt;
    store_.binder(binder).used_as_size = true;
    return store_.name(binder);
  }
  if (const auto* infix = std::get_if<Infix>(&expr.node)) {
    const std::string& op = infix->op.text;
    if (op != "+" && op != "-" && op != "*") return std::nullopt;
    const auto resolution = resolve_simple(op);
    if (!infix->op.qualifiers.empty() || !resolution || resolution->kind != Resolution::Kind::prelude)
      return std::nullopt;
    const auto x = as_size(*infix->x, budget);
    if (!x) return std::nullopt;
    const auto y = as_size(*infix->y, budget);
    if (!y) return std::nullopt;
    return store_.size_op(op[0], *x, *y);
  }
  return std::nullopt;
}

Size Checker::size_of_argument(const Expr& argument) {
  int budget = kMaxSizeTerms;
  if (auto size = as_size(argument, budget)) return *size;
  const BinderId binder = store_.add_binder({.kind = Binder::Kind::unknown_size,
                                             .name = to_text(argument),
                                             .location = argument.location,
                                             .level = level_,
                                             .type = store_.scalar(ScalarType::i64)});
  out_.argument_sizes[argument.id] = binder;
  return store_.name(binder);
}

void Checker::enter_type_params(const std::vector<TypeParam>& params, Names& names, std::vector<ParamId>* type_params,
                                std::vector<BinderId>* sizes) {
  for (const TypeParam& param : params) {
    // Sizes and types do not share names, but a name is bound once in each.
    const bool is_size = param.kind == TypeParam::Kind::size;
    if (!claim(names, is_size ? param.name : "'" + param.name, param.location)) continue;
    if (is_size) {
      sizes->push_back(bind(param.name, param.location, store_.scalar(ScalarType::i64), Binder::Kind::size_param));
      continue;
    }
    const bool lifted = param.kind == TypeParam::Kind::lifted;
    const Constraint constraint{.first_order = !lifted};
    const ParamId id =
        store_.add_param({.name = param.name, .location = param.location, .constraint = constraint, .lifted = lifted});
    type_params->push_back(id);
    enter_type(param.name, store_.param(id));
  }
}

}  // namespace apl::frontend
