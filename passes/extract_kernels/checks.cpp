// What a thread checks, asked once for all threads:
//
//   checked A[i, s + k] for i < m, k < q        0 <= s and s + q - 1 < size of the dim, by the ends of affine indices
//   assert(c, ...), c from outside              c
//   assert(f(Y[k, j]), ...) for i, j, k         all of f(Y[k, j]): a reduction over the dims that the check depends on,
//                                               if others are missing, so that it costs less than the nest
//   checked A[Y[i], k] for i, j, k              all of 0 <= Y[i] and Y[i] < size of the dim, likewise
//
// Checks in branches and loops stay: they may not be reached.
#include "passes/extract_kernels/checks.h"

#include <range/v3/view/zip.hpp>

#include <algorithm>
#include <set>

#include "ir/builder.h"
#include "ir/walk.h"
#include "passes/analysis/contractions.h"
#include "passes/analysis/in_bounds.h"
#include "passes/extract_kernels/nest.h"
#include "passes/extract_kernels/view_copies.h"

namespace apl {

namespace {

struct CheckedDim {
  Value index;
  Poly width;
};

bool has_checks(const Body& body) {
  bool any = false;
  for_each_stm(body, [&](const Stm& stm) {
    const Index* index = get_if<Index>(stm);
    any = any || std::holds_alternative<Assert>(stm.op) || (index != nullptr && index->checked);
  });
  return any;
}

class Unchecker {
 public:
  Unchecker(const Stm& map, ValueTable& values) : map_(map), values_(values) {
    const auto bind = [&](const Stm& stm) {
      bound_.insert(stm.pattern.begin(), stm.pattern.end());
      for_each_binder(stm.op, [&](Value v) { bound_.insert(v); });
    };
    bind(map);
    for (Value v : map.pattern) bound_.erase(v);
    for_each_stm(*std::get<Screma>(map.op).map.body, bind);
  }

  std::optional<Unchecked> run() {
    Stm unchecked = map_;
    unchecked.op = level(std::get<Screma>(map_.op));
    const bool any = !bounds_.empty() || !conditions_.empty() || !gone_.empty() || !data_checks_.empty();
    if (!any) return std::nullopt;
    const bool tiled = contracts(unchecked) && !contracts(map_);
    if (!tiled && !copies_rows(unchecked)) return std::nullopt;
    Builder host(values_);
    host.set_location(map_.location);
    std::vector<Operand> all = conditions_;
    for (const Poly& p : bounds_) all.emplace_back(host.compare(CompareOp::le, i64_constant(0), host.size(p, "slack")));
    for (Stm& check : data_checks_) {
      all.emplace_back(check.pattern.front());
      host.append(std::move(check));
    }
    Operand passed = all.empty() ? Operand(Scalar::boolean(true)) : all.front();
    for (std::size_t k = 1; k < all.size(); ++k) passed = host.binary(BinaryOp::conj, passed, all[k], "passed");
    return Unchecked{host.take(), passed, fresh(unchecked), tiled};
  }

 private:
  bool is_outside(const Poly& p) const {
    bool outside = true;
    p.for_each_symbol([&](Value v) { outside = outside && !bound_.contains(v); });
    return outside;
  }

  // One level of the nest: what its lambda does for every index of `dims_` so far.
  Screma level(const Screma& op) {
    const std::size_t dims = dims_.size(), path = path_.size();
    std::vector<DimIndex> here;
    for (const auto& [index, width] : ranges::views::zip(op.indices, op.widths)) {
      dims_.push_back({index, width});
      here.push_back(DimIndex::fix(Poly(index)));
    }
    for (const auto& [param, input] : ranges::views::zip(op.map.params, op.inputs))
      path_.push_back({.pattern = {param}, .op = Index{input, here}, .location = map_.location});
    std::vector<Stm> stms;
    for (const Stm& stm : op.map.body->stms) {
      Stm kept = stm;
      if (Index* index = std::get_if<Index>(&kept.op);
          index != nullptr && index->checked && ask_bounds(*index, has_inner_loops(*op.map.body)))
        index->checked = false;
      if (const Assert* check = get_if<Assert>(stm); check != nullptr && ask(*check)) {
        gone_.insert(stm.pattern.begin(), stm.pattern.end());
        continue;
      }
      if (const Screma* inner = get_if<Screma>(stm)) kept.op = level(*inner);
      path_.push_back(stm);
      stms.push_back(std::move(kept));
    }
    dims_.resize(dims);
    path_.resize(path);
    Screma result = op;
    result.map.body = relieved(make_body(std::move(stms), op.map.body->results));
    return result;
  }

