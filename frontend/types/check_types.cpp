// Written types and sizes to terms.
#include <algorithm>
#include <utility>

#include "frontend/types/checker.h"

namespace apl::frontend {

namespace {

constexpr Constraint kArrayElement{.first_order = true, .regular = true, .reason = "an array element"};
constexpr std::size_t kMaxShownType = 200;
// As many as a tag of type u8 tells apart.
constexpr std::size_t kMaxConstructors = 256;

}  // namespace

TypeBindingPtr Checker::find_type(const Name& name) const {
  if (name.qualifiers.empty()) {
    if (TypeBindingPtr type = scope_.type(name.text)) return type;
    const auto scalar = find_module(name.text);
    if (!scalar) return nullptr;
    TypeBinding binding;
    binding.function.body = store_.scalar(*scalar);
    return std::make_shared<const TypeBinding>(std::move(binding));
  }
  const ModulePtr module = scope_.module(name.qualifiers, name.qualifiers.size());
  if (!module) return nullptr;
  if (const auto found = module->members.types.find(name.text); found != module->members.types.end())
    return found->second;
  if (!module->wrong && !(module->scalar && (name.text == "t" || name.text == "int_t"))) return nullptr;
  TypeBinding binding;
  binding.function.body =
      module->wrong ? store_.error() : store_.scalar(name.text == "t" ? *module->scalar : bits_type(*module->scalar));
  return std::make_shared<const TypeBinding>(std::move(binding));
}

// The arguments for the parameters of a type; nullopt where they do not fit, after saying so.
std::optional<TypeMap> Checker::type_arguments(const TypeBinding& binding, const Name& name,
                                               const std::vector<TypeArgumentExpr>& arguments, Location location) {
  const auto& params = binding.function.params;
  if (params.size() != arguments.size()) {
    report(Code::type_mismatch, location,
           "Type constructor \"" + name.to_string() + "\" requires " + std::to_string(params.size()) +
               (params.size() == 1 ? " argument" : " arguments") + ", but " + std::to_string(arguments.size()) +
               (arguments.size() == 1 ? " is" : " are") + " given");
    return std::nullopt;
  }
  TypeMap map;
  for (std::size_t k = 0; k < params.size(); ++k) {
    const TypeArgumentExpr& argument = arguments[k];
    if (params[k].is_size != argument.is_size) {
      report(Code::type_mismatch, argument.location,
             "Argument " + std::to_string(k + 1) + " of type constructor \"" + name.to_string() + "\" must be a " +
                 (params[k].is_size ? "size in brackets" : "type"));
      return std::nullopt;
    }
    if (argument.is_size) {
      map.sizes.emplace(params[k].size,
                        argument.size ? size_of_type(*argument.size) : store_.size_variable(level_, argument.location));
      continue;
    }
    map.params.emplace(params[k].type, type_of(*argument.type));
  }
  return map;
}

Ty Checker::type_of_name(const TypeExpr& type, const Name& name, const std::vector<TypeArgumentExpr>& arguments) {
  const TypeBindingPtr binding = find_type(name);
  if (!binding) {
    std::vector<std::string> names = module_names();
    for (const auto& [known, type] : scope_.visible().types) names.push_back(known);
    report_unknown(Code::type_unknown_name, name.location, "Unknown type \"" + name.to_string() + "\"",
                   name.to_string(), std::move(names));
    return store_.error();
  }
  if (binding->written) out_.abbreviations.emplace(&type, binding->written);
  const bool plain = arguments.empty() && binding->function.params.empty() && binding->existential.empty();
  if (plain || store_.get_if<TyError>(binding->function.body)) return binding->function.body;
  auto map = type_arguments(*binding, name, arguments, type.location);
  if (!map) return store_.error();
  for (BinderId size : binding->existential) {
    const Size variable = store_.size_variable(level_, type.location);
    named_existentials_.insert(variable.id);  // its own definition was looked at
    map->sizes.emplace(size, variable);
  }
  return store_.substitute(binding->function.body, *map);
}

Ty Checker::type_of_record(const TypeRecord& record) {
  Names names;
  std::vector<std::pair<std::string, Ty>> fields;
  for (const auto& field : record.fields) {
    const Ty field_type = type_of(*field.value);
    if (claim_field(names, field.name, field.location, "record type")) fields.emplace_back(field.name, field_type);
  }
  return store_.record(std::move(fields));
}

Ty Checker::type_of_sum(const TypeSum& sum) {
  Names names;
  std::vector<std::pair<std::string, std::vector<Ty>>> constructors;
  for (const SumConstructor& constructor : sum.constructors) {
    std::vector<Ty> payload;
    for (const TypeExprPtr& part : constructor.payload) payload.push_back(type_of(*part));
    if (names.insert(constructor.name).second)
      constructors.emplace_back(constructor.name, std::move(payload));
    else
      report(Code::syntax_error, constructor.location,
             "Duplicate constructors in sum type: \"#" + constructor.name + "\" was previously defined");
  }
  if (constructors.size() > kMaxConstructors) {
    report(Code::type_mismatch, sum.constructors.front().location,
           "Sum types must have less than " + std::to_string(kMaxConstructors + 1) + " constructors.");
    return store_.error();
  }
  return store_.sum(std::move(constructors));
}

Ty Checker::type_of_arrow(const TypeArrow& arrow) {
  Scope scope(*this);
  const auto before = std::ranges::find(arrow_params_, arrow.param, &std::pair<std::string, Location>::first);
  if (!arrow.param.empty() && before != arrow_params_.end())
    report(Code::syntax_error, arrow.param_location,
           "Name \"" + arrow.param + "\" also bound at " + std::to_string(before->second.line) + ":" +
               std::to_string(before->second.column) + ", in the same function type");
  arrow_params_.emplace_back(arrow.param, arrow.param_location);
  const Ty from = type_of(*arrow.from);
  ++level_;
  BinderId param = kNoId;
  if (!arrow.param.empty()) param = bind(arrow.param, arrow.param_location, from);
  // `[]` in a result is a size that only the function knows.
  std::vector<BinderId> unknown;
  std::unordered_map<std::uint32_t, Size> known;
  const std::uint32_t level = level_;
  Ty to = with_sizes(type_of(*arrow.to), [&](Size size) {
    const auto* open = store_.get_if<SizeVar>(size);
    if (open == nullptr || open->level < level) return size;
    const std::uint32_t id = store_.find(size).id;
    if (const auto before = known.find(id); before != known.end()) return before->second;
    unknown.push_back(store_.add_binder({.kind = Binder::Kind::unknown_size,
                                         .name = "this result",
                                         .location = arrow.to->location,
                                         .level = level_,
                                         .type = store_.scalar(ScalarType::i64)}));
    return known.emplace(id, store_.name(unknown.back())).first->second;
  });
  arrow_params_.pop_back();
  TypeMap inner;  // sizes that are computed from those
  for (const auto& [id, name] : known) inner.size_variables.emplace(id, name);
  to = store_.substitute(to, inner);
  return store_.arrow(from, to, param != kNoId && store_.mentions(to, param) ? param : kNoId, std::move(unknown));
}

// `?[n].t` is t with sizes that nothing else says, each the same wherever it stands.
Ty Checker::type_of_exists(const TypeExists& exists) {
  const std::uint32_t level = level_;
  Scope scope(*this);
  TypeMap open;
  Names names;
  std::vector<BinderId> sizes;
  std::vector<ParamId> no_types;
  enter_type_params(exists.sizes, names, &no_types, &sizes);
  const Ty type = type_of(*exists.type);
  std::unordered_set<BinderId> mentioned;
  store_.mentioned(type, mentioned);
  const std::unordered_set<BinderId> constructive = sizes_of({type});
  for (BinderId size : sizes) {
    const Binder& binder = store_.binder(size);
    if (!mentioned.contains(size))
      report(Code::type_ambiguous, binder.location, "Existential size \"" + binder.name + "\" is not used in the type");
    else if (!constructive.contains(size) && !store_.contains_function(type))
      report(Code::type_ambiguous, binder.location,
             "Existential size \"" + binder.name + "\" is not used constructively: it is the size of no array");
    const Size variable = store_.size_variable(level, binder.location);
    named_existentials_.insert(variable.id);
    open.sizes.emplace(size, variable);
  }
  return store_.substitute(type, open);
}

Ty Checker::type_of(const TypeExpr& type) {
  if (const auto* unique = std::get_if<TypeUnique>(&type.node)) {
    const Ty result = type_of(*unique->type);
    bool shares = false;
    store_.walk(
        result,
        [&](Ty, const TyNode& node) {
          shares = shares || std::holds_alternative<TyArray>(node) || std::holds_alternative<TyParam>(node) ||
                   std::holds_alternative<TyAbstract>(node);
        },
        [](Size, const SizeNode&) {});
    if (!shares && !store_.get_if<TyError>(result))
      warn(Code::warning_no_effect, type.location,
           "Declaring \"" + store_.to_text(result) + "\" as unique has no effect.");
    return result;
  }
  return type_of_node(type);
}

Ty Checker::type_of_node(const TypeExpr& type) {
  if (const auto* name = std::get_if<TypeName>(&type.node)) return type_of_name(type, name->name, {});
  if (const auto* apply = std::get_if<TypeApply>(&type.node)) return type_of_name(type, apply->name, apply->arguments);
  if (const auto* record = std::get_if<TypeRecord>(&type.node)) return type_of_record(*record);
  if (const auto* sum = std::get_if<TypeSum>(&type.node)) return type_of_sum(*sum);
  if (const auto* arrow = std::get_if<TypeArrow>(&type.node)) return type_of_arrow(*arrow);
  if (const auto* exists = std::get_if<TypeExists>(&type.node)) return type_of_exists(*exists);
  if (const auto* tuple = std::get_if<TypeTuple>(&type.node)) {
    std::vector<Ty> elements;
    for (const TypeExprPtr& element : tuple->elements) elements.push_back(type_of(*element));
    return store_.tuple(elements);
  }
  const auto& array = std::get<TypeArray>(type.node);
  const Size size = array.size ? size_of_type(*array.size) : store_.size_variable(level_, type.location);
  const Ty element = type_of(*array.element);
  const TypeExpr* inner = array.element.get();
  while (const auto* unique = std::get_if<TypeUnique>(&inner->node)) inner = unique->type.get();
  const auto* name = std::get_if<TypeName>(&inner->node);
  if (const TypeBindingPtr binding = name ? find_type(name->name) : nullptr;
      binding && binding->liftedness != Liftedness::unlifted && !store_.get_if<TyError>(element)) {
    report(Code::type_mismatch, type.location,
           "Cannot create array of this type: \"" + name->name.to_string() + "\" is declared " +
               (binding->liftedness == Liftedness::lifted ? "lifted: it might contain functions" : "size-lifted") +
               ", and is no array's element");
    return store_.error();
  }
  const std::string what = store_.contains_function(element) && store_.tree_size(element) <= kMaxShownType
                               ? "Cannot create array with elements of lifted type " + store_.to_text(element)
                               : "Cannot create array of this type";
  if (!require(element, kArrayElement, type.location, what)) return store_.error();
  return store_.array(size, element);
}

void Checker::enter_type_params(const std::vector<TypeParam>& params, Names& names, std::vector<ParamId>* type_params,
                                std::vector<BinderId>* sizes) {
  for (const TypeParam& param : params) {
    // Sizes and types do not share names, but a name is bound once in each.
    const bool is_size = param.kind == TypeParam::Kind::size;
    if (!is_size && names.contains("'" + param.name)) {
      report(
          Code::syntax_error, param.location,
          "Type parameter \"'" + param.name + "\" is also bound elsewhere in the same list: it was previously defined");
      continue;
    }
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
