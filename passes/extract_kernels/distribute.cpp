// Imperfect nests:
//
//   map(i < m, {xss}, \ {xs} -> {
//     let {s} = reduce(j < n, {xs}, add, {0.0f32})
//     let {ys} = map(j < n, {xs}, \ {x} -> {div(x, s)})
//     in {ys}
//   })
// =>
//   let {ss} = map(i < m) { let {xs} = xss[i]  let {s} = reduce(j < n, {xs}, add, {0.0f32})  in {s} }
//   let {yss} = map(i < m, j < n) { let {xs} = xss[i]  let {s} = ss[i]  let {x} = xs[j]  in {div(x, s)} }
//
// Statements are of four kinds. *Free* ones (views, a few scalar operations) are done again wherever their values are
// needed, and so are *checks*, wherever something relies on them. *Parallel* ones are operations with parallelism of
// their own that the map's index does not shape: maps, reductions, scans, scatters, loops and branches with such in
// them. The rest is sequential *work*. Each parallel statement becomes an operation over the outer widths and its own;
// neighbouring work stays together in one map; what crosses from one part to another becomes an array.
//
//   map { loop { map } }      =>  loop { map { map } }                       the loop runs on the host
//   map { if c { map } .. }   =>  if c { map { map } } ..                    c is the same for all indices
//   map { reduce }, { scan }  =>  a reduction, scan over segments (reductions.cpp)
//   map { scatter }           =>  scatter into the array of the targets, over both widths
//
// Stays in one thread: what has a shape that depends on the map's index; operations over at most kSmall elements; a
// contraction's reduction, which tile-contraction wants so; a loop that updates in place, since on the host it would
// copy all its arrays every time round.
#include "passes/extract_kernels/distribute.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/builder.h"
#include "ir/walk.h"
#include "passes/analysis/cheap.h"
#include "passes/analysis/consumption.h"
#include "passes/analysis/contractions.h"
#include "passes/extract_kernels/nest.h"

namespace apl {

namespace {

constexpr std::int64_t kSmall = 32;      // elements that one thread goes through
constexpr std::size_t kMaxFreeCost = 8;  // operations done again rather than kept

using Locals = std::set<Value>;

bool regular(const Poly& size, const Locals& locals) {
  bool result = true;
  size.for_each_symbol([&](Value v) { result = result && !locals.contains(v); });
  return result;
}
bool regular(const std::vector<Poly>& sizes, const Locals& locals) {
  return std::ranges::all_of(sizes, [&](const Poly& size) { return regular(size, locals); });
}
bool regular(const std::vector<Value>& pattern, const Locals& locals, const ValueTable& values) {
  return std::ranges::all_of(pattern, [&](Value v) { return regular(values.type(v).shape, locals); });
}

bool small(const std::vector<Poly>& widths) {
  const std::optional<std::int64_t> size = product(widths).constant();
  return size && *size <= kSmall;
}

bool is_sequential(const Stm& stm) {
  return std::ranges::any_of(stm.attributes, [](const Attribute& a) { return a.name == "sequential"; });
}

// A map or scan somewhere in the body, or in loops and branches of it, of a width that is the same for all indices.
bool has_parallel_part(const Body& body, Locals locals, const ValueTable& values) {
  for (const Stm& stm : body.stms) {
    locals.insert(stm.pattern.begin(), stm.pattern.end());
    for_each_binder(stm.op, [&](Value v) { locals.insert(v); });
  }
  return std::ranges::any_of(body.stms, [&](const Stm& stm) {
    if (is_sequential(stm)) return false;
    if (const Screma* screma = get_if<Screma>(stm)) {
      const bool makes_arrays = screma->map.body->results.size() > screma->reduced_count() || screma->scans();
      return makes_arrays && regular(screma->widths, locals) && !small(screma->widths);
    }
    if (!std::holds_alternative<Loop>(stm.op) && !std::holds_alternative<If>(stm.op)) return false;
    bool found = false;
    for_each_body(stm.op, [&](const BodyPtr& inner) { found = found || has_parallel_part(*inner, locals, values); });
    return found;
  });
}

// Whether the loop overwrites what it carries.
bool updates_in_place(const Stm& stm, const ValueTable& values) {
  const Loop& loop = std::get<Loop>(stm.op);
  bool any = false;
  for_each_stm(*loop.body, [&](const Stm& inner) {
    any = any || std::holds_alternative<Update>(inner.op) || std::holds_alternative<Scatter>(inner.op);
  });
  if (!any) return false;
  Function function;
  function.body = make_body({stm}, {});
  function.values = values;
  const Consumption consumption(function, nullptr);
  return std::ranges::any_of(loop.params, [&](Value v) { return consumption.consumed(v); });
}

bool is_contraction(const Stm& flat, const ValueTable& values) {
  const Screma& map = std::get<Screma>(flat.op);
  if (map.widths.size() < 2) return false;
  Function function;
  function.values = values;
  for (const Value v : free_values(flat.op, values)) function.params.push_back({v});
  function.body = make_body({make_kernel(flat)}, {});
  ValueTable scratch = values;
  const Layouts layouts(function);
  const std::optional<Match> match = match_contraction(function, layouts, 0, scratch);
  return match && std::holds_alternative<Contraction>(*match);
}

class Splitter {
 public:
  Splitter(const Stm& flat, const Replicated& replicated, const std::function<Chunks()>& chunks, ValueTable& values)
      : flat_(flat), map_(std::get<Screma>(flat.op)), replicated_(replicated), chunks_(chunks), values_(values) {}

