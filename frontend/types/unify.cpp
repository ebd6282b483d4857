#include "frontend/types/unify.h"

#include <range/v3/view/zip.hpp>

#include <algorithm>
#include <functional>
#include <utility>

#include "frontend/syntax/ast.h"
#include "ir/poly.h"

namespace apl::frontend {

namespace {

constexpr std::uint32_t kEveryLevel = UINT32_MAX;    // a variable that may become any size in sight
constexpr std::uint32_t kNoLevel = kEveryLevel - 1;  // a name that no other variable may become
constexpr std::size_t kMaxTerms = 64;
constexpr std::size_t kMaxDegree = 64;
// Names that are bound to names that are bound ...
constexpr int kMaxLets = 64;

std::size_t degree(const Poly& poly) {
  std::size_t result = 0;
  for (const Term& term : poly.terms()) result = std::max(result, term.factors.size());
  return result;
}

// A size as a polynomial over binders and operations of other kinds, if it has no variable and is no larger than people
// write.
class Polynomials {
 public:
  using Same = std::function<bool(Size, Size)>;
  Polynomials(const TypeStore& store, const Unifier::Lets& lets, const Same& same)
      : store_(store), lets_(lets), same_(same) {}

  std::optional<Poly> of(Size size) {
    size = store_.find(size);
    if (auto found = done_.find(size.id); found != done_.end()) return found->second;
    ++depth_;
    std::optional<Poly> result = compute(size);
    --depth_;
    if (result && result->terms().size() > kMaxTerms) result = std::nullopt;
    done_.emplace(size.id, result);
    return result;
  }

 private:
  std::optional<Poly> compute(Size size) {
    const SizeNode& node = store_.node(size);
    if (const auto* constant = std::get_if<SizeConst>(&node)) return Poly(constant->value);
    if (const auto* name = std::get_if<SizeName>(&node)) {
      const auto let = lets_.find(name->binder);
      if (let != lets_.end() && depth_ < kMaxLets)
        if (auto bound = of(let->second)) return bound;
      return Poly(Value{name->binder});
    }
    if (const auto* expr = std::get_if<SizeExpr>(&node)) {
      const auto* number =
          expr->kind == SizeExpr::Kind::literal ? std::get_if<NumberLiteral>(&expr->expr->node) : nullptr;
      if (number && !number->is_float) return Poly(static_cast<std::int64_t>(number->integer));
      const auto known = std::ranges::find_if(atoms_, [&](Size atom) { return same_(atom, size); });
      const auto index = static_cast<std::uint32_t>(known - atoms_.begin());
      if (known == atoms_.end()) atoms_.push_back(size);
      return Poly(Value{kFirstAtom + index});
    }
    const auto* op = std::get_if<SizeOp>(&node);
    if (op == nullptr) return std::nullopt;
    const auto x = of(op->x);
    const auto y = of(op->y);
    if (!x || !y || (op->op == '*' && degree(*x) + degree(*y) > kMaxDegree)) return std::nullopt;
    return op->op == '+' ? *x + *y : op->op == '-' ? *x - *y : *x * *y;
  }

