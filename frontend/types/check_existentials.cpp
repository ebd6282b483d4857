// Sizes of results that only exist once a function is applied, passed through type parameters:
//
//   def apply '^a '^b (f: a -> b) (x: a) : b = f x        apply iota n : ?[k].[k]i64
//
// A lifted type parameter may become a type with sizes that its argument binds. Each use of the parameter in the
// result has sizes of its own, known once the application is evaluated; in what a result takes they cannot be known.
#include <algorithm>
#include <utility>

#include "frontend/types/checker.h"

namespace apl::frontend {

namespace {

// Types whose parts are shared may be far larger written out; those of programs are not.
constexpr std::size_t kMaxOpened = 2000;

}  // namespace

// The type with each use of one of these variables as a variable of its own.
Ty Checker::with_own_uses(Ty type, const std::vector<Ty>& variables, Opening& opening) {
  type = store_.find(type);
  const TyNode node = store_.node(type);
  if (std::holds_alternative<TyVar>(node)) {
    if (std::ranges::none_of(variables, [&](Ty t) { return store_.find(t) == type; })) return type;
    const Ty use = fresh({});
    opening.uses.emplace(use.id, type);
    return use;
  }
  if (const auto* arrow = std::get_if<TyArrow>(&node)) {
    const Ty from = with_own_uses(arrow->from, variables, opening);
    return store_.arrow(from, with_own_uses(arrow->to, variables, opening), arrow->param, arrow->unknown);
  }
  const auto* record = std::get_if<TyRecord>(&node);
  if (record == nullptr || record->fields.empty()) return type;
  auto fields = record->fields;
  for (auto& [name, field] : fields) field = with_own_uses(field, variables, opening);
  return store_.record(std::move(fields));
}

// The type with its uses as what the variables became, and sizes in place of the markers: those that `sizes` has, or
// new ones that `make` gives for the size of an array. What a function takes has no new ones: `possible` is false then.
Ty Checker::opened(Ty type, Opening& opening, TypeMap sizes, const std::function<Size()>& make) {
  if (const auto use = opening.uses.find(store_.find(type).id); use != opening.uses.end())
    return opened(use->second, opening, {}, make);
  const auto is_new = [&](const auto& mentioning) {
    return std::ranges::any_of(opening.markers, [&](BinderId marker) {
      return !sizes.sizes.contains(marker) && store_.mentions(mentioning, marker);
    });
  };
  // First those that are the size of an array: other sizes may be computed from them.
  with_sizes(type, [&](Size size) {
    if (const auto* name = store_.get_if<SizeName>(size); name && is_new(size)) {
      const BinderId marker = name->binder;
      sizes.sizes.emplace(marker, make());
    }
    return size;
  });
  type = with_sizes(type, [&](Size size) { return is_new(size) ? make() : store_.substitute(size, sizes); });
  const TyNode node = store_.node(type);
  if (const auto* record = std::get_if<TyRecord>(&node); record && !record->fields.empty()) {
    auto fields = record->fields;
    for (auto& [name, field] : fields) field = opened(field, opening, sizes, make);
    return store_.record(std::move(fields));
  }
  const auto* arrow = std::get_if<TyArrow>(&node);
  if (arrow == nullptr) return type;
  const Ty from = opened(arrow->from, opening, sizes, [&] {
    opening.possible = false;
    return store_.size_variable(level_, {});
  });
  std::vector<BinderId> unknown = arrow->unknown;
  const Ty to = opened(arrow->to, opening, sizes, [&] {
    unknown.push_back(store_.add_binder({.kind = Binder::Kind::unknown_size,
                                         .name = "this result",
                                         .location = {},
                                         .level = level_ + 1,
                                         .type = store_.scalar(ScalarType::i64)}));
    return store_.name(unknown.back());
  });
  return store_.arrow(from, to, arrow->param, std::move(unknown));
}

// The variables that functions among the parameters take.
void Checker::find_taken(const std::vector<Ty>& wanted, const std::vector<Ty>& variables, Opening& opening) const {
  const auto is_variable = [&](Ty type) {
    return std::ranges::any_of(variables, [&](Ty t) { return store_.find(t) == type; });
  };
  const auto no_size = [](Size, const SizeNode&) {};
  const auto take = [&](Ty type, const TyNode&) {
    if (is_variable(type)) opening.taken.push_back(type);
  };
  for (Ty argument : wanted)
    store_.walk(
        argument,
        [&](Ty, const TyNode& node) {
          if (const auto* arrow = std::get_if<TyArrow>(&node)) store_.walk(arrow->from, take, no_size);
        },
        no_size);
}

// What the application gives, now that its arguments have said what the variables are. nullopt where no order of
// evaluation makes the sizes known in time.
std::optional<Ty> Checker::close_uses(Ty result, Opening opening, const Expr& expr) {
  if (opening.markers.empty()) {
    for (const auto& [use, variable] : opening.uses) store_.bind(Ty{use}, variable);
    return result;
  }
  for (const auto& [use, variable] : opening.uses)
    if (store_.tree_size(variable) > kMaxOpened) return std::nullopt;
  const Ty type = opened(result, opening, {}, [&] { return unknown_size("this result", expr.location, expr.id); });
  for (Ty taken : opening.taken)
    for (BinderId marker : opening.markers) opening.possible = opening.possible && !store_.mentions(taken, marker);
  return opening.possible ? std::optional(type) : std::nullopt;
}

}  // namespace apl::frontend