  std::optional<Distributed> run() {
    prepare();
    classify();
    if (std::ranges::find(kinds_, Kind::parallel) == kinds_.end()) return std::nullopt;
    group();
    merge_irregular();
    place_results();
    if (groups_.size() == 1 && !groups_.front().parallel) return std::nullopt;
    Distributed result;
    result.parts = groups_.size();
    if (groups_.size() == 1) result.form = form_of(stms_[groups_.front().members.front()]);
    for (std::size_t g = 0; g < groups_.size(); ++g) emit(g);
    bind_results();
    result.stms = std::move(made_);
    result.work = std::move(work_);
    return result;
  }

 private:
  enum class Kind : std::uint8_t { free, check, work, parallel };
  struct Group {
    std::vector<std::size_t> members;  // statements, in order
    bool parallel = false;             // one statement, which is
    std::vector<Value> exports;        // values that others need, or that are results
  };

  // ---- what there is ----------------------------------------------------------------------------

  // The lambda's statements; operators on rows are taken apart, arrays that are made to be written into become maps.
  void prepare() {
    for (const Stm& stm : map_.map.body->stms) {
      for (const Stm& single : split_operators(stm, values_)) {
        const std::optional<std::vector<Stm>> apart = take_rows_apart(single, replicated_, values_);
        if (apart) {
          stms_.insert(stms_.end(), apart->begin(), apart->end());
        } else {
          stms_.push_back(single);
        }
      }
    }
    locals_.insert(map_.indices.begin(), map_.indices.end());
    for (const Stm& stm : stms_) locals_.insert(stm.pattern.begin(), stm.pattern.end());
    Locals wanted;  // as arrays, whatever else happens
    for (const Operand& result : map_.map.body->results)
      if (result.is_value()) wanted.insert(result.value());
    for (const Stm& stm : stms_) {
      const Scatter* scatter = get_if<Scatter>(stm);
      if (scatter != nullptr && spreads(stm, *scatter)) wanted.insert(scatter->targets.begin(), scatter->targets.end());
    }
    for (Stm& stm : stms_) {
      if (stm.pattern.size() != 1 || !wanted.contains(stm.pattern.front())) continue;
      const Type& type = values_.type(stm.pattern.front());
      if (!regular(type.shape, locals_) || small(type.shape)) continue;
      if (std::optional<Stm> map = make_producer_map(stm, values_)) stm = std::move(*map);
    }
    for (std::size_t k = 0; k < stms_.size(); ++k)
      for (const Value v : stms_[k].pattern) definer_.emplace(v, k);
  }

  void classify() {
    std::vector<std::size_t> cost(stms_.size(), 0);
    for (std::size_t k = 0; k < stms_.size(); ++k) {
      const Stm& stm = stms_[k];
      kinds_.push_back(kind_of(stm));
      if (kinds_[k] != Kind::free) continue;
      const bool view = values_.type(stm.pattern.front()).is_array() || std::holds_alternative<Index>(stm.op);
      cost[k] = view ? 0 : 1;
      for_each_use(stm.op, [&](Value v) {
        const auto from = definer_.find(v);
        if (from != definer_.end()) cost[k] += cost[from->second];
      });
      if (cost[k] <= kMaxFreeCost) continue;
      kinds_[k] = Kind::work;
      cost[k] = 0;
    }
  }

