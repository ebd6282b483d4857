// What the checker says: one place for the wording, so that every message names what was needed, what was there
// and where the sizes come from.
#include <algorithm>
#include <cctype>

#include "frontend/types/checker.h"
#include "ir/similar_name.h"

namespace apl::frontend {

namespace {

// More errors than this are rarely read, and one mistake may cause many.
constexpr int kMaxErrors = 50;

}  // namespace

void Checker::report(Code code, Location location, std::string message, std::vector<Note> notes, std::string hint) {
  failed_ = true;
  if (++errors_ > kMaxErrors || !sink_) return;
  Diagnostic diagnostic = make_error(code, location, std::move(message));
  diagnostic.notes = std::move(notes);
  diagnostic.hint = std::move(hint);
  say(std::move(diagnostic));
}

void Checker::say(Diagnostic diagnostic) {
  if (held_)
    held_->push_back(std::move(diagnostic));
  else
    sink_(diagnostic);
}

void Checker::report_unknown(Code code, Location location, std::string message, std::string_view word,
                             std::vector<std::string> names) {
  // Operators are near to each other without being meant.
  std::erase_if(names, [](const std::string& name) { return name.empty() || std::ispunct(name.front()) != 0; });
  std::ranges::sort(names);
  const auto similar = similar_name(word, names);
  report(code, location, std::move(message), {}, similar ? "did you mean \"" + *similar + "\"?" : "");
}

std::vector<std::string> Checker::names_in_scope() const {
  std::vector<std::string> names = builtin_names();
  for (const auto& [name, target] : scope_.visible().values) names.push_back(name);
  for (const auto& [module, order] : open_modules_)
    for (std::string& member : member_names(module)) names.push_back(std::move(member));
  return names;
}

void Checker::warn(Code code, Location location, std::string message) {
  if (!sink_) return;
  Diagnostic diagnostic = make_error(code, location, std::move(message));
  diagnostic.severity = Severity::warning;
  say(std::move(diagnostic));
}

// The fields that only one of two record types has.
std::string Checker::unshared_fields(Ty expected, Ty actual) const {
  const auto* a = store_.get_if<TyRecord>(expected);
  const auto* b = store_.get_if<TyRecord>(actual);
  if (a == nullptr || b == nullptr || store_.is_tuple(*a) || store_.is_tuple(*b)) return "";
  std::set<std::string> unshared;
  for (const auto* record : {a, b})
    for (const auto& [name, type] : record->fields)
      if (!unshared.insert(name).second) unshared.erase(name);
  std::string text;
  for (const std::string& name : unshared) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// The same for constructors of sum types.
std::string Checker::unshared_constructors(Ty expected, Ty actual) const {
  const auto* a = store_.get_if<TySum>(expected);
  const auto* b = store_.get_if<TySum>(actual);
  if (a == nullptr || b == nullptr) return "";
  std::set<std::string> unshared;
  for (const auto* sum : {a, b})
    for (const auto& [name, payload] : sum->constructors)
      if (!unshared.insert(name).second) unshared.erase(name);
  std::string text;
  for (const std::string& name : unshared) text += (text.empty() ? "#" : ", #") + name;
  return text;
}

std::vector<Note> Checker::size_notes(const Clash& clash) const {
  std::vector<Note> notes;
  std::set<BinderId> reported;
  for (Size size : {clash.s, clash.t}) {
    if (!size) continue;
    store_.walk_size(size, [&](Size, const SizeNode& node) {
      const auto* name = std::get_if<SizeName>(&node);
      const auto* open = std::get_if<SizeVar>(&node);
      if (open && open->param != kNoId && open->origin && reported.insert(open->param).second)
        notes.push_back(
            {"nothing says yet what the size parameter \"" + store_.binder(open->param).name + "\" of this is",
             open->origin});
      if (name == nullptr || !reported.insert(name->binder).second) return;
      const Binder& binder = store_.binder(name->binder);
      if (!binder.location) return;
      switch (binder.kind) {
        case Binder::Kind::size_param:
          notes.push_back({"size \"" + binder.name + "\" is declared here", binder.location});
          break;
        case Binder::Kind::inferred_size:
          notes.push_back({"size \"" + binder.name + "\" is that of this array", binder.location});
          break;
        case Binder::Kind::unknown_size:
          notes.push_back({"size \"" + binder.name + "\" is known only once this is evaluated" +
                               (binder.why.empty() ? "" : ": " + binder.why),
                           binder.location});
          break;
        default: {
          const bool size = store_.as_scalar(binder.type) == ScalarType::i64;
          notes.push_back(size ? Note{"size \"" + binder.name + "\" is the value bound here", binder.location}
                               : Note{"\"" + binder.name + "\" is bound here", binder.location});
        }
      }
    });
  }
  return notes;
}

// Whether a size that is a name or open occurs inside of one that is computed.
bool Checker::is_part(Size part, Size whole) const {
  if (!store_.get_if<SizeOp>(whole) || store_.get_if<SizeOp>(part) || store_.get_if<SizeConst>(part)) return false;
  const auto* name = store_.get_if<SizeName>(part);
  bool found = false;
  store_.walk_size(whole, [&](Size s, const SizeNode& node) {
    const auto* inner = std::get_if<SizeName>(&node);
    found = found || s == store_.find(part) || (name && inner && inner->binder == name->binder);
  });
  return found;
}

bool Checker::is_record(Ty type) const {
  const auto* record = store_.get_if<TyRecord>(type);
  return record && !store_.is_tuple(*record);
}

void Checker::mismatch(const Clash& clash, Location location, Ty expected, Ty actual, const std::string& what) {
  std::string message = what;
  if (clash.kind != Clash::Kind::functional && clash.kind != Clash::Kind::equality && clash.kind != Clash::Kind::scalar)
    message += ": expected " + store_.to_text(expected) + ", got " + store_.to_text(actual);
  Code code = Code::type_mismatch;
  switch (clash.kind) {
    case Clash::Kind::types:
      if (const std::string fields = unshared_fields(clash.a, clash.b); !fields.empty())
        message += ". The record types have unshared fields: " + fields + ".";
      else if (const std::string constructors = unshared_constructors(clash.a, clash.b); !constructors.empty())
        message += ". Unshared constructors: " + constructors + ".";
      else if ((store_.get_if<TySum>(clash.a) != nullptr) != (store_.get_if<TySum>(clash.b) != nullptr))
        message += ". Cannot unify a type that must be a sum with one that is none";
      else if (is_record(clash.a) != is_record(clash.b))
        message += ". Cannot unify " + store_.to_text(is_record(clash.a) ? clash.b : clash.a) +
                   " with type that must be a record";
      break;
    case Clash::Kind::sizes:
      code = Code::type_size_mismatch;
      message += ". Sizes \"" + store_.to_text(clash.s) + "\" and \"" + store_.to_text(clash.t) + "\" do not match";
      if (is_part(clash.s, clash.t) || is_part(clash.t, clash.s))
        message += ". Occurs check: one would be a part of itself";
      break;
    case Clash::Kind::occurs: message += ". Occurs check: a type would contain itself"; break;
    case Clash::Kind::scope:
      if (clash.escaped == kNoId) {
        message += ". The type \"" + store_.to_text(clash.b) +
                   "\" would have to be known outside of where it is bound (scope-violation)";
        break;
      }
      code = Code::type_size_mismatch;
      if (const Binder& escaped = store_.binder(clash.escaped);
          escaped.kind == Binder::Kind::unknown_size && !clash.existential) {
        code = Code::type_causality_check;
        message += ". Causality check: the size \"" + escaped.name +
                   "\" is computed after it is needed (scope-violation). Bind the expression that computes it with "
                   "'let' beforehand";
        break;
      }
      message += std::string(clash.existential ? ". Existential size \"" : ". The size \"") +
                 store_.binder(clash.escaped).name +
                 "\" would have to be known outside of where it is bound (scope-violation)";
      if (clash.existential)
        message += ": a type parameter would be instantiated with a type containing anonymous sizes (existential ones)";
      break;
    case Clash::Kind::functional:
      if (const auto* param = store_.get_if<TyParam>(clash.b); param && !store_.type_param(param->param).lifted) {
        message += ": " + store_.to_text(clash.b) + " is size-lifted and cannot be an array element";
        break;
      }
      if (const auto* abstract = store_.get_if<TyAbstract>(clash.b)) {
        const bool lifted = store_.abstract_info(abstract->id).lifted;
        message += ": the abstract type " + store_.to_text(clash.b) +
                   " is lifted: " + (lifted ? "it may be a function" : "its sizes may vary");
        break;
      }
      message += ": " + store_.to_text(clash.b) + " is functional";
      if (clash.reason[0] != '\0') message += "; " + std::string(clash.reason) + " may not be of function type";
      break;
    case Clash::Kind::equality: message += ": " + store_.to_text(clash.b) + " does not support equality"; break;
    case Clash::Kind::scalar: message += ": " + store_.to_text(clash.b) + " is no such type"; break;
  }
  if (!clash.fields.empty()) message += ". When matching types of record field \"" + clash.fields + "\"";
  report(code, location, std::move(message), size_notes(clash));
}

bool Checker::unify(Ty expected, Ty actual, Location location, const std::string& what) {
  const auto clash = unifier_.unify(expected, actual);
  if (clash) mismatch(*clash, location, expected, actual, what);
  return !clash;
}

bool Checker::require(Ty type, const Constraint& constraint, Location location, const std::string& what) {
  const auto clash = unifier_.require(type, constraint);
  if (constraint.scalars != 0) numbers_.push_back(type);
  if (clash) mismatch(*clash, location, type, type, what);
  return !clash;
}

}  // namespace apl::frontend
