// Constructors of sum types and `match`. Which sum type a constructor belongs to may become known later.
#include <range/v3/view/zip.hpp>

#include <algorithm>
#include <utility>

#include "frontend/types/checker.h"
#include "frontend/types/exhaustive.h"

namespace apl::frontend {

Ty Checker::infer_constructor(const Expr& expr, const ConstructorExpr& constructor, Ty expected) {
  // What is expected may have other sizes.
  const auto* known = expected ? store_.get_if<TySum>(expected) : nullptr;
  const Ty sum = known ? loosened(expected) : fresh(expr.location);
  std::vector<Ty> wanted(constructor.arguments.size());
  if (known)
    for (const auto& [name, payload] : store_.get_if<TySum>(sum)->constructors)
      if (name == constructor.name && payload.size() == wanted.size()) wanted = payload;
  std::vector<Ty> payload;
  for (const auto& [argument, type] : ranges::views::zip(constructor.arguments, wanted))
    payload.push_back(infer(*argument, type));
  want_constructor(sum, constructor.name, std::move(payload), expr.location);
  return sum;
}

void Checker::want_constructor(Ty sum, const std::string& name, std::vector<Ty> payload, Location location) {
  if (!solve_constructor(sum, name, payload, location))
    pending_constructors_.push_back({sum, name, std::move(payload), location});
}

namespace {

std::string constructor_text(const TypeStore& store, const std::string& name, const std::vector<Ty>& payload) {
  std::string text = "#" + name;
  for (Ty part : payload) {
    const std::string type = store.to_text(part);
    text += type.find(' ') == std::string::npos || type[0] == '(' || type[0] == '{' ? " " + type : " (" + type + ")";
  }
  return text;
}

}  // namespace

// Whether the type is known; what is wrong with the constructor is said.
bool Checker::solve_constructor(Ty sum, const std::string& name, const std::vector<Ty>& payload, Location location) {
  if (store_.get_if<TyVar>(sum)) return false;
  if (store_.get_if<TyError>(sum)) return true;
  const auto* known = store_.get_if<TySum>(sum);
  if (known == nullptr) {
    report(Code::type_mismatch, location,
           "Cannot unify type with constructors with one that is no sum type: expected " + store_.to_text(sum) +
               ", got " + constructor_text(store_, name, payload));
    return true;
  }
  const auto found = std::ranges::find(known->constructors, name, [](const auto& c) { return c.first; });
  if (found == known->constructors.end()) {
    report(
        Code::type_mismatch, location,
        "Type " + store_.to_text(sum) + " has no constructor \"#" + name + "\". Unshared constructors: #" + name + ".");
    return true;
  }
  const std::vector<Ty> wanted = found->second;
  if (wanted.size() != payload.size()) {
    report(Code::type_mismatch, location,
           "Uses of constructor \"#" + name + "\" differ in arity: " + std::to_string(payload.size()) + " given, but " +
               constructor_text(store_, name, wanted) + " has " + std::to_string(wanted.size()));
    return true;
  }
  for (const auto& [type, given] : ranges::views::zip(wanted, payload))
    if (!unify(type, given, location,
               "Constructor does not have expected type: " + constructor_text(store_, name, wanted) + " and " +
                   constructor_text(store_, name, payload)))
      break;
  return true;
}

void Checker::solve_constructors(bool last) {
  bool progress = true;
  while (progress && !pending_constructors_.empty()) {
    progress = false;
    for (PendingConstructor& wanted : std::exchange(pending_constructors_, {})) {
      if (solve_constructor(wanted.sum, wanted.name, wanted.payload, wanted.location))
        progress = true;
      else
        pending_constructors_.push_back(std::move(wanted));
    }
    if (!pending_.empty()) solve_fields(false);
  }
  if (!last) return;
  const bool failed = failed_;
  for (const PendingConstructor& wanted : pending_constructors_)
    if (!failed)
      report(Code::type_ambiguous, wanted.location,
             "Type is ambiguous: it must be a sum type with the constructor " +
                 constructor_text(store_, wanted.name, wanted.payload) + "; a type annotation resolves it");
  pending_constructors_.clear();
}

Ty Checker::infer_match(const Expr& expr, const MatchExpr& match, Ty expected) {
  const Ty value = infer(*match.x);
  const auto inside = static_cast<BinderId>(store_.binder_count());
  const std::uint32_t level = level_;
  std::vector<Branch> branches;
  Exhaustive all{{}, value, expr.location, true};
  for (const MatchCase& next : match.cases) {
    Scope scope(*this);
    ++level_;
    Names names;
    pattern(*next.pattern, value, names);
    all.patterns.push_back(next.pattern.get());
    ++level_;
    const Ty hint = branches.empty() ? expected : branches.front().type;
    const Ty type = infer(*next.body, hint);
    branches.push_back({next.body.get(), type});
  }
  exhaustive_.push_back(std::move(all));
  const Ty type = join_branches(expr, branches, inside, "match");
  store_.lower_level(type, level);
  return type;
}

// Now that all types are known: what no pattern takes.
void Checker::check_matches() {
  for (const auto& [patterns, type, location, match] : std::exchange(exhaustive_, {})) {
    if (failed_) continue;
    const Coverage coverage = cover(store_, patterns, type);
    for (const Pattern* redundant : coverage.redundant)
      warn(Code::warning_no_effect, redundant->location,
           "This case is never reached: those before it match all of it.");
    if (!coverage.missing) continue;
    report(Code::type_mismatch, location,
           (match ? "Unmatched cases in match expression: " : "Refutable pattern not allowed here. Unmatched cases: ") +
               *coverage.missing);
  }
}

}  // namespace apl::frontend