  Kind kind_of(const Stm& stm) const {
    if (std::holds_alternative<Assert>(stm.op)) return Kind::check;
    if (is_parallel(stm)) return Kind::parallel;
    Stm alone = stm;
    alone.certificates.clear();  // the checks are done again, too
    return is_cheap(Body{.stms = {alone}}, values_) ? Kind::free : Kind::work;
  }

  bool is_parallel(const Stm& stm) const {
    if (is_sequential(stm) || !regular(stm.pattern, locals_, values_)) return false;
    if (const Screma* screma = get_if<Screma>(stm)) {
      if (!regular(screma->widths, locals_) || small(screma->widths)) return false;
      if (screma->reduces.empty() || scans_scalars(*screma, values_)) return true;
      return reduces_scalars(*screma, values_) && !contracts(stm);
    }
    if (const Scatter* scatter = get_if<Scatter>(stm)) {
      return spreads(stm, *scatter) && std::ranges::all_of(scatter->targets, [&](Value v) { return is_kept(v); });
    }
    if (const Loop* loop = get_if<Loop>(stm)) {
      return loop->index && regular(loop->bound, locals_) && regular(loop->params, locals_, values_) &&
             has_parallel_part(*loop->body, locals_, values_) && !updates_in_place(stm, values_);
    }
    if (const If* branch = get_if<If>(stm)) {
      const bool same = branch->condition.is_constant() || !locals_.contains(branch->condition.value());
      return same && (has_parallel_part(*branch->then_body, locals_, values_) ||
                      has_parallel_part(*branch->else_body, locals_, values_));
    }
    return false;
  }

  // Whether the scatter could be one with those of other indices.
  bool spreads(const Stm& stm, const Scatter& scatter) const {
    return !is_sequential(stm) && regular(stm.pattern, locals_, values_) && regular(scatter.widths, locals_) &&
           !small(scatter.widths) && same_operator(scatter);
  }

  // An operator on scalars that is the same for all indices and cannot fail.
  bool same_operator(const Scatter& scatter) const {
    if (!scatter.op) return true;
    const auto same = [&](Value v) { return !locals_.contains(v); };
    return !can_fail(*scatter.op->op.body, values_) &&
           std::ranges::all_of(free_values(scatter.op->op, values_), same) &&
           std::ranges::all_of(scatter.op->neutral, [&](const Operand& x) {
             return values_.type(x).is_scalar() && (x.is_constant() || same(x.value()));
           });
  }

  // Whether the reduction, were it alone in the map, is a contraction.
  bool contracts(const Stm& reduction) const {
    Stm alone = flat_;
    Screma map = map_;
    std::vector<Stm> stms;
    for (const Stm& stm : stms_) {
      stms.push_back(stm);
      if (stm.pattern == reduction.pattern) break;
    }
    map.map.body = make_body(std::move(stms), {reduction.pattern.begin(), reduction.pattern.end()});
    alone.pattern = reduction.pattern;
    alone.op = std::move(map);
    return is_contraction(alone, values_);
  }

  // ---- what goes together -----------------------------------------------------------------------

  void group() {
    for (std::size_t k = 0; k < stms_.size(); ++k) {
      if (kinds_[k] == Kind::free) continue;
      if (kinds_[k] == Kind::parallel) {
        groups_.push_back({.members = {k}, .parallel = true, .exports = {}});
        continue;
      }
      // A scalar is made as early as its operands are there, so that less is split.
      const bool scalars = std::ranges::all_of(stms_[k].pattern, [&](Value v) { return values_.type(v).is_scalar(); });
      std::size_t g = scalars ? first_place(needs(stms_[k])) : last_work();
      if (g == groups_.size()) groups_.emplace_back();
      groups_[g].members.push_back(k);
    }
  }

  std::size_t last_work() const {
    return !groups_.empty() && !groups_.back().parallel ? groups_.size() - 1 : groups_.size();
  }

  // The first group of work that comes after what is needed; a new one if there is none.
  std::size_t first_place(const std::set<Value>& needed) const {
    std::size_t first = 0;
    for (const Value v : needed) {
      if (const std::optional<std::size_t> from = group_of(v)) first = std::max(first, *from);
    }
    for (std::size_t g = first; g < groups_.size(); ++g)
      if (!groups_[g].parallel) return g;
    return groups_.size();
  }