  // The body without reference to checks that are gone.
  BodyPtr relieved(const BodyPtr& body) const {
    if (gone_.empty()) return body;
    std::vector<Stm> stms = body->stms;
    for (Stm& stm : stms) {
      std::erase_if(stm.certificates, [&](Value v) { return gone_.contains(v); });
      stm.op = map_bodies(stm.op, [&](const BodyPtr& inner) { return relieved(inner); });
    }
    return make_body(std::move(stms), body->results);
  }

  // ---- indices

  static bool has_inner_loops(const Body& body) {
    return std::ranges::any_of(body.stms, [](const Stm& stm) { return get_if<Screma>(stm) != nullptr; });
  }

  // What must not be negative so that an index is in bounds everywhere; false: that cannot be said outside. Of what is
  // read from arrays it is asked for all indices that it depends on, of which a nest inside has more.
  bool ask_bounds(const Index& index, bool has_inner) {
    SizeFacts facts;
    for (const CheckedDim& dim : dims_) know_index(facts, dim.index, dim.width);
    const std::vector<Poly>& shape = values_.type(index.array).shape;
    std::vector<Poly> asked, of_data;
    const auto ask_least = [&](const Poly& p) {
      if (prove_non_negative(p, facts) == Proof::yes) return true;
      const std::optional<Poly> least = least_of(p);
      if (!least) of_data.push_back(p);
      if (!least) return true;
      if (prove_non_negative(*least) == Proof::no) return false;
      asked.push_back(*least);
      return true;
    };
    for (const auto& [dim, size] : ranges::views::zip(index.dims, shape)) {
      if (!ask_least(dim.start) || !ask_least(size - dim.start - 1)) return false;
      if (!dim.is_slice()) continue;
      const Poly last = dim.start + dim.stride * (*dim.count - 1);
      if (!ask_least(last) || !ask_least(size - last - 1) || !ask_least(*dim.count - 1)) return false;
    }
    if (!of_data.empty() && !ask_of_data(of_data, has_inner)) return false;
    for (Poly& p : asked)
      if (std::find(bounds_.begin(), bounds_.end(), p) == bounds_.end()) bounds_.push_back(std::move(p));
    return true;
  }

  // The least that the polynomial is over all indices, where it is affine in them.
  std::optional<Poly> least_of(const Poly& p) const {
    Poly rest = p, least;
    for (const CheckedDim& dim : dims_) {
      const auto linear = rest.linear_in(dim.index);
      if (!linear) return std::nullopt;
      rest = linear->rest;
      const Poly end = linear->coefficient * (dim.width - 1);
      if (!is_outside(end)) return std::nullopt;
      const auto constant = linear->coefficient.constant();
      least += constant ? (*constant < 0 ? end : Poly(0)) : poly_min(0, end);
    }
    if (!is_outside(rest)) return std::nullopt;
    return least + rest;
  }

  // Whether all of them are not negative, for all indices.
  bool ask_of_data(const std::vector<Poly>& non_negative, bool has_inner) {
    std::set<Value> roots;
    for (const Poly& p : non_negative)
      p.for_each_symbol([&](Value v) {
        if (bound_.contains(v)) roots.insert(v);
      });
    auto path = path_to(roots);
    if (!path || (path->dims.size() == dims_.size() && !has_inner)) return false;
    Builder builder(values_);
    builder.set_location(map_.location);
    std::optional<Operand> all;
    for (const Poly& p : non_negative) {
      const Operand holds = builder.compare(CompareOp::le, i64_constant(0), builder.size(p, "slack"));
      all = all ? Operand(builder.binary(BinaryOp::conj, *all, holds, "inside")) : holds;
    }
    for (Stm& made : builder.take()) path->needed.push_back(std::move(made));
    data_checks_.push_back(all_of(all->value(), path->needed, path->dims));
    return true;
  }

  // The statements that values are made by, none of which can fail, and the dims that they depend on.
  struct Path {
    std::vector<Stm> needed;
    std::vector<CheckedDim> dims;
  };
  std::optional<Path> path_to(std::set<Value> roots) const {
    Path path;
    for (std::size_t k = path_.size(); k-- > 0;) {
      const Stm& stm = path_[k];
      if (std::none_of(stm.pattern.begin(), stm.pattern.end(), [&](Value v) { return roots.contains(v); })) continue;
      if (can_fail(stm.op, values_) || std::holds_alternative<Screma>(stm.op) || std::holds_alternative<Loop>(stm.op))
        return std::nullopt;
      roots.merge(free_values(stm.op, values_));
      // What relies on another check could not be done before that one.
      if (std::ranges::any_of(stm.certificates, [&](Value v) { return bound_.contains(v); })) return std::nullopt;
      path.needed.insert(path.needed.begin(), stm);
    }
    for (const CheckedDim& dim : dims_) {
      if (roots.contains(dim.index)) path.dims.push_back(dim);
      if (!is_outside(dim.width)) return std::nullopt;
    }
    if (path.dims.empty()) return std::nullopt;
    return path;
  }

