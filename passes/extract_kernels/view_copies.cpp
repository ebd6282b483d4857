// A view costs nothing where an index function gives the positions of its elements. In two places a view is copied all
// the same, by each thread for itself and one element after the other:
//
//   a map returns a view as its row:
//     map(i < n, {A}, \{row} -> { let {t} = rearrange(row, (1, 0)) in {t} })
//     => map(i < n, {A}, \{row} -> { let {t} = rearrange(row, (1, 0))
//                                    let {c} = map(j < k, l < m, {}, \{} -> t[j, l]) in {c} })
//   a reshape joins dims that are not neighbours in memory, so that it has no index function:
//     let {r} = reshape(t, [k*m])
//     => let {c} = map(j < k, l < m, {}, \{} -> t[j, l])   let {r} = reshape(c, [k*m])
//
// The rewrite names these copies, as maps over the elements, and the nest of maps around them gets their dims. A
// reshape of a returned row becomes a reshape of the whole array. The copy for a reshape moves out of a map if it needs
// only the map's indices, its rows and views of them: it becomes a map over the indices that it needs, before that map,
// and so on outwards. Then the elements are copied once, however many indices of the map read them.
//
// Refuses: views whose shape depends on the map's index; views of checked slices, since the check belongs to the thread
// (extract_kernels/checks removes such checks where it can); maps with an attribute that asks for a sequential lambda.
// Short rows of a known number of elements stay in the thread if its lambda does other work.
#include "passes/extract_kernels/view_copies.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "ir/attributes.h"
#include "ir/layouts.h"
#include "ir/walk.h"
#include "passes/analysis/cheap.h"
#include "passes/extract_kernels/nest.h"

namespace apl {

namespace {

constexpr std::int64_t kShortRow = 32;  // elements that a thread copies with what else it does

// The array that a view is of; nullopt for what is no view, and for checked indices.
std::optional<Value> viewed(const Stm& stm, const ValueTable& values) {
  if (!stm.certificates.empty()) return std::nullopt;
  if (const auto* view = get_if<Rearrange>(stm)) return view->array;
  if (const auto* view = get_if<Reshape>(stm)) return view->array;
  const Index* view = get_if<Index>(stm);
  const bool rows = view != nullptr && !view->checked && values.type(stm.pattern.front()).is_array();
  return rows ? std::optional(view->array) : std::nullopt;
}

bool stays_sequential(const Stm& stm) {
  return asks_for_sequential(stm) || has_attribute(stm.attributes, attribute::sequential_inner);
}

// Copies of views of one shape: map(j < .., {}, \{} -> {views[j], ..}).
Stm copy_of(const std::vector<Value>& views, Location location, ValueTable& values) {
  Screma map;
  std::vector<DimIndex> here;
  for (const Poly& size : values.type(views.front()).shape) {
    const std::optional<Value> symbol = size.symbol();
    map.widths.push_back(size);
    map.indices.push_back(
        values.add(Type::scalar(ScalarType::i64), "i_" + (symbol ? values.name(*symbol) : std::string("x"))));
    here.push_back(DimIndex::fix(Poly(map.indices.back())));
  }
  Stm copy{.pattern = {}, .op = {}, .location = location};
  std::vector<Stm> stms;
  std::vector<Operand> elements;
  for (const Value view : views) {
    const Type type = values.type(view);
    copy.pattern.push_back(values.add(Type::array(type.element, type.shape), values.name(view)));
    const Value element = values.add(Type::scalar(type.element), values.name(view));
    stms.push_back({.pattern = {element}, .op = Index{view, here}, .location = location});
    elements.emplace_back(element);
  }
  map.map.body = make_body(std::move(stms), std::move(elements));
  copy.op = std::move(map);
  return copy;
}

// What a map binds for its lambda, and what that binds itself.
std::set<Value> locals_of(const Screma& map) {
  std::set<Value> local(map.indices.begin(), map.indices.end());
  local.insert(map.map.params.begin(), map.map.params.end());
  for (const Stm& stm : map.map.body->stms) local.insert(stm.pattern.begin(), stm.pattern.end());
  return local;
}

bool is_regular(const Type& array, const std::set<Value>& local) {
  bool result = true;
  for (const Poly& size : array.shape) size.for_each_symbol([&](Value v) { result = result && !local.contains(v); });
  return result;
}

// ---- rows that maps return

class RowCopies {
 public:
  RowCopies(ValueTable& values, std::vector<ViewCopy>& said) : values_(values), said_(said) {}

