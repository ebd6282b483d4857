// Module expressions, and the application of parametric modules.
#include <utility>

#include "frontend/modules/modules.h"
#include "frontend/syntax/clone.h"

namespace apl::frontend {

namespace {

// Each application copies a body, which may apply others.
constexpr int kMaxApplications = 20000;
constexpr int kMaxDepthOfModules = 100;
constexpr std::uint32_t kMaxExpressions = 5000000;

}  // namespace

ModulePtr Modules::wrong() {
  ModuleValue value;
  value.wrong = true;
  return std::make_shared<const ModuleValue>(std::move(value));
}

ModulePtr Modules::module(const ModuleExpr& expr) {
  if (const auto* name = std::get_if<Name>(&expr.node)) return named(*name);
  if (const auto* body = std::get_if<ModuleBody>(&expr.node)) {
    Checker::Scope scope(checker_);
    ModuleValue value;
    const bool outer = std::exchange(in_module_, true);
    value.members = declarations(body->declarations, false);
    in_module_ = outer;
    return std::make_shared<const ModuleValue>(std::move(value));
  }
  if (const auto* import = std::get_if<ModuleImport>(&expr.node))
    return import->file && *import->file < files_.size() ? files_[*import->file] : wrong();
  if (const auto* ascribe = std::get_if<ModuleAscribe>(&expr.node)) {
    const ModulePtr value = module(*ascribe->module);
    return coerce(value, interface(*ascribe->type), true, expr.location);
  }
  if (const auto* application = std::get_if<ModuleApply>(&expr.node)) {
    const ModulePtr function = module(*application->function);
    const ModulePtr argument = module(*application->argument);
    return apply(function, argument, expr.location);
  }
  return lambda(std::get<ModuleLambda>(expr.node), expr.location);
}

ModulePtr Modules::named(const Name& name) {
  std::vector<std::string> path = name.qualifiers;
  path.push_back(name.text);
  ModulePtr found = checker_.scope_.module(path, path.size());
  const auto intrinsics =
      prelude_ ? prelude_->modules.find("intrinsics") : std::map<std::string, ModulePtr>::iterator();
  const bool forbidden = found && prelude_ && intrinsics != prelude_->modules.end() && found == intrinsics->second;
  if (found && !forbidden) return found;
  if (forbidden)
    report(Code::type_unknown_name, name.location, "The 'intrinsics' module may not be used in module expressions.");
  else
    report(Code::type_unknown_name, name.location, "Unknown module \"" + name.to_string() + "\"");
  return wrong();
}

// The members of a module of the prelude, for those who open it.
Environment Modules::scalar_members(ScalarType type) const {
  Environment result;
  const auto member = [&](const std::string& name) {
    if (const PreludeEntry* entry = find_member(type, name))
      result.values.emplace(name,
                            Target{.kind = Resolution::Kind::prelude, .entry = entry, .module = type, .member = name});
  };
  each_member_name([&](std::string_view name) { member(std::string(name)); });
  const auto alias = [&](const std::string& name, ScalarType scalar) {
    TypeBinding binding;
    binding.function.body = store_.scalar(scalar);
    result.types.emplace(name, std::make_shared<const TypeBinding>(std::move(binding)));
  };
  alias("t", type);
  if (is_float(type)) alias("int_t", bits_type(type));
  return result;
}

ModulePtr Modules::lambda(const ModuleLambda& lambda, Location) {
  const int errors = checker_.errors_;
  if (!applying_) check_once(lambda);
  if (checker_.errors_ != errors) return wrong();
  ModuleFunction function;
  function.lambda = &lambda;
  function.scope = std::make_shared<const Environment>(checker_.scope_.visible());
  ModuleValue value;
  value.function = std::make_shared<const ModuleFunction>(std::move(function));
  return std::make_shared<const ModuleValue>(std::move(value));
}

// Messages call the abstract types of a module after it.
void Modules::name_abstracts(const Interface& interface, const std::string& path, const std::set<AbstractId>& own) {
  for (const auto& [name, type] : interface.types)
    if (type->abstract && own.contains(*type->abstract)) store_.rename_abstract(*type->abstract, path + name);
  for (const auto& [name, inner] : interface.modules) name_abstracts(*inner, path + name + ".", own);
}

// Whether the body is right for every parameter. It is a copy, so that nothing that is found out about it stays.
void Modules::check_once(const ModuleLambda& lambda) {
  auto copy = std::make_unique<ModuleExpr>();
  copy->node = clone(lambda, checker_.out_.program);
  resize_tables();
  const auto& own = std::get<ModuleLambda>(copy->node);
  checker_.out_.copies.push_back(std::move(copy));
  Checker::Scope scope(checker_);
  const InterfacePtr type = interface(*own.param.type);
  name_abstracts(*type, own.param.name + ".", {type->own.begin(), type->own.end()});
  checker_.scope_.enter(own.param.name, abstract_module(type));
  const ModulePtr body = module(*own.body);
  if (own.result) coerce(body, interface(*own.result), true, own.result->location);
}

void Modules::resize_tables() {
  const Program& program = checker_.out_.program;
  if (checker_.out_.types.size() < program.expr_count) checker_.out_.types.resize(program.expr_count);
  checker_.out_.pattern_types.resize(program.pattern_count);
  checker_.out_.pattern_binders.resize(program.pattern_count, kNoId);
}

ModulePtr Modules::apply(const ModulePtr& function, const ModulePtr& argument, Location location) {
  if (function->wrong || argument->wrong) return wrong();
  if (++applications_ > kMaxApplications || depth_ >= kMaxDepthOfModules ||
      checker_.out_.program.expr_count > kMaxExpressions) {
    report(Code::unsupported_construct, location,
           "a program whose parametric modules expand to this many definitions cannot be compiled yet");
    return wrong();
  }
  if (!function->function) {
    report(Code::type_mismatch, location, "Cannot apply non-parametric module.");
    return wrong();
  }
  const ModuleFunction& known = *function->function;
  ++depth_;
  ModulePtr result = known.lambda ? apply_lambda(known, argument, location) : apply_typed(known, argument, location);
  --depth_;
  return result;
}

ModulePtr Modules::apply_lambda(const ModuleFunction& function, const ModulePtr& argument, Location location) {
  auto copy = std::make_unique<ModuleExpr>();
  copy->node = clone(*function.lambda, checker_.out_.program);
  resize_tables();
  const auto& own = std::get<ModuleLambda>(copy->node);
  checker_.out_.copies.push_back(std::move(copy));
  const bool outer = std::exchange(applying_, true);
  ScopeTable scope = std::exchange(checker_.scope_, {});
  checker_.scope_.enter(*function.scope);
  const InterfacePtr type = interface(*own.param.type);
  const ModulePtr given = coerce(argument, type, false, location);
  ModulePtr result = given;
  if (!given->wrong) {
    checker_.scope_.enter(own.param.name, given);
    const std::size_t first = checker_.out_.globals.size();
    const std::string outside = std::exchange(inside_, "");
    result = module(*own.body);
    if (own.result) result = coerce(result, interface(*own.result), true, location);
    inside_ = outside;
    for (std::size_t k = first; k < checker_.out_.globals.size(); ++k) checker_.out_.globals[k].applied = true;
  }
  checker_.scope_ = std::move(scope);
  applying_ = outer;
  return result;
}

// A parametric module of which only the type is known, or that has another's type.
ModulePtr Modules::apply_typed(const ModuleFunction& function, const ModulePtr& argument, Location location) {
  const InterfacePtr type = fresh(function.type);
  if (argument->function) {
    if (!type->from->from) return wrong();
    const ModulePtr given = coerce(argument, type->from, false, location);
    if (given->wrong) return given;
    const InterfacePtr result = fresh(type->to);
    if (!function.module) return abstract_module(result);
    return coerce(apply(function.module, given, location), result, true, location);
  }
  Matching matching{.location = location, .opaque = false, .own = {type->from->own.begin(), type->from->own.end()}};
  if (!match_types(*argument, *type->from, inside_, matching)) return wrong();
  if (!match_constants(*argument, *type->from, inside_, matching)) return wrong();
  const ModulePtr given = coerce(argument, type->from, false, location);
  if (given->wrong) return given;
  const InterfacePtr result = fresh(substitute(type->to, matching.inside));
  if (!function.module) return abstract_module(result);
  return coerce(apply(function.module, given, location), result, true, location);
}

// A module of that type of which nothing else is known.
ModulePtr Modules::abstract_module(const InterfacePtr& interface) {
  if (interface->wrong) return wrong();
  if (interface->from) {
    ModuleFunction function;
    function.type = interface;
    ModuleValue result;
    result.function = std::make_shared<const ModuleFunction>(std::move(function));
    return std::make_shared<const ModuleValue>(std::move(result));
  }
  TypeMap map;
  std::map<BinderId, Target> made;
  abstract_constants(*interface, map, made);
  return abstract_members(*interface, map, made, {});
}

// What a module type calls a module of that type: sizes mention the constants of the module type itself.
ModulePtr Modules::module_in_types(const InterfacePtr& interface) {
  if (interface->wrong || interface->from) return abstract_module(interface);
  std::map<BinderId, Target> constants;
  const auto collect = [&](const Interface& inner, const auto& self) -> void {
    for (const auto& [name, value] : inner.values)
      if (value.constant != kNoId)
        constants.emplace(value.constant, Target{.kind = Resolution::Kind::global,
                                                 .global = checker_.out_.global_sizes.at(value.constant)});
    for (const auto& [name, module] : inner.modules) self(*module, self);
  };
  collect(*interface, collect);
  return abstract_members(*interface, {}, constants, {});
}

// Values that sizes mention come first.
void Modules::abstract_constants(const Interface& interface, TypeMap& map, std::map<BinderId, Target>& made) {
  for (const auto& [name, value] : interface.values) {
    if (value.constant == kNoId) continue;
    const Target target = abstract_value(name, value, value.type);
    made.emplace(value.constant, target);
    map.sizes.emplace(value.constant, store_.name(checker_.out_.globals[target.global].binder));
  }
  for (const auto& [name, inner] : interface.modules)
    if (!inner->from) abstract_constants(*inner, map, made);
}

ModulePtr Modules::abstract_members(const Interface& interface, const TypeMap& map,
                                    const std::map<BinderId, Target>& made, std::set<BinderId> open) {
  ModuleValue result;
  open.insert(interface.existential.begin(), interface.existential.end());
  for (const auto& [name, type] : interface.types) {
    TypeBinding binding = *type;
    binding.function.body = store_.substitute(binding.function.body, map);
    result.members.types.emplace(name, std::make_shared<const TypeBinding>(std::move(binding)));
  }
  for (const auto& [name, inner] : interface.modules)
    result.members.modules.emplace(
        name, inner->from ? abstract_module(substitute(inner, map)) : abstract_members(*inner, map, made, open));
  for (const auto& [name, value] : interface.values) {
    const auto constant = made.find(value.constant);
    if (constant != made.end()) {
      result.members.values.emplace(name, constant->second);
      continue;
    }
    Interface::Value shown = value;
    const Ty type = with_open_sizes(store_.substitute(value.type, map), open, {}, shown.unknown);
    checker_.generalise(type, 0, nullptr, shown.sizes);
    result.members.values.emplace(name, abstract_value(name, shown, type));
  }
  return std::make_shared<const ModuleValue>(std::move(result));
}

Target Modules::abstract_value(const std::string& name, const Interface::Value& value, Ty type) {
  auto declaration = std::make_unique<Declaration>();
  Definition definition;
  definition.name = name;
  definition.name_location = value.spec ? value.spec->name_location : Location{};
  definition.body = std::make_unique<Expr>();
  definition.body->location = definition.name_location;
  definition.body->id = checker_.out_.program.expr_count++;
  definition.body->node = Hole{};
  resize_tables();
  checker_.out_.types[definition.body->id] = type;
  declaration->location = definition.name_location;
  declaration->node = std::move(definition);
  Global global{.declaration = declaration.get(), .definition = &std::get<Definition>(declaration->node)};
  global.type_params = value.params;
  global.sizes = value.sizes;
  global.unknown = value.unknown;
  global.type = type;
  global.label = path_ + name;
  global.spec = value.spec ? value.spec->type.get() : nullptr;
  checker_.out_.made.push_back(std::move(declaration));
  return checker_.add_global(std::move(global));
}

}  // namespace apl::frontend
