// Modules against module types: each type and value that the module type names must be there, and what it does not name
// is not to be seen. A value gets the type that the module type gives it by a definition of its own, `def f = m.f`.
#include <algorithm>
#include <utility>

#include "frontend/modules/modules.h"

namespace apl::frontend {

namespace {

const std::string kMismatch = "Module does not match its module type: ";

Target target_of(const Resolution& resolution) {
  return {.kind = resolution.kind,
          .binder = resolution.binder,
          .global = resolution.global,
          .entry = resolution.entry,
          .module = resolution.module,
          .member = resolution.member};
}

std::string kind_text(Liftedness liftedness) {
  return liftedness == Liftedness::unlifted ? "non-lifted"
         : liftedness == Liftedness::lifted ? "lifted"
                                            : "size-lifted";
}

}  // namespace

TypeBindingPtr Modules::member_type(const ModuleValue& module, const std::string& name) const {
  if (const auto found = module.members.types.find(name); found != module.members.types.end()) return found->second;
  if (!module.scalar || (name != "t" && !(name == "int_t" && is_float(*module.scalar)))) return nullptr;
  TypeBinding binding;
  binding.function.body = store_.scalar(name == "t" ? *module.scalar : bits_type(*module.scalar));
  return std::make_shared<const TypeBinding>(std::move(binding));
}

// The module as that module type shows it; `opaque`: its abstract types are nobody's else.
ModulePtr Modules::coerce(const ModulePtr& module, const InterfacePtr& interface, bool opaque, Location location) {
  if (module->wrong || interface->wrong) return wrong();
  ModuleValue result;
  if ((interface->from != nullptr) != (module->function != nullptr)) {
    report(Code::type_mismatch, location,
           interface->from ? "Cannot match non-parametric module with parametric module type."
                           : "Cannot match parametric module with non-parametric module type.");
    return wrong();
  }
  if (interface->from) {
    ModuleFunction function;
    function.module = module;
    function.type = interface;
    result.function = std::make_shared<const ModuleFunction>(std::move(function));
    auto made = std::make_shared<const ModuleValue>(std::move(result));
    return applying_ || fits_every_argument(made, location) ? made : wrong();
  }
  const int errors = checker_.errors_;
  Matching matching{.location = location, .opaque = opaque, .own = {interface->own.begin(), interface->own.end()}};
  matching.existential.insert(interface->existential.begin(), interface->existential.end());
  if (!match_types(*module, *interface, inside_, matching)) return wrong();
  if (!match_plain_types(*module, *interface, inside_, matching)) return wrong();
  if (!match_constants(*module, *interface, inside_, matching)) return wrong();
  if (opaque) {
    for (const auto& [id, function] : matching.inside.abstracts) {
      TypeFunction implementation = function;
      TypeMap open;
      for (BinderId size : matching.existential) open.sizes.emplace(size, store_.size_variable(0, location));
      implementation.body = store_.substitute(implementation.body, open);
      store_.implement(id, std::move(implementation));
    }
  } else {
    matching.shown.abstracts = matching.inside.abstracts;
  }
  result.members = match_members(*module, *interface, inside_, matching);
  return checker_.errors_ == errors ? std::make_shared<const ModuleValue>(std::move(result)) : wrong();
}

// Whether a parametric module takes every module that its type lets it take, and gives what that type says.
bool Modules::fits_every_argument(const ModulePtr& function, Location location) {
  const int errors = checker_.errors_;
  apply(function, abstract_module(fresh(function->function->type->from)), location);
  return checker_.errors_ == errors;
}

// Which types of the module implement the abstract ones.
bool Modules::match_types(const ModuleValue& module, const Interface& interface, const std::string& path,
                          Matching& matching) {
  bool all = true;
  for (const auto& [name, wanted] : interface.types) {
    const TypeBindingPtr actual = member_type(module, name);
    if (!actual)
      report(Code::type_mismatch, matching.location, "Module does not define a type named \"" + path + name + "\"",
             {{"the module type asks for it here", wanted->location}});
    const bool fits = actual && match_type(path + name, *wanted, *actual, matching.location, kMismatch);
    all = all && fits;
    if (!fits || !wanted->abstract || !matching.own.contains(*wanted->abstract)) continue;
    if (!match_liftedness(path + name, *wanted, *actual, matching.location) ||
        !match_sizes(path + name, *wanted, *actual, matching.location))
      all = false;
    if (matching.opaque) store_.rename_abstract(*wanted->abstract, path_ + path + name);
    matching.inside.abstracts.emplace(*wanted->abstract, actual->function);
    matching.existential.insert(actual->existential.begin(), actual->existential.end());
  }
  for (const auto& [name, wanted] : interface.modules) {
    const auto actual = module.members.modules.find(name);
    if (actual == module.members.modules.end()) {
      report(Code::type_mismatch, matching.location, "Module does not define a module named \"" + path + name + "\"");
      all = false;
    } else if (!wanted->from && actual->second->function) {
      report(Code::type_mismatch, matching.location,
             "Cannot match parametric module with non-parametric module type: \"" + path + name + "\"");
      all = false;
    } else if (!wanted->from) {
      all = match_types(*actual->second, *wanted, path + name + ".", matching) && all;
    }
  }
  return all;
}

// Types without sizes that are no abstract ones are the same in both: what values are of wrong types follows from that.
bool Modules::match_plain_types(const ModuleValue& module, const Interface& interface, const std::string& path,
                                const Matching& matching) {
  const int errors = checker_.errors_;
  for (const auto& [name, wanted] : interface.types) {
    bool sized = false;
    store_.walk(
        wanted->function.body, [](Ty, const TyNode&) {}, [&](Size, const SizeNode&) { sized = true; });
    if (!sized) match_abbreviation(path + name, *wanted, *member_type(module, name), matching);
  }
  for (const auto& [name, wanted] : interface.modules)
    if (!wanted->from) match_plain_types(*module.members.modules.at(name), *wanted, path + name + ".", matching);
  return checker_.errors_ == errors;
}

// `type vector [n] 't`.
std::string Modules::type_text(const std::string& name, const TypeBinding& type) const {
  std::string text = "type " + name;
  for (const TypeFunction::Param& param : type.function.params)
    text += param.is_size ? " [" + store_.binder(param.size).name + "]" : " '" + store_.type_param(param.type).name;
  return text;
}

// Whether the types have the same parameters.
bool Modules::match_type(const std::string& name, const TypeBinding& wanted, const TypeBinding& actual,
                         Location location, const std::string& mismatch) {
  const auto same_kind = [](const TypeFunction::Param& a, const TypeFunction::Param& b) {
    return a.is_size == b.is_size;
  };
  const auto& params = actual.function.params;
  if (std::ranges::equal(wanted.function.params, params, same_kind)) return true;
  report(Code::type_mismatch, location,
         mismatch + "it defines " + type_text(name, actual) + ", but the module type requires " +
             type_text(name, wanted) + " with other parameters",
         {{"the module type asks for it here", wanted.location}});
  return false;
}

bool Modules::match_liftedness(const std::string& name, const TypeBinding& wanted, const TypeBinding& actual,
                               Location location) {
  if (actual.liftedness <= wanted.liftedness) return true;
  report(Code::type_mismatch, location,
         kMismatch + "the type \"" + name + "\" is " + kind_text(actual.liftedness) + ", where a " +
             kind_text(wanted.liftedness) + " type is expected",
         {{"the module type asks for it here", wanted.location}});
  return false;
}

// What a type hides must tell its sizes all the same.
bool Modules::match_sizes(const std::string& name, const TypeBinding& wanted, const TypeBinding& actual,
                          Location location) {
  const std::unordered_set<BinderId> constructive = checker_.sizes_of({actual.function.body});
  const auto is_told = [&](BinderId size) { return constructive.contains(size); };
  for (const TypeFunction::Param& param : actual.function.params) {
    if (!param.is_size || is_told(param.size)) continue;
    report(Code::type_mismatch, location,
           kMismatch + "the size parameter \"" + store_.binder(param.size).name + "\" of the type \"" + name +
               "\" is not used constructively: it is the size of no array",
           {{"the module type asks for it here", wanted.location}});
    return false;
  }
  if (std::ranges::all_of(actual.existential, is_told)) return true;
  report(Code::type_mismatch, location,
         kMismatch + "the type \"" + name + "\" has an anonymous-nonconstructive size: it is the size of no array",
         {{"the module type asks for it here", wanted.location}});
  return false;
}

// Values that sizes of the module type mention.
bool Modules::match_constants(const ModuleValue& module, const Interface& interface, const std::string& path,
                              Matching& matching) {
  for (const auto& [name, wanted] : interface.values) {
    if (wanted.constant == kNoId) continue;
    const auto actual = checker_.resolve_member(module, name);
    const auto target = actual ? match_value(name, path, wanted, *actual, matching) : std::nullopt;
    if (!actual) report_missing(name, path, wanted, matching);
    if (!target) return false;
    const auto size = checker_.size_of_name(*actual, *checker_.out_.globals[target->global].definition->body);
    const Size shown = store_.name(checker_.out_.globals[target->global].binder);
    matching.inside.sizes.emplace(wanted.constant, size ? *size : shown);
    matching.shown.sizes.emplace(wanted.constant, matching.opaque || !size ? shown : *size);
    matching.constants.emplace(wanted.constant, matching.opaque || !size ? *target : target_of(*actual));
  }
  for (const auto& [name, wanted] : interface.modules)
    if (!wanted->from && !match_constants(*module.members.modules.at(name), *wanted, path + name + ".", matching))
      return false;
  return true;
}

std::string Modules::spec_text(const std::string& name, const Interface::Value& value, Ty type) const {
  std::string text = "val " + name;
  for (BinderId size : value.sizes) text += " [" + store_.binder(size).name + "]";
  for (ParamId param : value.params) text += " '" + store_.type_param(param).name;
  return text + " : " + store_.to_text(type);
}

void Modules::report_missing(const std::string& name, const std::string& path, const Interface::Value& wanted,
                             const Matching& matching) {
  report(Code::type_mismatch, matching.location,
         "Module does not define a value named \"" + path + name +
             "\": " + spec_text(name, wanted, store_.substitute(wanted.type, matching.inside)) + " is expected",
         {{"the module type asks for it here", wanted.spec ? wanted.spec->name_location : Location{}}});
}

// A type that is no abstract one of the module type is the same in both.
void Modules::match_abbreviation(const std::string& name, const TypeBinding& wanted, const TypeBinding& actual,
                                 const Matching& matching) {
  std::vector<Ty> types;
  std::vector<Size> sizes;
  for (const TypeFunction::Param& param : wanted.function.params) {
    if (param.is_size)
      sizes.push_back(store_.name(param.size));
    else
      types.push_back(store_.param(param.type));
  }
  std::set<BinderId> existential = matching.existential;
  existential.insert(wanted.existential.begin(), wanted.existential.end());
  existential.insert(actual.existential.begin(), actual.existential.end());
  const auto with_any_sizes = [&](Ty type) {
    TypeMap open;
    for (BinderId size : existential) open.sizes.emplace(size, store_.size_variable(0, matching.location));
    return store_.substitute(type, open);
  };
  const Ty expected = with_any_sizes(store_.substitute(wanted.function.body, matching.inside));
  const Ty given = with_any_sizes(store_.apply(actual.function, types, sizes));
  if (!checker_.unifier_.unify(expected, given)) return;
  report(Code::type_mismatch, matching.location,
         "Module defines " + type_text(name, wanted) + " = " + store_.to_text(given) + ", but module type requires " +
             type_text(name, wanted) + " = " + store_.to_text(expected),
         {{"the module type asks for it here", wanted.location}});
}

Environment Modules::match_members(const ModuleValue& module, const Interface& interface, const std::string& path,
                                   Matching& matching) {
  Environment result;
  for (const auto& [name, wanted] : interface.types) {
    const TypeBindingPtr actual = member_type(module, name);
    match_abbreviation(path + name, *wanted, *actual, matching);
    if (!matching.opaque) {
      result.types.emplace(name, actual);
      continue;
    }
    TypeBinding shown = *wanted;
    shown.function.body = store_.substitute(shown.function.body, matching.shown);
    result.types.emplace(name, std::make_shared<const TypeBinding>(std::move(shown)));
  }
  for (const auto& [name, wanted] : interface.modules) {
    const ModulePtr inner = module.members.modules.at(name);
    if (wanted->from) {
      const std::string outside = std::exchange(inside_, path + name + ".");
      const ModulePtr made = coerce(inner, substitute(wanted, matching.inside), matching.opaque, matching.location);
      inside_ = outside;
      result.modules.emplace(name, made);
      continue;
    }
    const std::string outer = std::exchange(path_, path_ + name + ".");
    ModuleValue shown;
    shown.members = match_members(*inner, *wanted, path + name + ".", matching);
    path_ = outer;
    result.modules.emplace(name, std::make_shared<const ModuleValue>(std::move(shown)));
  }
  for (const auto& [name, wanted] : interface.values) {
    if (const auto made = matching.constants.find(wanted.constant); made != matching.constants.end()) {
      result.values.emplace(name, made->second);
      continue;
    }
    const auto actual = checker_.resolve_member(module, name);
    if (!actual) {
      report_missing(name, path, wanted, matching);
      continue;
    }
    if (const auto target = match_value(name, path, wanted, *actual, matching)) result.values.emplace(name, *target);
  }
  return result;
}

// Sizes that an implementation of a `type~` leaves open: any in what a function takes, unknown ones in what it gives.
Ty Modules::with_open_sizes(Ty type, const std::set<BinderId>& open, Location location,
                            std::vector<BinderId>& unknown) {
  if (open.empty()) return type;
  const auto is_open = [&](Size size) {
    const auto* name = store_.get_if<SizeName>(size);
    return name != nullptr && open.contains(name->binder);
  };
  const auto* known = store_.get_if<TyArrow>(type);
  if (known == nullptr)
    return checker_.with_sizes(type, [&](Size size) {
      if (!is_open(size)) return size;
      unknown.push_back(store_.add_binder({.kind = Binder::Kind::unknown_size,
                                           .name = "this result",
                                           .location = location,
                                           .level = 1,
                                           .type = store_.scalar(ScalarType::i64)}));
      return store_.name(unknown.back());
    });
  TyArrow arrow = *known;
  const Ty from = checker_.with_sizes(
      arrow.from, [&](Size size) { return is_open(size) ? store_.size_variable(1, location) : size; });
  const Ty to = with_open_sizes(arrow.to, open, location, arrow.unknown);
  return store_.arrow(from, to, arrow.param, std::move(arrow.unknown));
}

// The value with the type that the module type gives it.
std::optional<Target> Modules::match_value(const std::string& name, const std::string& path,
                                           const Interface::Value& wanted, Resolution actual, Matching& matching) {
  auto body = std::make_unique<Expr>();
  body->location = matching.location;
  body->id = checker_.out_.program.expr_count++;
  body->node = Variable{{.qualifiers = {}, .text = name, .location = matching.location}};
  if (checker_.out_.types.size() <= body->id) checker_.out_.types.resize(body->id + 1);
  std::vector<BinderId> unknown = wanted.unknown, sizes = wanted.sizes;
  // The abstract types are what implements them here.
  Ty inside = with_open_sizes(store_.substitute(wanted.type, matching.inside), matching.existential, matching.location,
                              unknown);
  if (unknown.size() > wanted.unknown.size()) {
    report(Code::type_size_mismatch, matching.location,
           kMismatch + "the value \"" + path + name +
               "\" has a size that nothing says outside of the module: " + spec_text(name, wanted, inside));
    return std::nullopt;
  }
  {
    Checker::Scope scope(checker_);
    checker_.level_ = 1;
    const Ty given = checker_.instantiate(actual, matching.location, body->id);
    TypeMap open;
    for (BinderId size : unknown) open.sizes.emplace(size, store_.size_variable(1, matching.location));
    const Ty expected = store_.substitute(inside, open);
    const std::string text = actual.kind == Resolution::Kind::global
                                 ? store_.to_text(checker_.out_.globals[actual.global].type)
                                 : store_.to_text(given);
    if (const auto clash = checker_.unifier_.unify(expected, given)) {
      checker_.mismatch(*clash, matching.location, expected, given,
                        "Module type specifies " + spec_text(path + name, wanted, inside) + ", but module provides \"" +
                            name + "\" as " + text);
      return std::nullopt;
    }
    checker_.generalise(inside, 0, nullptr, sizes);
    checker_.out_.types[body->id] = given;
    checker_.out_.names[body->id] = std::move(actual);
    checker_.numbers_.clear();
    checker_.instances_.clear();
    checker_.comparisons_.clear();
  }
  auto declaration = std::make_unique<Declaration>();
  declaration->location = matching.location;
  declaration->node = Definition{.name = name, .name_location = matching.location, .body = std::move(body)};
  Global global{.declaration = declaration.get(), .definition = &std::get<Definition>(declaration->node)};
  global.type_params = wanted.params;
  global.sizes = std::move(sizes);
  global.unknown = wanted.unknown;
  global.type = inside;
  if (matching.opaque) {
    global.sizes = wanted.sizes;
    global.type = with_open_sizes(store_.substitute(wanted.type, matching.shown), matching.existential,
                                  matching.location, global.unknown);
    checker_.generalise(global.type, 0, nullptr, global.sizes);
  }
  global.label = path_ + name;
  global.spec = wanted.spec ? wanted.spec->type.get() : nullptr;
  checker_.out_.made.push_back(std::move(declaration));
  return checker_.add_global(std::move(global));
}

}  // namespace apl::frontend
