// A kernel that is neither SDDMM nor a contraction, or that reads more of a sparse array than these do. A reduction in
// it along the elements of a row,
//
//   let {s : f32} = redomap(j < m, {}, \{} -> { a = A[i, j], x = xs[j] in {mul(a, x)} }, add, {0})
// =>
//   let {first : i64} = A_row_start[i]
//   let {last : i64} = A_row_start[i + 1]
//   let {count : i64} = size(-first + last)
//   let {s : f32} = redomap(p < count, {}, \{} -> {
//     j = A_column[first + p], a = A_values[first + p], x = xs[j] in {mul(a, x)} }, add, {0})
//
// where absent elements add nothing; where they add terms that one of them can stand for (analysis/absent), as to a
// max, that one is added before the next non-zero, or once. Where other dims are reduced, too, they are reduced around
// it. What is left are elements at any row and column: a binary search among the non-zeros of the row, unless the
// kernel reads all rows and columns with each other, which a dense copy serves better.
#include "passes/sparsify/threads.h"

#include <algorithm>
#include <set>

#include "ir/walk.h"
#include "passes/sparsify/nonzeros.h"

namespace apl::sparsify {
namespace {

bool has_floor_div(const Poly& poly) {
  for (const Term& term : poly.terms())
    for (const Factor& factor : term.factors)
      if (factor.opaque && factor.opaque->kind == OpaqueKind::floor_div) return true;
  return false;
}

// Which indices of spaces, SOACs and loops the scalars of a statement's bodies come from, but through arrays.
class Origins {
 public:
  explicit Origins(const ValueTable& values) : values_(values) {}

  void enter(const Stm& stm) {
    for_each_binder(stm.op, [&](Value v) {
      const Screma* screma = get_if<Screma>(stm);
      const Loop* loop = get_if<Loop>(stm);
      const bool is_row = screma != nullptr && std::ranges::find(screma->map.params, v) != screma->map.params.end();
      const bool is_carried = loop != nullptr && std::ranges::find(loop->params, v) != loop->params.end();
      if (!is_row && !is_carried) origins_[v].insert(v);
    });
    for_each_body(stm.op, [&](const BodyPtr& body) {
      for (const Stm& inner : body->stms) enter(inner);
    });
    if (get_if<Index>(stm) != nullptr) return;  // where an array says
    for (const Value made : stm.pattern) {
      if (!values_.type(made).is_scalar()) continue;
      std::set<Value>& from = origins_[made];
      for (const Value v : free_values(stm.op, values_)) from.merge(std::set<Value>(of(v)));
    }
  }

  std::set<Value> of(const Poly& poly) const {
    std::set<Value> from;
    poly.for_each_symbol([&](Value v) { from.merge(std::set<Value>(of(v))); });
    return from;
  }

 private:
  std::set<Value> of(Value v) const {
    const auto found = origins_.find(v);
    return found == origins_.end() ? std::set<Value>() : found->second;
  }

  const ValueTable& values_;
  std::map<Value, std::set<Value>> origins_;
};

// A reduction along a row or column.
struct Along {
  std::size_t dim = 0;  // of the reduction
  bool by_columns = false;
  Poly at;  // the row (column)
  const Pattern* pattern = nullptr;
  std::map<Value, Access> elements;  // of arrays with that pattern
  std::vector<Value> certificates;
  AbsentTerms absent;
};

class ThreadReader {
 public:
  ThreadReader(const SparseArrays& arrays, const Accesses& accesses, ValueTable& values)
      : arrays_(arrays), values_(values), accesses_(accesses), origins_(values) {}

  ThreadReads run(const Stm& stm) {
    result_.stm = stm;
    result_.stm.op = with_reads_inside(stm.op);
    if (get_if<Screma>(stm) == nullptr) {
      enter(result_.stm);
      around_ = result_.stm.op;
      result_.stm.op = map_bodies(around_, [&](const BodyPtr& inner) { return body(inner); });
    }
    drop_unread_views();
    return std::move(result_);
  }

 private:
  void enter(const Stm& stm) {
    accesses_.enter(stm);
    origins_.enter(stm);
  }