  BodyPtr body(const BodyPtr& old) {
    const std::size_t before = said_.size();
    std::vector<Stm> stms;
    for (const Stm& stm : old->stms) statement(stm, stms);
    return said_.size() == before ? old : make_body(std::move(stms), old->results);
  }

  void statement(const Stm& stm, std::vector<Stm>& out) {
    if (stays_sequential(stm)) {
      out.push_back(stm);
      return;
    }
    Stm inner = stm;
    inner.op = map_bodies(stm.op, [&](const BodyPtr& nested) { return body(nested); });
    const Screma* map = get_if<Screma>(inner);
    if (map != nullptr && map->reduces.empty()) {
      split(std::move(inner), out);
    } else {
      out.push_back(std::move(inner));
    }
  }

 private:
  // A result that is a view.
  struct Row {
    Value core;      // the row without the reshapes behind it
    bool is_copied;  // else the lambda makes the core
  };

  std::optional<Row> row_of(const Body& body, const Operand& result, bool only_views) const {
    if (!result.is_value() || !values_.type(result).is_array()) return std::nullopt;
    Value core = result.value(), root = core;
    bool reshapes = true;
    const Stm* stm = defining_stm(body, root);
    for (; stm != nullptr; stm = defining_stm(body, root)) {
      const std::optional<Value> array = viewed(*stm, values_);
      if (!array) break;
      reshapes = reshapes && std::holds_alternative<Reshape>(stm->op);
      if (reshapes) core = *array;
      root = *array;
    }
    if (stm != nullptr && (get_if<Index>(*stm) != nullptr || !stm->certificates.empty())) return std::nullopt;
    const bool is_made = stm != nullptr && core == root;
    if (is_made && core == result.value()) return std::nullopt;
    if (!is_made && !only_views && is_small(core)) return std::nullopt;
    return Row{core, !is_made};
  }

  // The results of a map that are views, as arrays that it makes; reshapes behind them are of the whole arrays.
  void split(Stm stm, std::vector<Stm>& out) {
    const Stm source = stm;
    Screma map = std::get<Screma>(std::move(stm.op));
    const std::set<Value> local = locals_of(map);
    const bool only_views =
        std::ranges::all_of(map.map.body->stms, [&](const Stm& inner) { return viewed(inner, values_).has_value(); });
    std::vector<Operand> results = map.map.body->results;
    std::vector<Value> copied;
    std::vector<Stm> reshapes;
    bool any = false;
    for (std::size_t k = 0; k < results.size(); ++k) {
      const std::optional<Row> row = row_of(*map.map.body, results[k], only_views);
      if (!row || !is_regular(values_.type(row->core), local) || !is_regular(values_.type(results[k]), local)) continue;
      if (row->is_copied) copied.push_back(row->core);
      if (results[k] != Operand(row->core)) {
        const Value whole = std::exchange(
            stm.pattern[k], values_.add(values_.type(row->core).array_of(map.widths), values_.name(stm.pattern[k])));
        reshapes.push_back({.pattern = {whole},
                            .op = Reshape{stm.pattern[k], values_.type(whole).shape},
                            .location = source.location});
      }
      results[k] = Operand(row->core);
      any = true;
    }
    if (any) {
      said_.push_back({ViewCopy::Why::row, source});
      map.map.body = with_copies(*map.map.body, copied, std::move(results), source.location);
    }
    stm.op = std::move(map);
    out.push_back(std::move(stm));
    std::ranges::move(reshapes, std::back_inserter(out));
  }