  std::optional<std::size_t> group_of(Value v) const {
    const auto from = definer_.find(v);
    if (from == definer_.end()) return std::nullopt;
    for (std::size_t g = 0; g < groups_.size(); ++g)
      if (std::ranges::find(groups_[g].members, from->second) != groups_[g].members.end()) return g;
    return std::nullopt;
  }

  static bool repeated(Kind kind) { return kind == Kind::free || kind == Kind::check; }

  // What a statement needs of others, looking through those that are done again.
  std::set<Value> needs(const Stm& stm) const {
    std::set<Value> result = free_values(stm.op, values_);
    result.insert(stm.certificates.begin(), stm.certificates.end());
    return through_repeated(std::move(result));
  }
  std::set<Value> through_repeated(std::set<Value> values) const {
    std::vector<Value> work(values.begin(), values.end());
    while (!work.empty()) {
      const Value v = work.back();
      work.pop_back();
      const auto from = definer_.find(v);
      if (from == definer_.end() || !repeated(kinds_[from->second])) continue;
      std::set<Value> next = free_values(stms_[from->second].op, values_);
      next.insert(stms_[from->second].certificates.begin(), stms_[from->second].certificates.end());
      for (const Value n : next)
        if (values.insert(n).second) work.push_back(n);
    }
    return values;
  }
  std::set<Value> needs(const Group& group) const {
    std::set<Value> result;
    for (const std::size_t k : group.members) result.merge(needs(stms_[k]));
    return result;
  }
  // Made by a statement of the lambda that is not done again.
  bool is_kept(Value v) const {
    const auto from = definer_.find(v);
    return from != definer_.end() && !repeated(kinds_[from->second]);
  }

  // An array whose shape depends on the map's index cannot be kept for all of them: from where it is made to where it
  // is used everything runs in one thread.
  void merge_irregular() {
    for (bool again = true; again;) {
      again = false;
      for (std::size_t g = 0; g < groups_.size() && !again; ++g) {
        for (const Value v : needs(groups_[g])) {
          const std::optional<std::size_t> from = is_kept(v) ? group_of(v) : std::nullopt;
          if (!from || *from == g || regular(values_.type(v).shape, locals_)) continue;
          join(*from, g);
          again = true;
          break;
        }
      }
    }
  }

  void join(std::size_t first, std::size_t last) {
    Group all;
    for (std::size_t g = first; g <= last; ++g)
      all.members.insert(all.members.end(), groups_[g].members.begin(), groups_[g].members.end());
    std::ranges::sort(all.members);
    const auto begin = groups_.begin() + static_cast<std::ptrdiff_t>(first);
    groups_.erase(begin, groups_.begin() + static_cast<std::ptrdiff_t>(last) + 1);
    groups_.insert(groups_.begin() + static_cast<std::ptrdiff_t>(first), std::move(all));
  }

  // Results that no group makes (constants, indices, free values) are made by work.
  void place_results() {
    for (const Operand& result : map_.map.body->results) {
      if (result.is_value() && is_kept(result.value())) continue;
      const bool placed = std::ranges::any_of(extra_results_, [&](const auto& extra) {
        return std::ranges::find(extra.second, result) != extra.second.end();
      });
      if (placed) continue;
      std::set<Value> needed;
      if (result.is_value()) needed = through_repeated({result.value()});
      const std::size_t g = first_place(needed);
      if (g == groups_.size()) groups_.emplace_back();
      extra_results_[g].push_back(result);
    }
    for (Group& group : groups_) {
      for (const std::size_t k : group.members)
        for (const Value v : stms_[k].pattern)
          if (is_exported(v, group)) group.exports.push_back(v);
    }
  }

  bool is_exported(Value v, const Group& from) const {
    if (!is_kept(v)) return false;
    if (std::ranges::find(map_.map.body->results, Operand(v)) != map_.map.body->results.end()) return true;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (&groups_[g] != &from && needs(groups_[g]).contains(v)) return true;
      const auto extra = extra_results_.find(g);
      if (&groups_[g] == &from || extra == extra_results_.end()) continue;
      for (const Operand& result : extra->second)
        if (result.is_value() && through_repeated({result.value()}).contains(v)) return true;
    }
    return false;
  }

  // ---- what becomes of it -----------------------------------------------------------------------