  // ---- asserts

  bool ask(const Assert& check) {
    if (!check.condition.is_value()) return false;
    const Value condition = check.condition.value();
    if (!bound_.contains(condition)) {
      if (std::find(conditions_.begin(), conditions_.end(), check.condition) == conditions_.end())
        conditions_.push_back(check.condition);
      return true;
    }
    const auto path = path_to({condition});
    if (!path || path->dims.size() == dims_.size()) return false;
    data_checks_.push_back(all_of(condition, path->needed, path->dims));
    return true;
  }

  // `let passed = redomap(dims, {}, the statements that make the condition, and)`.
  Stm all_of(Value condition, const std::vector<Stm>& needed, const std::vector<CheckedDim>& dims) {
    const Type boolean = Type::scalar(ScalarType::boolean);
    Screma screma;
    Substitution renaming;
    for (const CheckedDim& dim : dims) {
      screma.widths.push_back(dim.width);
      screma.indices.push_back(values_.add(values_.type(dim.index), values_.name(dim.index)));
      renaming.insert_or_assign(dim.index, Operand(screma.indices.back()));
    }
    screma.map.body = copy_fresh(make_body(needed, {Operand(condition)}), renaming, values_, values_);
    Builder builder(values_);
    Lambda both = builder.lambda({boolean, boolean}, {"a", "b"}, [](Builder& inner, const std::vector<Value>& params) {
      return std::vector<Operand>{inner.binary(BinaryOp::conj, params[0], params[1], "both")};
    });
    screma.reduces.push_back({.op = std::move(both), .neutral = {Scalar::boolean(true)}, .commutative = true});
    return {.pattern = {values_.add(boolean, "passed")}, .op = std::move(screma), .location = map_.location};
  }

  // ---- the nest

  // Whether a reduction in the nest, alone with what it needs, is a contraction.
  bool contracts(const Stm& map) const {
    ValueTable scratch = values_;
    const Stm flat = flatten(map, find_nest(map, scratch), scratch);
    const std::vector<Stm>& stms = std::get<Screma>(flat.op).map.body->stms;
    return std::any_of(stms.begin(), stms.end(), [&](const Stm& stm) {
      const Screma* screma = get_if<Screma>(stm);
      if (screma == nullptr || screma->reduces.empty() || screma->scans()) return false;
      const auto match = match_alone(make_kernel(only(flat, stms, stm, scratch)), scratch);
      return match && std::holds_alternative<Contraction>(*match);
    });
  }

  // Whether rows of the nest are views. Those without a check in between are copied already.
  bool copies_rows(const Stm& map) const {
    ValueTable scratch = values_;
    return with_copied_rows(map, scratch).has_value();
  }

  Stm fresh(const Stm& map) {
    Screma op = std::get<Screma>(map.op);
    Substitution renaming;
    for (Value& index : op.indices) {
      const Value mine = values_.add(values_.type(index), values_.name(index));
      renaming.insert_or_assign(index, Operand(mine));
      index = mine;
    }
    op.map = copy_fresh(op.map, renaming, values_, values_);
    Stm made = map;
    for (Value& v : made.pattern) v = values_.add(values_.type(v), values_.name(v));
    made.op = std::move(op);
    return made;
  }

  const Stm& map_;
  ValueTable& values_;
  std::set<Value> bound_;         // in the nest
  std::vector<CheckedDim> dims_;  // of the levels around
  std::vector<Stm> path_;         // what is computed before, level by level
  std::set<Value> gone_;          // checks that the nest lacks
  std::vector<Poly> bounds_;      // what must not be negative
  std::vector<Operand> conditions_;
  std::vector<Stm> data_checks_;
};

}  // namespace

std::optional<Unchecked> without_checks(const Stm& map, ValueTable& values) {
  const Screma& screma = std::get<Screma>(map.op);
  if (!screma.reduces.empty() || !has_checks(*screma.map.body)) return std::nullopt;
  return Unchecker(map, values).run();
}

}  // namespace apl