  // The body with copies in place of the views among its results, and without views that nothing reads any more.
  BodyPtr with_copies(const Body& old, const std::vector<Value>& views, std::vector<Operand> results,
                      Location location) {
    std::vector<Stm> stms = old.stms;
    Substitution copies;
    for (const std::vector<Value>& alike : of_one_shape(views)) {
      stms.push_back(copy_of(alike, location, values_));
      for (std::size_t k = 0; k < alike.size(); ++k) copies.insert_or_assign(alike[k], Operand(stms.back().pattern[k]));
    }
    std::set<Value> read;
    for (Operand& result : results) {
      result = substitute(result, copies);
      if (result.is_value()) read.insert(result.value());
    }
    std::vector<Stm> kept;
    for (std::size_t k = stms.size(); k-- > 0;) {
      if (viewed(stms[k], values_) && !read.contains(stms[k].pattern.front())) continue;
      read.merge(free_values(stms[k].op, values_));
      kept.push_back(std::move(stms[k]));
    }
    std::ranges::reverse(kept);
    return make_body(std::move(kept), std::move(results));
  }

  // The views in groups of one shape each, every view once.
  std::vector<std::vector<Value>> of_one_shape(const std::vector<Value>& views) const {
    std::vector<std::vector<Value>> groups;
    std::set<Value> seen;
    for (const Value view : views) {
      if (!seen.insert(view).second) continue;
      const auto alike = std::ranges::find_if(groups, [&](const std::vector<Value>& group) {
        return values_.type(group.front()).shape == values_.type(view).shape;
      });
      if (alike == groups.end()) {
        groups.push_back({view});
      } else {
        alike->push_back(view);
      }
    }
    return groups;
  }

  bool is_small(Value array) const {
    const std::optional<std::int64_t> count = product(values_.type(array).shape).constant();
    return count && *count <= kShortRow;
  }

  ValueTable& values_;
  std::vector<ViewCopy>& said_;
};

// ---- reshapes without an index function

class ReshapeCopies {
 public:
  ReshapeCopies(Function& function, std::vector<ViewCopy>& said)
      : function_(function), values_(function.values), said_(said) {}

  void run() {
    // A reshape of a copy may have an index function where that of the reshape had none.
    for (std::size_t before = said_.size() + 1; before != said_.size();) {
      before = said_.size();
      const Layouts layouts(function_);
      function_.body = body(function_.body, layouts);
    }
  }

 private:
  BodyPtr body(const BodyPtr& old, const Layouts& layouts) {
    const std::size_t before = said_.size();
    std::vector<Stm> stms;
    for (const Stm& stm : old->stms) {
      const Reshape* reshape = get_if<Reshape>(stm);
      // A reshape of a copy that still has none has sizes that are not known to agree: another copy would not help.
      if (reshape != nullptr && layouts.find(stm.pattern.front()) == nullptr &&
          layouts.find(reshape->array) != nullptr && !copies_.contains(reshape->array)) {
        Stm copy = copy_of({reshape->array}, stm.location, values_);
        const Value copied = copy.pattern.front();
        copies_.insert(copied);
        stms.push_back(std::move(copy));
        stms.push_back(stm);
        stms.back().op = Reshape{copied, reshape->shape};
        said_.push_back({ViewCopy::Why::reshape, stm});
        continue;
      }
      Stm inner = stm;
      inner.op = map_bodies(stm.op, [&](const BodyPtr& nested) { return body(nested, layouts); });
      if (Screma* screma = std::get_if<Screma>(&inner.op); screma != nullptr && !stays_sequential(inner))
        move_copies_out(*screma, inner, stms);
      stms.push_back(std::move(inner));
    }
    return said_.size() == before ? old : make_body(std::move(stms), old->results);
  }

  // The copies of the lambda that need nothing of it but views move before the map.
  void move_copies_out(Screma& map, const Stm& at, std::vector<Stm>& out) {
    std::vector<Stm> stms = map.map.body->stms;
    bool moved = false;
    for (Stm& stm : stms) {
      if (stm.pattern.size() != 1 || !copies_.contains(stm.pattern.front())) continue;
      std::optional<std::vector<Stm>> needed = views_for(map, stm);
      if (!needed) continue;
      stm = widened(map, stm, std::move(*needed), at, out);
      moved = true;
    }
    if (moved) map.map.body = make_body(std::move(stms), map.map.body->results);
  }