  // Everything a part of the lambda reads: rows of what other parts made, then what is done again.
  std::vector<Stm> prefix(const std::set<Value>& direct, const std::vector<Stm>& uses, const Group* own) {
    const std::set<Value> needed = through_repeated(direct);
    std::vector<Stm> result;
    std::vector<DimIndex> here;
    for (const Value index : map_.indices) here.push_back(DimIndex::fix(index));
    for (std::size_t k = 0; k < stms_.size(); ++k) {
      const bool inside = own != nullptr && std::ranges::find(own->members, k) != own->members.end();
      if (inside) continue;
      const Stm& stm = stms_[k];
      const auto read = [&](Value v) { return needed.contains(v); };
      if (std::ranges::none_of(stm.pattern, read)) continue;
      if (repeated(kinds_[k])) {
        result.push_back(stm);
        continue;
      }
      for (const Value v : stm.pattern)
        if (read(v)) add_row(v, Index{arrays_.at(v), here}, uses, stm.location, values_, result);
    }
    return result;
  }

  // A copy of the statements for fresh indices over the map's widths; the copied results.
  struct Copied {
    std::vector<Value> indices;
    std::vector<Stm> stms;
    std::vector<Operand> results;
  };
  Copied copied(std::vector<Stm> stms, std::vector<Operand> results) {
    Copied copy;
    Substitution here;
    for (const Value index : map_.indices) {
      copy.indices.push_back(values_.add(values_.type(index), values_.name(index)));
      here.insert_or_assign(index, Operand(copy.indices.back()));
    }
    // Shapes of what is copied do not mention the indices: they are regular, or used inside only.
    const BodyPtr body = copy_fresh(make_body(std::move(stms), std::move(results)), here, values_, values_);
    copy.stms = body->stms;
    copy.results = body->results;
    return copy;
  }

  Value array_of(Value v) {
    const auto made = arrays_.find(v);
    if (made != arrays_.end()) return made->second;
    Type type = values_.type(v);
    std::vector<Poly> shape = map_.widths;
    shape.insert(shape.end(), type.shape.begin(), type.shape.end());
    const Value array = values_.add(Type::array(type.element, std::move(shape)), values_.name(v));
    arrays_.emplace(v, array);
    return array;
  }

  Stm map_stm(Copied copy, std::vector<Value> pattern, Location location) {
    Screma map{.widths = map_.widths, .indices = copy.indices};
    map.map.body = make_body(std::move(copy.stms), std::move(copy.results));
    return {.pattern = std::move(pattern),
            .op = std::move(map),
            .location = location,
            .certificates = flat_.certificates,
            .attributes = flat_.attributes};
  }

  void emit(std::size_t g) {
    const Group& group = groups_[g];
    if (!group.parallel) return emit_work(g);
    const Stm& stm = stms_[group.members.front()];
    if (const Screma* screma = get_if<Screma>(stm)) {
      if (screma->reduces.empty()) return emit_nest(group, stm, *screma);
      return emit_segments(group, stm, *screma);
    }
    if (const Scatter* scatter = get_if<Scatter>(stm)) return emit_scatter(group, stm, *scatter);
    if (const Loop* loop = get_if<Loop>(stm)) return emit_loop(group, stm, *loop);
    emit_branch(group, stm, std::get<If>(stm.op));
  }

  void emit_work(std::size_t g) {
    const Group& group = groups_[g];
    std::vector<Stm> own;
    std::set<Value> needed;
    for (const std::size_t k : group.members) {
      own.push_back(stms_[k]);
      needed.merge(needs(stms_[k]));
    }
    std::vector<Operand> results(group.exports.begin(), group.exports.end());
    std::vector<Value> pattern;
    for (const Value v : group.exports) pattern.push_back(array_of(v));
    const auto extra = extra_results_.find(g);
    if (extra != extra_results_.end()) {
      for (const Operand& result : extra->second) {
        if (result.is_value()) needed.insert(result.value());
        results.push_back(result);
        Type type = values_.type(result);
        type.shape.insert(type.shape.begin(), map_.widths.begin(), map_.widths.end());
        pattern.push_back(values_.add(Type::array(type.element, type.shape), "extra"));
        extra_arrays_.emplace_back(result, pattern.back());
      }
    }
    // In the lambda's order: what is done again stands between the group's own.
    std::vector<Stm> before = prefix(needed, own, &group);
    std::vector<Stm> all = in_order(std::move(before), std::move(own));
    made_.push_back(map_stm(copied(std::move(all), std::move(results)), std::move(pattern), location(group)));
    work_.insert(made_.size() - 1);
  }