  static constexpr std::uint32_t kFirstAtom = 1U << 31U;  // above every binder
  const TypeStore& store_;
  const Unifier::Lets& lets_;
  const Same& same_;
  std::unordered_map<std::uint32_t, std::optional<Poly>> done_;
  std::vector<Size> atoms_;
  int depth_ = 0;
};

Constraint both(const Constraint& a, const Constraint& b) {
  Constraint result = a;
  if (a.scalars == 0)
    result.scalars = b.scalars;
  else if (b.scalars != 0)
    result.scalars = a.scalars & b.scalars;
  result.equality = a.equality || b.equality;
  result.first_order = a.first_order || b.first_order;
  result.regular = a.regular || b.regular;
  if (!a.first_order) result.reason = b.reason;
  return result;
}

}  // namespace

// What a name is bound to.
std::optional<Size> Unifier::definition(Size size) const {
  const auto* name = store_.get_if<SizeName>(size);
  const auto let = name ? lets_.find(name->binder) : lets_.end();
  return let == lets_.end() ? std::nullopt : std::optional(store_.find(let->second));
}

bool Unifier::identical(Size a, Size b, int depth) const {
  if (store_.find(a) == store_.find(b)) return true;
  const auto* n = store_.get_if<SizeName>(a);
  const auto* m = store_.get_if<SizeName>(b);
  if (n && m && n->binder == m->binder) return true;
  if (depth <= 0) return false;
  if (const auto bound = definition(a)) return identical(*bound, b, depth - 1);
  if (const auto bound = definition(b)) return identical(a, *bound, depth - 1);
  const auto x = store_.parts_of(a);
  const auto y = store_.parts_of(b);
  if (!x || !y || !x->same_operation(*y)) return false;
  for (const auto& [p, q] : ranges::views::zip(x->parts, y->parts))
    if (!identical(p, q, depth - 1)) return false;
  return true;
}

bool Unifier::same(Size a, Size b) const {
  if (identical(a, b, kMaxUnifiedSizeDepth)) return true;
  const Polynomials::Same atoms = [&](Size x, Size y) { return identical(x, y, kMaxUnifiedSizeDepth); };
  Polynomials polynomials(store_, lets_, atoms);
  const auto x = polynomials.of(a);
  const auto y = polynomials.of(b);
  return x && y && *x == *y;
}

std::optional<Clash> Unifier::check_scope(Size size, std::uint32_t level) const {
  std::optional<Clash> clash;
  store_.walk_size(size, [&](Size s, const SizeNode& node) {
    const auto* name = std::get_if<SizeName>(&node);
    if (name && store_.binder(name->binder).level > level)
      clash = Clash{.kind = Clash::Kind::scope, .s = s, .escaped = name->binder};
  });
  return clash;
}

std::optional<Clash> Unifier::unify_size_variable(Size variable, Size size) {
  const SizeVar var = *store_.get_if<SizeVar>(variable);
  bool occurs = false;
  store_.walk_size(size, [&](Size s, const SizeNode&) { occurs = occurs || s == store_.find(variable); });
  if (occurs) return Clash{.kind = Clash::Kind::sizes, .s = variable, .t = size};
  if (auto clash = check_scope(size, var.level)) return clash;
  store_.lower_level(size, var.level);
  store_.bind(variable, size);
  return std::nullopt;
}

std::optional<Clash> Unifier::unify(Size expected, Size actual) {
  expected = store_.find(expected);
  actual = store_.find(actual);
  if (expected == actual) return std::nullopt;
  if (store_.get_if<SizeVar>(actual)) return unify_size_variable(actual, expected);
  if (store_.get_if<SizeVar>(expected)) return unify_size_variable(expected, actual);
  if (same(expected, actual)) return std::nullopt;
  if (size_depth_ >= kMaxUnifiedSizeDepth) return Clash{.kind = Clash::Kind::sizes, .s = expected, .t = actual};
  const auto a = store_.parts_of(expected);
  const auto b = store_.parts_of(actual);
  bool equal = a && b && a->same_operation(*b);
  ++size_depth_;
  for (std::size_t k = 0; equal && k < a->parts.size(); ++k) equal = !unify(a->parts[k], b->parts[k]);
  // A name may be bound to an operation with variables.
  if (const auto bound = a ? std::nullopt : definition(expected))
    equal = !unify(*bound, actual);
  else if (const auto given = b ? std::nullopt : definition(actual))
    equal = !unify(expected, *given);
  --size_depth_;
  if (equal) return std::nullopt;
  return Clash{.kind = Clash::Kind::sizes, .s = expected, .t = actual};
}

std::optional<Clash> Unifier::require(Ty type, const Constraint& constraint) {
  type = store_.find(type);
  if (constraint.scalars != 0) {
    if (store_.get_if<TyError>(type)) return std::nullopt;
    const auto* var = store_.get_if<TyVar>(type);
    const auto scalar = store_.as_scalar(type);
    const bool possible =
        var ? (both(var->constraint, constraint).scalars != 0) : scalar && contains(constraint.scalars, *scalar);
    if (!possible) return Clash{.kind = Clash::Kind::scalar, .a = type, .b = type};
    if (var) store_.constrain(type, both(var->constraint, constraint));
    return std::nullopt;
  }
  if (!constraint.equality && !constraint.first_order && !constraint.regular) return std::nullopt;
  std::vector<Ty> variables;
  std::optional<Clash> clash;
  store_.walk(
      type,
      [&](Ty t, const TyNode& node) {
        const auto* param = std::get_if<TyParam>(&node);
        const auto* abstract = std::get_if<TyAbstract>(&node);
        const bool function = std::holds_alternative<TyArrow>(node);
        const bool lifted = (param && store_.type_param(param->param).lifted) ||
                            (abstract && store_.abstract_info(abstract->id).lifted);
        const bool size_lifted = (param && store_.type_param(param->param).size_lifted) ||
                                 (abstract && store_.abstract_info(abstract->id).size_lifted);
        const bool compared = (!param || store_.type_param(param->param).constraint.equality) &&
                              (!abstract || store_.abstract_info(abstract->id).constraint.equality);
        if (std::holds_alternative<TyVar>(node)) variables.push_back(t);
        if (constraint.equality && (function || !compared))
          clash = Clash{.kind = Clash::Kind::equality, .b = t};
        else if ((constraint.first_order && (function || lifted)) || (constraint.regular && size_lifted))
          clash = Clash{.kind = Clash::Kind::functional, .b = t, .reason = constraint.reason};
      },
      [](Size, const SizeNode&) {});
  if (clash) return clash;
  for (Ty variable : variables)
    store_.constrain(variable, both(store_.get_if<TyVar>(variable)->constraint, constraint));
  return std::nullopt;
}

std::optional<Clash> Unifier::unify_variable(Ty variable, Ty type, bool swapped) {
  const TyVar var = *store_.get_if<TyVar>(variable);
  bool occurs = false;
  store_.walk(
      type, [&](Ty t, const TyNode&) { occurs = occurs || t == store_.find(variable); }, [](Size, const SizeNode&) {});
  if (occurs) return Clash{.kind = Clash::Kind::occurs, .a = variable, .b = type};
  if (const auto escaped = store_.free_param(type, var.level))
    return Clash{.kind = Clash::Kind::scope, .b = store_.param(*escaped), .escaped = kNoId};
  if (const auto escaped = store_.free_sizes(type, var.level); !escaped.empty()) {
    const bool own = std::ranges::all_of(escaped, [&](BinderId b) { return store_.binder(b).level == kNoLevel; });
    const auto is_variable = [&](Ty t) { return store_.find(t) == store_.find(variable); };
    const bool opens = std::ranges::any_of(existential_, is_variable);
    const bool allowed = opens || std::ranges::any_of(hiding_, is_variable);
    if (!own || !allowed)
      return Clash{.kind = Clash::Kind::scope, .s = store_.name(escaped.front()), .escaped = escaped.front()};
    TypeMap marked;
    for (BinderId binder : escaped) {
      Binder marker = store_.binder(binder);
      marker.level = 0;
      const BinderId made = store_.add_binder(std::move(marker));
      if (opens) markers_.push_back(made);
      marked.sizes.emplace(binder, store_.name(made));
    }
    type = store_.substitute(type, marked);
  }
  if (auto refused = require(type, var.constraint)) {
    if (refused->kind == Clash::Kind::scalar)
      return swapped ? Clash{.kind = Clash::Kind::types, .a = type, .b = variable}
                     : Clash{.kind = Clash::Kind::types, .a = variable, .b = type};
    return refused;
  }
  store_.lower_level(type, var.level);
  store_.bind(variable, type);
  return std::nullopt;
}

std::optional<Clash> Unifier::unify_records(Ty expected, Ty actual) {
  const TyRecord a = *store_.get_if<TyRecord>(expected);
  const TyRecord b = *store_.get_if<TyRecord>(actual);
  if (a.fields.size() != b.fields.size()) return Clash{.a = expected, .b = actual};
  for (const auto& [x, y] : ranges::views::zip(a.fields, b.fields)) {
    if (x.first != y.first) return Clash{.a = expected, .b = actual};
    if (auto clash = unify(x.second, y.second)) {
      clash->fields = x.first + (clash->fields.empty() ? "" : "." + clash->fields);
      return clash;
    }
  }
  return std::nullopt;
}

std::optional<Clash> Unifier::unify_sums(Ty expected, Ty actual) {
  const TySum a = *store_.get_if<TySum>(expected);
  const TySum b = *store_.get_if<TySum>(actual);
  const auto differ = Clash{.a = expected, .b = actual};
  if (a.constructors.size() != b.constructors.size()) return differ;
  for (const auto& [x, y] : ranges::views::zip(a.constructors, b.constructors)) {
    if (x.first != y.first || x.second.size() != y.second.size()) return differ;
    for (const auto& [p, q] : ranges::views::zip(x.second, y.second))
      if (auto clash = unify(p, q)) return clash;
  }
  return std::nullopt;
}

std::optional<Clash> Unifier::unify_abstract(Ty expected, Ty actual) {
  const TyAbstract a = *store_.get_if<TyAbstract>(expected);
  const TyAbstract b = *store_.get_if<TyAbstract>(actual);
  if (a.id != b.id) return Clash{.a = expected, .b = actual};
  for (const auto& [x, y] : ranges::views::zip(a.types, b.types))
    if (auto clash = unify(x, y)) return clash;
  for (const auto& [x, y] : ranges::views::zip(a.sizes, b.sizes))
    if (auto clash = unify(x, y)) return clash;
  return std::nullopt;
}

// What the arrows bind is the same up to names. While their results are compared it has names that nothing outside can
// see, wherever the arrows themselves come from: one function is used at many places.
std::optional<Clash> Unifier::unify_arrows(Ty expected, Ty actual) {
  const TyArrow a = *store_.get_if<TyArrow>(expected);
  const TyArrow b = *store_.get_if<TyArrow>(actual);
  if (auto clash = unify(a.from, b.from)) return clash;
  const auto first_own = static_cast<BinderId>(store_.binder_count());
  const auto own_name = [&](BinderId binder) {
    Binder copy = store_.binder(binder);
    copy.level = kNoLevel;
    return store_.name(store_.add_binder(std::move(copy)));
  };
  TypeMap in_a, in_b;
  if (const BinderId param = a.param != kNoId ? a.param : b.param; param != kNoId) {
    const Size name = own_name(param);
    if (a.param != kNoId) in_a.sizes.emplace(a.param, name);
    if (b.param != kNoId) in_b.sizes.emplace(b.param, name);
  }
  // A size that nobody is promised may be any size, even one that depends on the argument.
  for (BinderId unknown : a.unknown) in_a.sizes.emplace(unknown, store_.size_variable(kEveryLevel, {}));
  for (BinderId unknown : b.unknown) in_b.sizes.emplace(unknown, own_name(unknown));
  auto clash = unify(store_.substitute(a.to, in_a), store_.substitute(b.to, in_b));
  if (clash && clash->kind == Clash::Kind::scope && clash->escaped != kNoId)
    clash->existential = clash->escaped >= first_own;
  return clash;
}

std::optional<Clash> Unifier::unify(Ty expected, Ty actual) {
  expected = store_.find(expected);
  actual = store_.find(actual);
  if (expected == actual) return std::nullopt;
  if (store_.get_if<TyError>(expected) || store_.get_if<TyError>(actual)) return std::nullopt;
  if (store_.get_if<TyVar>(actual)) return unify_variable(actual, expected, true);
  if (store_.get_if<TyVar>(expected)) return unify_variable(expected, actual, false);
  if (depth_ >= kMaxTypeDepth) return Clash{.a = expected, .b = actual};
  // Terms share their parts: a pair that was made equal once need not be walked again.
  if (depth_ == 0) equal_.clear();
  const std::uint64_t pair = std::uint64_t{expected.id} << 32U | actual.id;
  if (equal_.count(pair) > 0) return std::nullopt;
  ++depth_;
  std::optional<Clash> clash = Clash{.a = expected, .b = actual};
  if (store_.get_if<TyArray>(expected) && store_.get_if<TyArray>(actual)) {
    const TyArray a = *store_.get_if<TyArray>(expected);
    const TyArray b = *store_.get_if<TyArray>(actual);
    // A wrong element type says more than a wrong size; of sizes, the outermost.
    const auto sizes = unify(a.size, b.size);
    clash = unify(a.element, b.element);
    const bool of_sizes =
        clash && (clash->kind == Clash::Kind::sizes || (clash->kind == Clash::Kind::scope && clash->escaped != kNoId));
    if (!clash || (sizes && of_sizes)) clash = sizes;
  } else if (store_.get_if<TyRecord>(expected) && store_.get_if<TyRecord>(actual)) {
    clash = unify_records(expected, actual);
  } else if (store_.get_if<TyArrow>(expected) && store_.get_if<TyArrow>(actual)) {
    clash = unify_arrows(expected, actual);
  } else if (store_.get_if<TySum>(expected) && store_.get_if<TySum>(actual)) {
    clash = unify_sums(expected, actual);
  } else if (store_.get_if<TyAbstract>(expected) && store_.get_if<TyAbstract>(actual)) {
    clash = unify_abstract(expected, actual);
  } else if (store_.as_scalar(expected) && store_.as_scalar(expected) == store_.as_scalar(actual)) {
    clash = std::nullopt;
  } else if (store_.get_if<TyParam>(expected) && store_.get_if<TyParam>(actual) &&
             store_.get_if<TyParam>(expected)->param == store_.get_if<TyParam>(actual)->param) {
    clash = std::nullopt;
  }
  --depth_;
  if (!clash) equal_.insert(pair);
  return clash;
}

std::optional<Clash> Unifier::unify_open(Ty expected, Ty actual, const std::vector<Ty>& variables,
                                         std::vector<BinderId>& markers) {
  existential_ = variables;
  auto clash = unify(expected, actual);
  existential_.clear();
  markers.insert(markers.end(), markers_.begin(), markers_.end());
  markers_.clear();
  return clash;
}

}  // namespace apl::frontend