  // Rows and elements of sparse arrays are indices in the body, no inputs.
  Op with_reads_inside(Op op) {
    if (Screma* screma = std::get_if<Screma>(&op)) move_inputs(*screma, false);
    if (Scatter* scatter = std::get_if<Scatter>(&op)) move_inputs(*scatter, false);
    return map_bodies(op, [&](const BodyPtr& old) {
      Builder out(values_);
      for (const Stm& stm : old->stms) {
        Stm read = with_check_before(stm, out);
        accesses_.enter(read);
        read.op = with_reads_inside(read.op);
        out.append(std::move(read));
      }
      return make_body(out.take(), old->results);
    });
  }

  // A checked index of a sparse array is a check and an index: the array is not there to be indexed.
  Stm with_check_before(const Stm& stm, Builder& out) const {
    const Index* index = get_if<Index>(stm);
    if (index == nullptr || !index->checked || !accesses_.find(index->array)) return stm;
    if (std::ranges::any_of(index->dims, &DimIndex::is_slice)) return stm;
    Stm read = stm;
    std::get<Index>(read.op).checked = false;
    read.certificates.push_back(check_index(*index, stm.location, values_, out));
    return read;
  }

  template <class Soac>
  void move_inputs(Soac& soac, bool all) {
    std::vector<Stm> reads;
    std::vector<Value> inputs, params;
    std::vector<DimIndex> at;
    for (const Value index : soac.indices) at.push_back(DimIndex::fix(Poly(index)));
    for (std::size_t k = 0; k < soac.inputs.size(); ++k) {
      if (all || accesses_.find(soac.inputs[k])) {
        reads.push_back({.pattern = {soac.map.params[k]}, .op = Index{soac.inputs[k], at}});
      } else {
        inputs.push_back(soac.inputs[k]);
        params.push_back(soac.map.params[k]);
      }
    }
    if (reads.empty()) return;
    for (const Stm& read : reads) accesses_.enter(read);
    reads.insert(reads.end(), soac.map.body->stms.begin(), soac.map.body->stms.end());
    soac.map.body = make_body(std::move(reads), soac.map.body->results);
    soac.inputs = std::move(inputs);
    soac.map.params = std::move(params);
  }

  BodyPtr body(const BodyPtr& old) {
    Builder out(values_);
    for (const Stm& stm : old->stms) {
      const Screma* screma = get_if<Screma>(stm);
      if (screma != nullptr && !screma->reduces.empty() && reduction(stm, *screma, out)) continue;
      if (get_if<Index>(stm) != nullptr && element(stm, out)) continue;
      out.append(stm);
      out.stms().back().op = map_bodies(stm.op, [&](const BodyPtr& inner) { return body(inner); });
    }
    return make_body(out.take(), old->results);
  }

  // ---- reductions ----

  bool reduction(const Stm& stm, const Screma& screma, Builder& out) {
    if (screma.scans() || screma.map.body->results.size() != screma.reduced_count()) return false;
    std::optional<Along> along;
    for (std::size_t dim = screma.widths.size(); dim-- > 0 && !along;)
      for (const bool by_columns : {false, true})
        if (!along) along = find_along(screma, dim, by_columns);
    if (!along) return false;
    Screma moved = screma;
    move_inputs(moved, true);
    Builder made(values_);
    made.set_location(stm.location);
    if (moved.widths.size() == 1) {
      over_nonzeros(moved, *along, {}, made);
    } else {
      around(moved, *along, made);
    }
    std::vector<Stm> stms = made.take();
    stms.back().pattern = stm.pattern;
    stms.back().attributes = stm.attributes;
    stms.back().certificates = stm.certificates;
    for (const Stm& one : stms) enter(one);
    // What it reads besides.
    const BodyPtr rest = body(make_body(std::move(stms), {}));
    out.append_all(rest->stms);
    result_.reductions.push_back(&arrays_.at(along->elements.begin()->second.base));
    return true;
  }