  // Statements sorted by where their values are bound in the lambda; rows of other parts' arrays first.
  std::vector<Stm> in_order(std::vector<Stm> before, std::vector<Stm> own) const {
    std::vector<Stm> rows, rest;
    for (Stm& stm : before) {
      const auto from = stm.pattern.empty() ? definer_.end() : definer_.find(stm.pattern.front());
      const bool again = from != definer_.end() && repeated(kinds_[from->second]);
      (again ? rest : rows).push_back(std::move(stm));
    }
    for (Stm& stm : own) rest.push_back(std::move(stm));
    std::ranges::stable_sort(rest, {}, [&](const Stm& stm) {
      return stm.pattern.empty() ? stms_.size() : definer_.at(stm.pattern.front());
    });
    rows.insert(rows.end(), rest.begin(), rest.end());
    return rows;
  }

  Location location(const Group& group) const {
    return group.members.empty() ? flat_.location : stms_[group.members.front()].location;
  }

  // map { map } over all widths.
  void emit_nest(const Group& group, const Stm& stm, const Screma& screma) {
    const Lambda& lambda = screma.map;
    std::vector<Stm> stms = prefix(needs(stm), {stm}, &group);
    std::vector<DimIndex> own;
    for (const Value index : screma.indices) own.push_back(DimIndex::fix(index));
    // Inner indices are bound by the new map, so that they are copied by hand.
    Substitution fresh;
    std::vector<Value> indices;
    for (const Value index : screma.indices) {
      indices.push_back(values_.add(values_.type(index), values_.name(index)));
      fresh.insert_or_assign(index, Operand(indices.back()));
    }
    const std::set<Value> read = free_values(*lambda.body, values_);
    for (std::size_t k = 0; k < screma.inputs.size(); ++k)
      if (read.contains(lambda.params[k]))
        add_row(lambda.params[k], Index{screma.inputs[k], own}, lambda.body->stms, stm.location, values_, stms);
    stms.insert(stms.end(), lambda.body->stms.begin(), lambda.body->stms.end());
    std::vector<Operand> results;
    std::vector<Value> pattern;
    for (std::size_t k = 0; k < stm.pattern.size(); ++k) {
      if (std::ranges::find(group.exports, stm.pattern[k]) == group.exports.end()) continue;
      results.push_back(lambda.body->results[k]);
      pattern.push_back(array_of(stm.pattern[k]));
    }
    const BodyPtr renamed = substitute(make_body(std::move(stms), std::move(results)), fresh, values_);
    Stm made = map_stm(copied(renamed->stms, renamed->results), std::move(pattern), stm.location);
    Screma& map = std::get<Screma>(made.op);
    map.widths.insert(map.widths.end(), screma.widths.begin(), screma.widths.end());
    map.indices.insert(map.indices.end(), indices.begin(), indices.end());
    made.attributes.insert(made.attributes.end(), stm.attributes.begin(), stm.attributes.end());
    made_.push_back(std::move(made));
  }

  void emit_segments(const Group& group, const Stm& stm, const Screma& screma) {
    Copied copy = copied(in_order(prefix(needs(stm), {stm}, &group), {stm}), {});
    Stm inner = std::move(copy.stms.back());
    copy.stms.pop_back();
    for (std::size_t k = 0; k < stm.pattern.size(); ++k) inner.pattern[k] = array_of(stm.pattern[k]);
    inner.certificates = flat_.certificates;
    const Segments segments{map_.widths, copy.indices, std::move(copy.stms)};
    const std::vector<Stm> all = screma.scans() ? make_chunked_scan(inner, segments, chunks_(), values_)
                                                : make_chunked_reduction(inner, segments, chunks_(), values_);
    made_.insert(made_.end(), all.begin(), all.end());
  }

