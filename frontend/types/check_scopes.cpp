// Names: entering and leaving scopes, resolving, and making instances of what has type and size parameters.
#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <utility>

#include "frontend/syntax/parser.h"
#include "frontend/types/checker.h"
#include "frontend/types/recursion.h"

namespace apl::frontend {

namespace {

// Above every level: the names inside a signature are nobody's to see.
constexpr std::uint32_t kSignatureLevel = 1U << 30U;

// Names of Futhark's prelude that cannot be compiled yet: derivatives that the program gives.
constexpr std::array<std::string_view, 2> kLater = {"with_vjp", "with_vjp_tape"};

}  // namespace

void Checker::enter_type(const std::string& name, Ty type) {
  TypeBinding binding;
  binding.function.body = type;
  scope_.enter(name, std::make_shared<const TypeBinding>(std::move(binding)));
}

BinderId Checker::bind(const std::string& name, Location location, Ty type, Binder::Kind kind) {
  const BinderId binder =
      store_.add_binder({.kind = kind, .name = name, .location = location, .level = level_, .type = type});
  scope_.enter(name, Target{.kind = Resolution::Kind::local, .binder = binder});
  return binder;
}

bool Checker::claim(Names& names, const std::string& name, Location location) {
  if (names.insert(name).second) return true;
  report(Code::syntax_error, location,
         "\"" + name + "\" is also bound elsewhere in the same pattern or parameter list");
  return false;
}

bool Checker::claim_field(Names& names, const std::string& name, Location location, const std::string& where) {
  if (names.insert(name).second) return true;
  report(Code::syntax_error, location, "Duplicate fields in " + where + ": \"" + name + "\" was previously defined");
  return false;
}

// Operators that do not evaluate both operands are no functions, and so cannot become any.
void Checker::check_redefinition(const std::string& name, Location location) {
  if (name == "&&" || name == "||")
    report(Code::type_may_not_be_redefined, location, "The " + name + " operator may not be redefined.");
}

std::optional<Resolution> Checker::resolve_simple(const std::string& name) {
  const auto* entry = scope_.value(name);
  // The innermost of the name's binding and the opened modules that have it.
  for (auto open = open_modules_.rbegin(); open != open_modules_.rend(); ++open) {
    if (entry && entry->order > open->second) break;
    if (const PreludeEntry* member = find_member(open->first, name))
      return Resolution{.kind = Resolution::Kind::prelude, .entry = member, .module = open->first, .member = name};
  }
  if (entry) return entry->what.resolution();
  if (const PreludeEntry* builtin = find_builtin(name))
    return Resolution{.kind = Resolution::Kind::prelude, .entry = builtin, .member = name};
  return std::nullopt;
}

// A member of a module.
std::optional<Resolution> Checker::resolve_member(const ModuleValue& module, const std::string& name) const {
  if (const auto found = module.members.values.find(name); found != module.members.values.end())
    return found->second.resolution();
  const PreludeEntry* member = module.scalar ? find_member(*module.scalar, name) : nullptr;
  if (member == nullptr) return std::nullopt;
  return Resolution{.kind = Resolution::Kind::prelude, .entry = member, .module = module.scalar, .member = name};
}

// `a.b.c` is the member c of the module a.b, else the field c of a.b in the module a, and so on.
std::optional<Resolution> Checker::resolve_quietly(const Name& name) {
  for (std::size_t length = name.qualifiers.size() + 1; length-- > 0;) {
    const std::string& text = length == name.qualifiers.size() ? name.text : name.qualifiers[length];
    std::optional<Resolution> result;
    if (length == 0)
      result = resolve_simple(text);
    else if (const ModulePtr module = scope_.module(name.qualifiers, length))
      result = resolve_member(*module, text);
    if (!result) continue;
    for (std::size_t k = length + 1; k < name.qualifiers.size(); ++k) result->fields.push_back(name.qualifiers[k]);
    if (length < name.qualifiers.size()) result->fields.push_back(name.text);
    return result;
  }
  return std::nullopt;
}

std::optional<Resolution> Checker::resolve(const Name& name) {
  auto result = resolve_quietly(name);
  if (name.qualifiers.empty() && result && name.text.size() > 1 && name.text[0] == '_' &&
      file_of(name.location) != kPreludeFile)
    report(Code::type_unknown_name, name.location,
           "Use of \"" + name.text + "\": variables prefixed with underscore may not be accessed.");
  if (result) return result;
  if (!name.qualifiers.empty()) {
    report_unknown_member(name);
    return std::nullopt;
  }
  if (std::ranges::find(kLater, name.text) != kLater.end())
    report(Code::unsupported_construct, name.location, "\"" + name.text + "\" cannot be compiled yet");
  else if (defined_ != nullptr && defined_->name == name.text && !defined_->params.empty())
    report_recursion(name);
  else
    report_unknown(Code::type_unknown_name, name.location, "Unknown name \"" + name.text + "\"", name.text,
                   names_in_scope());
  return std::nullopt;
}

void Checker::report_recursion(const Name& name) {
  const auto broken = broken_rule_of_recursion(*defined_);
  if (broken)
    report(Code::type_mismatch, broken->location, broken->message);
  else
    report(Code::unsupported_construct, name.location,
           "the recursive function \"" + name.text + "\" cannot be compiled yet");
}

void Checker::report_unknown_member(const Name& name) {
  std::string path;
  for (std::size_t length = 1; length <= name.qualifiers.size(); ++length) {
    path += (path.empty() ? "" : ".") + name.qualifiers[length - 1];
    const ModulePtr module = scope_.module(name.qualifiers, length);
    if (!module) {
      const ModulePtr outer = scope_.module(name.qualifiers, length - 1);
      const Environment seen = length > 1 && outer ? outer->members : scope_.visible();
      std::vector<std::string> names;
      if (length == 1) {
        names = names_in_scope();
        std::ranges::move(module_names(), std::back_inserter(names));
      }
      for (const auto& [module_name, module_value] : seen.modules) names.push_back(module_name);
      report_unknown(Code::type_unknown_name, name.location, "Unknown module or variable \"" + path + "\"",
                     name.qualifiers[length - 1], std::move(names));
      return;
    }
    if (module->wrong) {
      failed_ = true;
      return;
    }
  }
  const ModulePtr module = scope_.module(name.qualifiers, name.qualifiers.size());
  std::vector<std::string> names = module->scalar ? member_names(*module->scalar) : std::vector<std::string>();
  for (const auto& [member, target] : module->members.values) names.push_back(member);
  report_unknown(Code::type_unknown_name, name.location,
                 "Unknown name \"" + path + "." + name.text + "\": module \"" + path + "\" does not define it",
                 name.text, std::move(names));
}

// The type of accumulators, of the type of arrays that they accumulate to.
TypeBindingPtr Checker::accumulator_of() {
  if (accumulator_of_) return accumulator_of_;
  AbstractInfo info{.name = "acc", .constraint = {}, .size_lifted = true, .implementation = {}, .accumulator = true};
  const ParamId array = store_.add_param({.name = "t", .location = {}, .constraint = {}});
  TypeFunction::Param param;
  param.type = array;
  info.implementation.params = {param};
  const AbstractId id = store_.add_abstract(std::move(info));
  TypeBinding binding;
  binding.function = store_.abstract_function(id, {param});
  binding.liftedness = Liftedness::size_lifted;
  binding.abstract = id;
  return accumulator_of_ = std::make_shared<const TypeBinding>(std::move(binding));
}

const Checker::Scheme& Checker::scheme_of(const PreludeEntry& entry, std::optional<ScalarType> module) {
  std::string key(entry.name);
  if (module) key = std::string(apl::to_text(*module)) + "." + key;
  if (auto found = schemes_.find(key); found != schemes_.end()) return found->second;
  const TypeSignature signature = parse_signature(entry.signature, static_cast<std::uint32_t>(out_.types.size()));
  out_.types.resize(std::max<std::size_t>(out_.types.size(), signature.expr_count));
  Scheme scheme;
  const std::size_t literals = literals_.size();
  {
    Scope scope(*this);
    level_ = kSignatureLevel;
    if (entry.builtin == Builtin::id && entry.name.front() == '_') scope_.enter("_accumulator_of", accumulator_of());
    if (module) {
      enter_type("t", store_.scalar(*module));
      enter_type("int_t", store_.scalar(bits_type(*module)));
    }
    Names names;
    enter_type_params(signature.params, names, &scheme.params, &scheme.sizes);
    scheme.type = signature.type ? type_of(*signature.type) : store_.error();
  }
  // The expressions of the signature end here, and so do their literals.
  literals_.resize(literals);
  return schemes_.emplace(std::move(key), std::move(scheme)).first->second;
}

void Checker::take_over(TypeMap& map, const std::vector<ParamId>& params, const std::vector<BinderId>& sizes,
                        Location location, const std::string& owner) {
  for (ParamId param : params) {
    const TypeParamInfo info = store_.type_param(param);
    const Ty var = fresh(location, info.constraint);
    map.params.emplace(param, var);
    instances_.push_back({.type = var,
                          .size = {},
                          .location = location,
                          .what = "type parameter \"" + info.name + "\" of \"" + owner + "\"",
                          .lifted = info.size_lifted});
  }
  for (BinderId size : sizes) {
    const Size var = store_.size_variable(level_, location, size);
    map.sizes.emplace(size, var);
    instances_.push_back(
        {{}, var, location, "size parameter of \"" + owner + "\" (\"" + store_.binder(size).name + "\")"});
  }
}

Ty Checker::instantiate_prelude(Resolution& resolution, Location location) {
  const PreludeEntry& entry = *resolution.entry;
  if (entry.builtin == Builtin::convert) {
    const auto from = find_conversion(*resolution.module, resolution.member);
    return store_.arrow(store_.scalar(*from), store_.scalar(*resolution.module));
  }
  const Scheme& scheme = scheme_of(entry, resolution.module);
  take_over(resolution.instance, scheme.params, scheme.sizes, location, resolution.member);
  if (!resolution.module && !scheme.params.empty()) {
    const Ty first = resolution.instance.params.at(scheme.params.front());
    const Constraint constraint = store_.get_if<TyVar>(first)->constraint;
    Constraint narrowed = entry.constraint;
    narrowed.first_order = constraint.first_order;
    narrowed.regular = constraint.regular;
    narrowed.reason = constraint.reason;
    store_.constrain(first, narrowed);
    if (narrowed.scalars != 0) numbers_.push_back(first);
    if (narrowed.equality) comparisons_.push_back({.location = location, .type = first});
  }
  return store_.substitute(scheme.type, resolution.instance);
}

Ty Checker::instantiate(Resolution& resolution, Location location, std::uint32_t expr) {
  switch (resolution.kind) {
    case Resolution::Kind::prelude: return instantiate_prelude(resolution, location);
    case Resolution::Kind::local: {
      const Ty type = store_.binder(resolution.binder).type;
      const auto local = local_schemes_.find(resolution.binder);
      if (local == local_schemes_.end()) return type;
      take_over(resolution.instance, local->second.params, local->second.sizes, location,
                store_.binder(resolution.binder).name);
      for (std::size_t k = local->second.written; k < local->second.params.size(); ++k) {
        const ParamId param = local->second.params[k];
        const bool unused = local->second.unused.contains(param);
        const Ty use = resolution.instance.params.at(param);
        if (unused) unifier_.may_hide_sizes(use);
        local_uses_.push_back({param, use, location, resolution.binder, unused});
      }
      return store_.substitute(type, resolution.instance);
    }
    case Resolution::Kind::global: {
      const Global& global = out_.globals[resolution.global];
      if (global.failed && !global.type) return store_.error();
      take_over(resolution.instance, global.type_params, global.sizes, location, global.definition->name);
      for (BinderId unknown : global.unknown) {
        const BinderId here = store_.add_binder({.kind = Binder::Kind::unknown_size,
                                                 .name = store_.binder(unknown).name,
                                                 .location = location,
                                                 .level = level_,
                                                 .type = store_.scalar(ScalarType::i64)});
        resolution.instance.sizes.emplace(unknown, store_.name(here));
        out_.unknown_sizes[expr].push_back(here);
        with_unknown_.push_back(expr);
      }
      return store_.substitute(global.type, resolution.instance);
    }
    default: return store_.error();
  }
}

}  // namespace apl::frontend
