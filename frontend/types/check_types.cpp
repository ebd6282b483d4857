// Written types and sizes to terms.
#include <utility>

#include "frontend/types/checker.h"

namespace apl::frontend {

namespace {

constexpr Constraint kArrayElement{.first_order = true, .regular = true, .reason = "an array element"};

}  // namespace

Ty Checker::type_of_name(const Name& name) {
  if (name.qualifiers.empty()) {
    const auto found = type_names_.find(name.text);
    if (found != type_names_.end() && !found->second.empty()) return found->second.back();
    if (const auto scalar = find_module(name.text)) return store_.scalar(*scalar);
  }
  std::vector<std::string> names = module_names();
  for (const auto& [known, types] : type_names_)
    if (!types.empty()) names.push_back(known);
  report_unknown(Code::type_unknown_name, name.location, "Unknown type \"" + name.to_string() + "\"", name.to_string(),
                 std::move(names));
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
    if (!require(element, kArrayElement, type.location, "This array type is not possible")) return store_.error();
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
    const bool size_lifted = lifted || param.kind == TypeParam::Kind::size_lifted;
    const Constraint constraint{.first_order = !lifted, .regular = !size_lifted};
    const ParamId id = store_.add_param({.name = param.name,
                                         .location = param.location,
                                         .constraint = constraint,
                                         .lifted = lifted,
                                         .size_lifted = size_lifted,
                                         .level = level_});
    type_params->push_back(id);
    enter_type(param.name, store_.param(id));
  }
}

}  // namespace apl::frontend