  // One scatter over both widths, into the arrays of the targets.
  void emit_scatter(const Group& group, const Stm& stm, const Scatter& scatter) {
    std::set<Value> needed = free_values(scatter.map, values_);
    if (scatter.op) needed.merge(free_values(scatter.op->op, values_));
    needed.insert(scatter.inputs.begin(), scatter.inputs.end());
    needed.insert(stm.certificates.begin(), stm.certificates.end());
    // The targets are not read.
    std::vector<Stm> stms = prefix(needed, {}, &group);
    Stm alone = stm;
    Scatter& op = std::get<Scatter>(alone.op);
    const std::vector<Value> targets = op.targets;
    stms.push_back(alone);
    Copied copy = copied(std::move(stms), {});
    Scatter inner = std::get<Scatter>(copy.stms.back().op);
    copy.stms.pop_back();
    Scatter wide = inner;
    wide.widths = map_.widths;
    wide.widths.insert(wide.widths.end(), inner.widths.begin(), inner.widths.end());
    wide.indices = copy.indices;
    wide.indices.insert(wide.indices.end(), inner.indices.begin(), inner.indices.end());
    wide.rank = map_.widths.size() + inner.rank;
    std::vector<DimIndex> own;
    for (const Value index : inner.indices) own.push_back(DimIndex::fix(index));
    for (std::size_t k = 0; k < inner.inputs.size(); ++k)
      add_row(inner.map.params[k], Index{inner.inputs[k], own}, inner.map.body->stms, stm.location, values_, copy.stms);
    copy.stms.insert(copy.stms.end(), inner.map.body->stms.begin(), inner.map.body->stms.end());
    std::vector<Operand> results(copy.indices.begin(), copy.indices.end());
    results.insert(results.end(), inner.map.body->results.begin(), inner.map.body->results.end());
    wide.inputs.clear();
    wide.map.params.clear();
    wide.map.body = make_body(std::move(copy.stms), std::move(results));
    for (std::size_t k = 0; k < targets.size(); ++k) wide.targets[k] = arrays_.at(targets[k]);
    std::vector<Value> pattern;
    for (const Value v : stm.pattern) pattern.push_back(array_of(v));
    made_.push_back({.pattern = std::move(pattern),
                     .op = std::move(wide),
                     .location = stm.location,
                     .certificates = flat_.certificates,
                     .attributes = stm.attributes});
  }

  // The array outside whose rows, one an index, the value is.
  std::optional<Value> rows_of(Value v) const {
    const auto from = definer_.find(v);
    const Index* index = from == definer_.end() ? nullptr : get_if<Index>(stms_[from->second]);
    if (index == nullptr || locals_.contains(index->array) || index->dims.size() != map_.indices.size())
      return std::nullopt;
    const Type& type = values_.type(index->array);
    for (std::size_t k = 0; k < index->dims.size(); ++k) {
      const bool here = !index->dims[k].is_slice() && index->dims[k].start == Poly(map_.indices[k]);
      if (!here || type.shape[k] != map_.widths[k]) return std::nullopt;
    }
    return index->array;
  }

  // The arrays that hold `wanted` for every index: those of other parts, or made here.
  std::vector<Value> arrays_for(const std::vector<Operand>& wanted, const Group& group, Location at) {
    std::vector<Value> result(wanted.size(), Value());
    std::vector<Operand> results;
    std::vector<Value> pattern;
    std::set<Value> needed;
    for (std::size_t k = 0; k < wanted.size(); ++k) {
      const Operand& x = wanted[k];
      if (x.is_value() && is_kept(x.value())) {
        result[k] = arrays_.at(x.value());
        continue;
      }
      if (const std::optional<Value> whole = x.is_value() ? rows_of(x.value()) : std::nullopt) {
        result[k] = *whole;
        continue;
      }
      if (x.is_value()) needed.insert(x.value());
      Type type = values_.type(x);
      type.shape.insert(type.shape.begin(), map_.widths.begin(), map_.widths.end());
      result[k] =
          values_.add(Type::array(type.element, type.shape), x.is_value() ? values_.name(x.value()) : "initial");
      results.push_back(x);
      pattern.push_back(result[k]);
    }
    if (!pattern.empty()) {
      std::vector<Stm> stms = prefix(needed, {}, &group);
      made_.push_back(map_stm(copied(std::move(stms), std::move(results)), std::move(pattern), at));
    }
    return result;
  }