  std::optional<Along> find_along(const Screma& screma, std::size_t dim, bool by_columns) {
    const bool is_last = dim + 1 == screma.widths.size();
    const bool commutes =
        std::ranges::all_of(screma.reduces, [](const ReduceOp& reduce) { return reduce.commutative; });
    if (!is_last && !commutes) return std::nullopt;
    std::set<Value> inside(screma.map.params.begin(), screma.map.params.end());
    inside.insert(screma.indices[dim]);
    for_each_stm(*screma.map.body, [&](const Stm& stm) {
      inside.insert(stm.pattern.begin(), stm.pattern.end());
      for_each_binder(stm.op, [&](Value v) { inside.insert(v); });
    });
    const auto is_outer = [&](const Poly& poly) {
      bool outer = true;
      poly.for_each_symbol([&](Value v) { outer = outer && !inside.contains(v); });
      return outer;
    };
    const Poly index(screma.indices[dim]);
    std::optional<Along> along;
    // Those that are read whatever the element is come first: the row exists then.
    const auto add = [&](const Stm& stm, bool is_conditional) {
      if (get_if<Index>(stm) == nullptr) return;
      const auto access = accesses_.find(stm.pattern.front());
      if (!access || !access->is_element()) return;
      const Pattern& pattern = *arrays_.at(access->base).pattern;
      const Poly &at = by_columns ? access->column() : access->row(),
                 &other = by_columns ? access->row() : access->column();
      if (other != index || screma.widths[dim] != (by_columns ? pattern.rows : pattern.columns) || !is_outer(at))
        return;
      if (!std::ranges::all_of(access->batches(), is_outer)) return;
      if (std::ranges::any_of(access->certificates, [&](Value v) { return inside.contains(v); })) return;
      if (!along && is_conditional) return;
      if (!along)
        along = Along{
            .by_columns = by_columns, .at = at, .pattern = &pattern, .elements = {}, .certificates = {}, .absent = {}};
      if (along->pattern != &pattern || along->at != at) return;
      along->elements.emplace(stm.pattern.front(), *access);
      along->certificates.insert(along->certificates.end(), access->certificates.begin(), access->certificates.end());
    };
    for (const Stm& stm : screma.map.body->stms) add(stm, false);
    if (!along) return std::nullopt;
    for_each_stm(*screma.map.body, [&](const Stm& stm) { add(stm, true); });
    along->dim = dim;
    std::vector<Value> zero;
    for (const auto& [element, access] : along->elements) zero.push_back(element);
    const Value base = along->elements.begin()->second.base;
    auto absent = absent_terms(screma, dim, zero, around_, "`" + values_.name(base) + "`", values_);
    if (const Reason* reason = std::get_if<Reason>(&absent)) {
      result_.refused.emplace(base, *reason);
      return std::nullopt;
    }
    along->absent = std::get<AbsentTerms>(std::move(absent));
    return along;
  }

  // The other dims are reduced around the row's.
  void around(const Screma& screma, const Along& along, Builder& out) {
    Screma outer;
    Substitution here;
    for (std::size_t d = 0; d < screma.widths.size(); ++d) {
      if (d == along.dim) continue;
      outer.widths.push_back(screma.widths[d]);
      outer.indices.push_back(index_like(screma.indices[d]));
      here.insert_or_assign(screma.indices[d], Operand(outer.indices.back()));
    }
    outer.map.body = out.body([&](Builder& body) {
      const std::vector<Value> sums = over_nonzeros(screma, along, here, body);
      return std::vector<Operand>(sums.begin(), sums.end());
    });
    outer.reduces = fresh_operators(screma, {});
    out.let_many({"sum"}, std::move(outer));
  }

  std::vector<Value> over_nonzeros(const Screma& screma, const Along& along, const Substitution& here, Builder& out) {
    const Pattern& pattern = *along.pattern;
    const NonzeroRange range =
        nonzero_range(pattern, substitute(along.at, here), along.by_columns, out, along.certificates);
    const Value index = screma.indices[along.dim];
    Screma sum;
    sum.widths = {Poly(range.count)};
    sum.indices = {values_.add(Type::scalar(ScalarType::i64), "p")};
    const Poly p(sum.indices.front());
    sum.map.body = out.body([&](Builder& body) {
      const NonzeroAt nonzero = nonzero_at(pattern, Poly(range.first) + p, along.by_columns, values_.name(index), body);
      Substitution inner = here;
      inner.insert_or_assign(index, Operand(nonzero.other));
      std::vector<Operand> terms = terms_at_nonzero(screma, along, nonzero, inner, body);
      if (!along.absent.are_runs()) return terms;
      const Value next = next_index(along, range, p, body);
      return with_run(screma, along, {Poly(next), Poly(nonzero.other)}, here, terms, body);
    });
    sum.reduces = fresh_operators(screma, here);
    std::vector<Value> sums = out.let_many({"sum"}, std::move(sum));
    if (along.absent.are_nothing()) return sums;
    const Poly width = along.by_columns ? pattern.rows : pattern.columns;
    std::vector<Operand> operands(sums.begin(), sums.end());
    if (along.absent.have(Absent::once)) operands = with_one(screma, along, range, width, here, operands, out);
    if (along.absent.are_runs()) {
      const Value next = next_index(along, range, Poly(range.count), out);
      operands = with_run(screma, along, {Poly(next), width}, here, operands, out, true);
    }
    sums.clear();
    for (const Operand& x : operands) sums.push_back(x.value());
    return sums;
  }

