// What may be of either of two types: sizes that nothing says yet are linked, and others that differ are unknown.
#include <range/v3/view/zip.hpp>

#include <algorithm>

#include "frontend/types/unify.h"

namespace apl::frontend {

void Unifier::keep_open(KeepOpen keep) {
  keep_open_ = keep;
  met_open_size_ = linked_loop_ = false;
  open_sizes_.clear();
}

std::size_t Unifier::open_parameters() const {
  std::unordered_set<std::uint32_t> open;
  for (const auto& [size, kept] : open_sizes_)
    if (const Size root = store_.find(size); kept == KeepOpen::of_functions && store_.get_if<SizeVar>(root))
      open.insert(root.id);
  return open.size();
}

void Unifier::add_open_sizes(Ty type, KeepOpen kept) {
  store_.walk(
      type, [](Ty, const TyNode&) {},
      [&](Size size, const SizeNode& node) {
        if (std::holds_alternative<SizeVar>(node)) open_sizes_.push_back({size, kept});
      });
}

bool Unifier::link_variable(Size variable, Size size, BinderId inner) {
  const auto* var = store_.get_if<SizeVar>(variable);
  if (var == nullptr) return false;
  bool of_loop = false;
  for (const OpenSize& open : open_sizes_) {
    if (store_.find(open.size) != store_.find(variable)) continue;
    met_open_size_ = true;
    if (open.kept <= keep_open_) return false;
    of_loop = of_loop || open.kept == KeepOpen::of_functions_and_loops;
  }
  const std::uint32_t level = var->level;
  bool possible = true;
  store_.walk_size(size, [&](Size s, const SizeNode& node) {
    const auto* open = std::get_if<SizeVar>(&node);
    const auto* name = std::get_if<SizeName>(&node);
    possible = possible && s != store_.find(variable) && !(open && open->level > level) &&
               !(name && (name->binder >= inner || store_.binder(name->binder).level > level));
  });
  if (possible) store_.bind(variable, size);
  linked_loop_ = linked_loop_ || (possible && of_loop && keep_open_ == KeepOpen::of_functions);
  return possible;
}

void Unifier::link(Size expected, Size actual, BinderId inner, int depth) {
  if (depth <= 0 || same(expected, actual) || link_variable(expected, actual, inner) ||
      link_variable(actual, expected, inner))
    return;
  const auto a = store_.parts_of(expected);
  const auto b = store_.parts_of(actual);
  for (std::size_t k = 0; a && b && a->same_operation(*b) && k < a->parts.size(); ++k)
    link(a->parts[k], b->parts[k], inner, depth - 1);
}

void Unifier::link(Ty expected, Ty actual, BinderId inner) {
  std::unordered_set<std::uint64_t> done;
  std::vector<std::pair<Ty, Ty>> todo = {{expected, actual}};
  while (!todo.empty()) {
    const auto [x, y] = std::pair(store_.find(todo.back().first), store_.find(todo.back().second));
    todo.pop_back();
    if (x == y || !done.insert(std::uint64_t{x.id} << 32U | y.id).second) continue;
    const auto* a = store_.get_if<TyArray>(x);
    const auto* b = store_.get_if<TyArray>(y);
    const auto* r = store_.get_if<TyRecord>(x);
    const auto* s = store_.get_if<TyRecord>(y);
    if (a && b) {
      link(a->size, b->size, inner, kMaxUnifiedSizeDepth);
      todo.emplace_back(a->element, b->element);
    } else if (r && s && r->fields.size() == s->fields.size()) {
      for (const auto& [p, q] : ranges::views::zip(r->fields, s->fields)) todo.emplace_back(p.second, q.second);
    }
    const auto* abstract = store_.get_if<TyAbstract>(x);
    const auto* other = store_.get_if<TyAbstract>(y);
    if (abstract && other && abstract->id == other->id) {
      for (const auto& [p, q] : ranges::views::zip(abstract->sizes, other->sizes))
        link(p, q, inner, kMaxUnifiedSizeDepth);
      for (const auto& [p, q] : ranges::views::zip(abstract->types, other->types)) todo.emplace_back(p, q);
    }
    const auto* t = store_.get_if<TySum>(x);
    const auto* u = store_.get_if<TySum>(y);
    if (t && u && t->constructors.size() == u->constructors.size())
      for (const auto& [one, other] : ranges::views::zip(t->constructors, u->constructors))
        for (const auto& [p, q] : ranges::views::zip(one.second, other.second)) todo.emplace_back(p, q);
  }
}

std::optional<Clash> Unifier::join_sums(Ty expected, Ty actual, const Differ& differ, Ty& joined) {
  TySum a = *store_.get_if<TySum>(expected);
  const TySum b = *store_.get_if<TySum>(actual);
  const auto same_form = [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.size() == y.second.size();
  };
  if (!std::ranges::equal(a.constructors, b.constructors, same_form)) return Clash{.a = expected, .b = actual};
  bool changed = false;
  for (std::size_t k = 0; k < a.constructors.size(); ++k)
    for (std::size_t p = 0; p < a.constructors[k].second.size(); ++p) {
      Ty& part = a.constructors[k].second[p];
      Ty both;
      if (auto clash = join_parts(part, b.constructors[k].second[p], differ, both)) return clash;
      changed = changed || both != store_.find(part);
      part = both;
    }
  if (changed) joined = store_.sum(std::move(a.constructors));
  return std::nullopt;
}

std::optional<Clash> Unifier::join_abstract(Ty expected, Ty actual, const Differ& differ, Ty& joined) {
  TyAbstract a = *store_.get_if<TyAbstract>(expected);
  const TyAbstract b = *store_.get_if<TyAbstract>(actual);
  if (a.id != b.id) return Clash{.a = expected, .b = actual};
  bool changed = false;
  for (auto&& [type, other] : ranges::views::zip(a.types, b.types)) {
    Ty both;
    if (auto clash = join_parts(type, other, differ, both)) return clash;
    changed = changed || both != store_.find(type);
    type = both;
  }
  for (auto&& [size, other] : ranges::views::zip(a.sizes, b.sizes)) {
    if (same(size, other)) continue;
    size = differ(size, other);
    changed = true;
  }
  if (changed) joined = store_.abstract(a.id, std::move(a.types), std::move(a.sizes));
  return std::nullopt;
}

std::optional<Clash> Unifier::join(Ty expected, Ty actual, const Differ& differ, Ty& joined) {
  joined_.clear();
  return join_parts(expected, actual, differ, joined);
}

std::optional<Clash> Unifier::join_parts(Ty expected, Ty actual, const Differ& differ, Ty& joined) {
  expected = store_.find(expected);
  actual = store_.find(actual);
  joined = expected;
  if (expected == actual) return std::nullopt;
  if (depth_ >= kMaxTypeDepth) return Clash{.a = expected, .b = actual};
  const std::uint64_t pair = std::uint64_t{expected.id} << 32U | actual.id;
  if (auto found = joined_.find(pair); found != joined_.end()) return joined = found->second, std::nullopt;
  std::optional<Clash> clash;
  ++depth_;
  if (store_.get_if<TyArray>(expected) && store_.get_if<TyArray>(actual)) {
    const TyArray a = *store_.get_if<TyArray>(expected);
    const TyArray b = *store_.get_if<TyArray>(actual);
    Ty element;
    clash = join_parts(a.element, b.element, differ, element);
    const bool same_size = clash || same(a.size, b.size);
    if (!same_size || element != store_.find(a.element))
      joined = store_.array(same_size ? a.size : differ(a.size, b.size), element);
  } else if (store_.get_if<TyRecord>(expected) && store_.get_if<TyRecord>(actual)) {
    TyRecord a = *store_.get_if<TyRecord>(expected);
    const TyRecord b = *store_.get_if<TyRecord>(actual);
    const auto label = [](const auto& x, const auto& y) { return x.first == y.first; };
    bool changed = false;
    if (!std::ranges::equal(a.fields, b.fields, label)) clash = Clash{.a = expected, .b = actual};
    for (std::size_t k = 0; k < a.fields.size() && !clash; ++k) {
      Ty field;
      clash = join_parts(a.fields[k].second, b.fields[k].second, differ, field);
      changed = changed || field != store_.find(a.fields[k].second);
      a.fields[k].second = field;
    }
    if (changed && !clash) joined = store_.record(std::move(a.fields));
  } else if (store_.get_if<TySum>(expected) && store_.get_if<TySum>(actual)) {
    clash = join_sums(expected, actual, differ, joined);
  } else if (store_.get_if<TyAbstract>(expected) && store_.get_if<TyAbstract>(actual)) {
    clash = join_abstract(expected, actual, differ, joined);
  } else {
    --depth_;
    equal_.clear();
    clash = unify(expected, actual);
    ++depth_;
    joined = store_.find(expected);
  }
  --depth_;
  if (!clash) joined_.emplace(pair, joined);
  return clash;
}

}  // namespace apl::frontend