  // A body of the lambda's, as a map over the widths whose results are arrays.
  BodyPtr mapped(const Body& body, const std::vector<std::pair<Value, Value>>& rows, const Group& group,
                 const std::vector<Value>& like, Location at) {
    std::set<Value> needed = free_values(body, values_);
    for (const auto& [row, array] : rows) needed.erase(row);
    std::vector<Stm> stms = prefix(needed, body.stms, &group);
    std::vector<DimIndex> here;
    for (const Value index : map_.indices) here.push_back(DimIndex::fix(index));
    for (const auto& [row, array] : rows) add_row(row, Index{array, here}, body.stms, at, values_, stms);
    stms.insert(stms.end(), body.stms.begin(), body.stms.end());
    std::vector<Value> pattern;
    for (const Value v : like) {
      const Type type = values_.type(array_of(v));
      pattern.push_back(values_.add(type, values_.name(v)));
    }
    Stm map = map_stm(copied(std::move(stms), body.results), pattern, at);
    return make_body({std::move(map)}, {pattern.begin(), pattern.end()});
  }

  void emit_loop(const Group& group, const Stm& stm, const Loop& loop) {
    Loop outer{.index = loop.index, .bound = loop.bound};
    const std::vector<Value> initial = arrays_for(loop.initial, group, stm.location);
    outer.initial.assign(initial.begin(), initial.end());
    std::vector<std::pair<Value, Value>> rows;
    for (std::size_t k = 0; k < loop.params.size(); ++k) {
      outer.params.push_back(values_.add(values_.type(initial[k]), values_.name(loop.params[k])));
      rows.emplace_back(loop.params[k], outer.params[k]);
    }
    outer.body = mapped(*loop.body, rows, group, stm.pattern, stm.location);
    push_host(stm, std::move(outer));
  }

  void emit_branch(const Group& group, const Stm& stm, const If& branch) {
    If outer{.condition = branch.condition};
    outer.then_body = mapped(*branch.then_body, {}, group, stm.pattern, stm.location);
    outer.else_body = mapped(*branch.else_body, {}, group, stm.pattern, stm.location);
    push_host(stm, std::move(outer));
  }

  void push_host(const Stm& stm, Op op) {
    std::vector<Value> pattern;
    for (const Value v : stm.pattern) pattern.push_back(array_of(v));
    made_.push_back({.pattern = std::move(pattern),
                     .op = std::move(op),
                     .location = stm.location,
                     .certificates = flat_.certificates,
                     .attributes = stm.attributes});
  }

  // The map's own results are other names of the arrays; two of one array are no names but arrays.
  void bind_results() {
    const std::vector<Operand>& results = map_.map.body->results;
    std::set<Value> bound;
    for (std::size_t k = 0; k < results.size(); ++k) {
      Value array;
      if (results[k].is_value() && is_kept(results[k].value())) {
        array = arrays_.at(results[k].value());
      } else {
        const auto made = std::ranges::find(extra_arrays_, results[k], &std::pair<Operand, Value>::first);
        array = made->second;
      }
      const Op name = bound.insert(array).second ? Op(Use{Operand(array)}) : Op(Copy{array});
      made_.push_back({.pattern = {flat_.pattern[k]}, .op = name, .location = flat_.location});
    }
  }

  Distributed::Form form_of(const Stm& stm) const {
    using Form = Distributed::Form;
    if (std::holds_alternative<Loop>(stm.op)) return Form::loop;
    if (std::holds_alternative<If>(stm.op)) return Form::branch;
    if (std::holds_alternative<Scatter>(stm.op)) return Form::scatter;
    const Screma& screma = std::get<Screma>(stm.op);
    return screma.reduces.empty() ? Form::split : screma.scans() ? Form::scan : Form::reduction;
  }

  const Stm& flat_;
  const Screma& map_;
  const Replicated& replicated_;
  const std::function<Chunks()>& chunks_;
  ValueTable& values_;
  Locals locals_;
  std::vector<Stm> stms_;
  std::vector<Kind> kinds_;
  std::unordered_map<Value, std::size_t> definer_;
  std::vector<Group> groups_;
  std::map<std::size_t, std::vector<Operand>> extra_results_;  // by group
  std::vector<std::pair<Operand, Value>> extra_arrays_;
  std::unordered_map<Value, Value> arrays_;  // values of the lambda for every index
  std::vector<Stm> made_;
  std::set<std::size_t> work_;  // positions in made_
};

}  // namespace

std::optional<Distributed> distribute(const Stm& flat, const Replicated& replicated,
                                      const std::function<Chunks()>& chunks, ValueTable& values) {
  const bool asked =
      std::ranges::any_of(flat.attributes, [](const Attribute& a) { return a.name == "sequential_inner"; });
  if (asked) return std::nullopt;
  return Splitter(flat, replicated, chunks, values).run();
}

}  // namespace apl