  std::vector<Operand> terms_at_nonzero(const Screma& screma, const Along& along, const NonzeroAt& nonzero,
                                        Substitution here, Builder& body) {
    std::map<std::pair<Value, std::vector<Poly>>, Value> read;
    std::set<Value> elements;
    for (const auto& [element, access] : along.elements) {
      const SparseArray& array = arrays_.at(access.base);
      std::vector<Poly> position;
      for (const Poly& batch : access.batches()) position.push_back(substitute(batch, here));
      Value& a = read[{array.values, position}];
      position.push_back(nonzero.nonzero);
      if (!a) a = body.index(array.values, position, "a");
      here.insert_or_assign(element, Operand(a));
      elements.insert(element);
    }
    const BodyPtr copy = copy_fresh(without(screma.map.body, elements), here, values_, values_);
    body.append_all(copy->stms);
    return copy->results;
  }

  static BodyPtr without(const BodyPtr& old, const std::set<Value>& drop) {
    std::vector<Stm> stms;
    for (const Stm& stm : old->stms) {
      if (stm.pattern.size() == 1 && drop.contains(stm.pattern.front())) continue;
      stms.push_back(stm);
      stms.back().op = map_bodies(stm.op, [&](const BodyPtr& inner) { return without(inner, drop); });
    }
    return make_body(std::move(stms), old->results);
  }

  // The index after the one of the non-zero before `p`.
  Value next_index(const Along& along, const NonzeroRange& range, const Poly& p, Builder& out) {
    const Value is_first = out.compare(CompareOp::eq, out.size(p, "p"), i64_constant(0), "is_first");
    return out.if_else(
        "next", is_first, [](Builder&) { return i64_constant(0); },
        [&](Builder& body) {
          const NonzeroAt before =
              nonzero_at(*along.pattern, Poly(range.first) + p - 1, along.by_columns, "before", body);
          return Operand(body.size(Poly(before.other) + 1, "next"));
        });
  }

  // `terms` after the terms of absent elements from `run.first` to `run.second`; before them with `is_after`.
  std::vector<Operand> with_run(const Screma& screma, const Along& along, const std::pair<Poly, Poly>& run,
                                const Substitution& here, const std::vector<Operand>& terms, Builder& out,
                                bool is_after = false) {
    const Value from = out.size(run.first, "from"), to = out.size(run.second, "to");
    const Value has_any = out.compare(CompareOp::lt, from, to, "absent");
    const std::vector<Value> made = out.if_else_many(
        {"sum"}, has_any,
        [&](Builder& body) {
          return folded(screma, along, here, terms, body, is_after, [&](Absent kind) -> std::optional<Poly> {
            if (kind == Absent::first) return Poly(from);
            return kind == Absent::last ? std::optional(Poly(to) - 1) : std::nullopt;
          });
        },
        [&](Builder&) { return terms; });
    return {made.begin(), made.end()};
  }

  // `sums` and one term, if an element of the row is absent.
  std::vector<Operand> with_one(const Screma& screma, const Along& along, const NonzeroRange& range, const Poly& width,
                                const Substitution& here, const std::vector<Operand>& sums, Builder& out) {
    const Value all = out.size(width, "all");
    const Value has_any = out.compare(CompareOp::lt, range.count, all, "absent");
    const std::vector<Value> made = out.if_else_many(
        {"sum"}, has_any,
        [&](Builder& body) {
          return folded(screma, along, here, sums, body, true,
                        [](Absent kind) { return kind == Absent::once ? std::optional<Poly>(0) : std::nullopt; });
        },
        [&](Builder&) { return sums; });
    return {made.begin(), made.end()};
  }