  // The statements of the lambda that the copy needs; nullopt: it needs more than views, or its shape is the thread's.
  std::optional<std::vector<Stm>> views_for(const Screma& map, const Stm& copy) const {
    std::set<Value> roots = free_values(copy.op, values_);
    std::vector<Stm> needed;
    const std::vector<Stm>& stms = map.map.body->stms;
    for (std::size_t k = stms.size(); k-- > 0;) {
      const Stm& stm = stms[k];
      if (std::ranges::none_of(stm.pattern, [&](Value v) { return roots.contains(v); })) continue;
      roots.merge(free_values(stm.op, values_));
      needed.insert(needed.begin(), stm);
    }
    if (!is_cheap(Body{.stms = needed}, values_) || !is_regular(values_.type(copy.pattern.front()), locals_of(map)))
      return std::nullopt;
    return needed;
  }

  // The copy for all indices of the map is appended to `out`; in the lambda its place is taken by the statement that
  // this returns.
  Stm widened(const Screma& map, const Stm& copy, std::vector<Stm> needed, const Stm& at, std::vector<Stm>& out) {
    std::set<Value> used = free_values(copy.op, values_);
    for (const Stm& stm : needed) used.merge(free_values(stm.op, values_));
    const bool rows = std::ranges::any_of(map.map.params, [&](Value v) { return used.contains(v); });
    Screma outer;
    Substitution fresh;
    std::vector<DimIndex> here;
    for (std::size_t k = 0; k < map.indices.size(); ++k) {
      if (!rows && !used.contains(map.indices[k])) continue;
      outer.widths.push_back(map.widths[k]);
      outer.indices.push_back(values_.add(values_.type(map.indices[k]), values_.name(map.indices[k])));
      fresh.insert_or_assign(map.indices[k], Operand(outer.indices.back()));
      here.push_back(DimIndex::fix(Poly(map.indices[k])));
    }
    for (std::size_t k = 0; k < map.inputs.size(); ++k) {
      const Value param = map.map.params[k];
      if (!used.contains(param)) continue;
      outer.inputs.push_back(map.inputs[k]);
      outer.map.params.push_back(values_.add(values_.type(param), values_.name(param)));
      fresh.insert_or_assign(param, Operand(outer.map.params.back()));
    }
    needed.push_back(copy);
    const Value row = copy.pattern.front();
    outer.map.body = copy_fresh(make_body(std::move(needed), {Operand(row)}), fresh, values_, values_);
    if (outer.widths.empty()) {
      std::ranges::copy(outer.map.body->stms, std::back_inserter(out));
      const Value alone = outer.map.body->results.front().value();
      copies_.insert(alone);
      return {.pattern = copy.pattern, .op = Use{Operand(alone)}, .location = copy.location};
    }
    const Value whole = values_.add(values_.type(row).array_of(outer.widths), values_.name(row));
    copies_.insert(whole);
    out.push_back(
        {.pattern = {whole}, .op = std::move(outer), .location = copy.location, .certificates = at.certificates});
    return {.pattern = copy.pattern, .op = Index{whole, std::move(here)}, .location = copy.location};
  }

  Function& function_;
  ValueTable& values_;
  std::vector<ViewCopy>& said_;
  std::set<Value> copies_;  // arrays that are copies of views
};

}  // namespace

std::vector<ViewCopy> make_view_copies(Function& function) {
  std::vector<ViewCopy> said;
  function.body = RowCopies(function.values, said).body(function.body);
  ReshapeCopies(function, said).run();
  return said;
}

std::optional<std::vector<Stm>> with_copied_rows(const Stm& map, ValueTable& values) {
  std::vector<ViewCopy> said;
  std::vector<Stm> stms;
  RowCopies(values, said).statement(map, stms);
  return said.empty() ? std::nullopt : std::optional(std::move(stms));
}

}  // namespace apl