  // Operators whose terms are at an index fold them with the others.
  std::vector<Operand> folded(const Screma& screma, const Along& along, const Substitution& here,
                              const std::vector<Operand>& others, Builder& out, bool is_after,
                              const std::function<std::optional<Poly>(Absent)>& index_of) {
    std::vector<Operand> results;
    for (std::size_t r = 0; r < screma.reduces.size(); ++r) {
      const ReduceOp& reduce = screma.reduces[r];
      const auto begin = others.begin() + static_cast<std::ptrdiff_t>(results.size());
      std::vector<Operand> left, right(begin, begin + static_cast<std::ptrdiff_t>(reduce.neutral.size()));
      const std::optional<Poly> at = index_of(along.absent.operators[r]);
      if (!at) {
        results.insert(results.end(), right.begin(), right.end());
        continue;
      }
      left = terms_at(along.absent, screma, r, along.dim, *at, here, out);
      if (is_after) std::swap(left, right);
      left.insert(left.end(), right.begin(), right.end());
      for (const Operand& x : inline_lambda(copy_fresh(reduce.op, here, values_, values_), left, values_, out.stms()))
        results.push_back(x);
    }
    return results;
  }

  Value index_like(Value index) { return values_.add(Type::scalar(ScalarType::i64), values_.name(index)); }

  std::vector<ReduceOp> fresh_operators(const Screma& screma, const Substitution& here) {
    std::vector<ReduceOp> reduces = screma.reduces;
    for (ReduceOp& reduce : reduces) reduce.op = copy_fresh(reduce.op, here, values_, values_);
    return reduces;
  }

  // ---- elements ----

  bool element(const Stm& stm, Builder& out) {
    const auto access = accesses_.find(stm.pattern.front());
    if (!access || !access->is_element()) return false;
    if (reads_all(*access)) {
      const std::string name = "`" + values_.name(access->base) + "`";
      result_.refused.emplace(
          access->base, Reason{"all-elements", "the kernel reads " + name + " at all rows and columns, the zeros, too",
                               "multiply by the elements of " + name + ", or sum over its rows"});
      return false;
    }
    const SparseArray& array = arrays_.at(access->base);
    out.set_location(stm.location);
    look_up(stm.pattern.front(), array, access->batches(), access->row(), access->column(), access->certificates, out);
    out.set_location({});
    result_.look_ups.push_back(&array);
    return true;
  }

  // Whether some index moves the row alone, and some index the column: then all of them are read.
  bool reads_all(const Access& access) const {
    if (has_floor_div(access.row()) || has_floor_div(access.column())) return true;
    const std::set<Value> rows = origins_.of(access.row()), columns = origins_.of(access.column());
    const auto has_own = [](const std::set<Value>& a, const std::set<Value>& b) {
      return std::ranges::any_of(a, [&](Value v) { return !b.contains(v); });
    };
    return has_own(rows, columns) && has_own(columns, rows);
  }

  // ---- what nobody reads any more ----

  void drop_unread_views() {
    for (bool more = true; more;) {
      std::set<Value> read;
      note_reads(result_.stm.op, read);
      more = false;
      result_.stm.op =
          map_bodies(result_.stm.op, [&](const BodyPtr& inner) { return without_views(inner, read, more); });
    }
  }

  static void note_reads(const Op& op, std::set<Value>& read) {
    for_each_use(op, [&](Value v) { read.insert(v); });
    for_each_body(op, [&](const BodyPtr& body) {
      for (const Operand& x : body->results)
        if (x.is_value()) read.insert(x.value());
      for (const Stm& stm : body->stms) note_reads(stm.op, read);
    });
  }

  BodyPtr without_views(const BodyPtr& old, const std::set<Value>& read, bool& dropped) const {
    std::vector<Stm> stms;
    for (const Stm& stm : old->stms) {
      if (stm.pattern.size() == 1 && !read.contains(stm.pattern.front()) && accesses_.find(stm.pattern.front()) &&
          !has_bodies(stm.op)) {
        dropped = true;
        continue;
      }
      stms.push_back(stm);
      stms.back().op = map_bodies(stm.op, [&](const BodyPtr& inner) { return without_views(inner, read, dropped); });
    }
    return make_body(std::move(stms), old->results);
  }

  const SparseArrays& arrays_;
  ValueTable& values_;
  Accesses accesses_;
  Origins origins_;
  Op around_;  // the whole statement
  ThreadReads result_;
};

}  // namespace

ThreadReads read_in_threads(const Stm& stm, const SparseArrays& arrays, const Accesses& accesses, ValueTable& values) {
  return ThreadReader(arrays, accesses, values).run(stm);
}

}  // namespace apl::sparsify
