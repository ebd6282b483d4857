// Statements are of four kinds. *Free* ones (views, a few scalar operations) are done again wherever their values are
// needed, and so are *checks*, wherever something relies on them. *Parallel* ones are operations with parallelism of
// their own that the map's index does not shape: maps, reductions, scans, scatters, loops and branches with such in
// them. The rest is sequential *work*; neighbouring work is one part.
//
// Stays in one thread: what has a shape that depends on the map's index; operations over at most kSmall elements; a
// contraction's reduction, which tile-contraction wants so; a reduction over a window of at most kWindow elements, as
// neighbouring threads read nearly the same ones; a loop that updates in place, since on the host it would copy all its
// arrays every time round, unless it does so by scatters alone, which then overwrite the rows of all indices.
#include "passes/extract_kernels/parts.h"

#include <algorithm>

#include "ir/attributes.h"
#include "ir/walk.h"
#include "passes/analysis/cheap.h"
#include "passes/analysis/consumption.h"
#include "passes/analysis/contractions.h"
#include "passes/extract_kernels/nest.h"
#include "passes/extract_kernels/reductions.h"
#include "passes/extract_kernels/scans.h"
#include "passes/extract_kernels/split_operators.h"

namespace apl {

namespace {

constexpr std::int64_t kSmall = 32;      // elements that one thread goes through
constexpr std::int64_t kWindow = 1024;   // the same, where windows of neighbouring threads overlap
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

bool small(const std::vector<Poly>& widths, std::int64_t most = kSmall) {
  const std::optional<std::int64_t> size = product(widths).constant();
  return size && *size <= most;
}

bool is_sequential(const Stm& stm) {
  return has_attribute(stm.attributes, attribute::sequential) || has_attribute(stm.attributes, attribute::sparse_sum);
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

// Why the reduction in the map is no contraction that can be tiled; nullopt if it is one.
std::optional<Refusal> refuse_contraction(const Stm& flat, const ValueTable& values) {
  ValueTable scratch = values;
  const std::optional<Match> match = match_alone(make_kernel(flat), scratch);
  if (!match) return Refusal{};
  const Refusal* refusal = std::get_if<Refusal>(&*match);
  return refusal != nullptr ? std::optional(*refusal) : std::nullopt;
}

}  // namespace

Parts::Parts(const Stm& flat, const Replicated& replicated, ValueTable& values)
    : flat_(flat), map_(std::get<Screma>(flat.op)), replicated_(replicated), values_(values) {
  prepare();
  classify();
  if (std::ranges::find(kinds_, Kind::parallel) == kinds_.end()) return;
  group();
  merge_irregular();
  place_results();
}

bool Parts::any_parallel() const { return parts_.size() > 1 || (parts_.size() == 1 && parts_.front().parallel); }

// The lambda's statements; operators on rows are taken apart, arrays that are made to be written into become maps.
void Parts::prepare() {
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
  std::set<Value> wanted;  // as arrays, whatever else happens
  for (const Operand& result : map_.map.body->results)
    if (result.is_value()) wanted.insert(result.value());
  for (const Stm& stm : stms_) {
    const Scatter* scatter = get_if<Scatter>(stm);
    if (scatter != nullptr && spreads(stm, *scatter, locals_))
      wanted.insert(scatter->targets.begin(), scatter->targets.end());
    const Loop* loop = get_if<Loop>(stm);
    if (loop == nullptr || scattered_params(*loop).empty()) continue;
    for (const Operand& initial : loop->initial)
      if (initial.is_value()) wanted.insert(initial.value());
  }
  for (std::size_t k = 0; k < stms_.size(); ++k)
    for (const Value v : stms_[k].pattern) definer_.emplace(v, k);
  for (Stm& stm : stms_) {
    if (adopted(stm)) continue;
    if (stm.pattern.size() != 1 || !wanted.contains(stm.pattern.front())) continue;
    const Type& type = values_.type(stm.pattern.front());
    if (!regular(type.shape, locals_) || small(type.shape)) continue;
    if (std::optional<Stm> map = make_producer_map(stm, values_)) stm = std::move(*map);
  }
}

void Parts::classify() {
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

Parts::Kind Parts::kind_of(const Stm& stm) {
  if (std::holds_alternative<Assert>(stm.op)) return Kind::check;
  if (adopted(stm)) return Kind::adopted;
  if (is_parallel(stm)) return Kind::parallel;
  Stm alone = stm;
  alone.certificates.clear();  // the checks are done again, too
  return is_cheap(Body{.stms = {alone}}, values_) ? Kind::free : Kind::work;
}

bool Parts::is_parallel(const Stm& stm) {
  if (is_sequential(stm) || !regular(stm.pattern, locals_, values_)) return false;
  if (const Screma* screma = get_if<Screma>(stm)) {
    if (!regular(screma->widths, locals_) || small(screma->widths)) return false;
    if (screma->reduces.empty() || scans_scalars(*screma, values_)) return true;
    if (small(screma->widths, kWindow) && reads_windows(*screma, map_.indices)) return false;
    return reduces_scalars(*screma, values_) && !contracts(stm);
  }
  if (const Scatter* scatter = get_if<Scatter>(stm)) {
    return spreads(stm, *scatter, locals_) &&
           std::ranges::all_of(scatter->targets, [&](Value v) { return is_kept(v); });
  }
  if (const Loop* loop = get_if<Loop>(stm)) {
    return loop->index && regular(loop->bound, locals_) && regular(loop->params, locals_, values_) &&
           has_parallel_part(*loop->body, locals_, values_) &&
           (!updates_in_place(stm, values_) || only_scatters(*loop));
  }
  if (const If* branch = get_if<If>(stm)) {
    const bool same = branch->condition.is_constant() || !locals_.contains(branch->condition.value());
    return same && (has_parallel_part(*branch->then_body, locals_, values_) ||
                    has_parallel_part(*branch->else_body, locals_, values_));
  }
  return false;
}

// Whether the scatter could be one with those of other indices, where these values are the index's own.
bool Parts::spreads(const Stm& stm, const Scatter& scatter, const Locals& locals) const {
  return !is_sequential(stm) && regular(stm.pattern, locals, values_) && regular(scatter.widths, locals) &&
         !small(scatter.widths) && same_operator(scatter, locals);
}

// An operator on scalars that is the same for all indices and cannot fail.
bool Parts::same_operator(const Scatter& scatter, const Locals& locals) const {
  if (!scatter.op) return true;
  const auto same = [&](Value v) { return !locals.contains(v); };
  return !can_fail(*scatter.op->op.body, values_) && std::ranges::all_of(free_values(scatter.op->op, values_), same) &&
         std::ranges::all_of(scatter.op->neutral, [&](const Operand& x) {
           return values_.type(x).is_scalar() && (x.is_constant() || same(x.value()));
         });
}

// Whether all that the loop overwrites are parameters of its own that it does nothing else with, by scatters that could
// be one with those of other indices.
bool Parts::only_scatters(const Loop& loop) const {
  Locals locals = locals_;
  locals.insert(loop.params.begin(), loop.params.end());
  for (const Stm& stm : loop.body->stms) locals.insert(stm.pattern.begin(), stm.pattern.end());
  std::size_t updates = 0;
  bool spread = true;
  for_each_stm(*loop.body, [&](const Stm& stm) {
    updates += std::holds_alternative<Update>(stm.op);
    const Scatter* scatter = get_if<Scatter>(stm);
    if (scatter == nullptr) return;
    updates += scatter->targets.size();
    spread = spread && spreads(stm, *scatter, locals);
  });
  return spread && updates == scattered_params(loop).size();
}

// Whether the reduction, were it alone in the map with what it needs, is a contraction.
bool Parts::contracts(const Stm& reduction) {
  const std::optional<Refusal> refusal = refuse_contraction(only(flat_, stms_, reduction, values_), values_);
  if (refusal) not_tiled_.push_back(*refusal);
  return !refusal;
}

void Parts::group() {
  for (std::size_t k = 0; k < stms_.size(); ++k) {
    if (kinds_[k] == Kind::free || kinds_[k] == Kind::adopted) continue;
    if (kinds_[k] == Kind::parallel) {
      parts_.push_back({.members = {k}, .parallel = true, .exports = {}, .extra = {}});
      continue;
    }
    // A scalar is made as early as its operands are there, so that less is split.
    const bool scalars = std::ranges::all_of(stms_[k].pattern, [&](Value v) { return values_.type(v).is_scalar(); });
    std::size_t g = scalars ? first_place(needs(stms_[k])) : last_work();
    if (g == parts_.size()) parts_.emplace_back();
    parts_[g].members.push_back(k);
  }
}

std::size_t Parts::last_work() const {
  return !parts_.empty() && !parts_.back().parallel ? parts_.size() - 1 : parts_.size();
}

// The first group of work that comes after what is needed; a new one if there is none.
std::size_t Parts::first_place(const std::set<Value>& needed) const {
  std::size_t first = 0;
  for (const Value v : needed) {
    if (const std::optional<std::size_t> from = part_of(v)) first = std::max(first, *from);
  }
  for (std::size_t g = first; g < parts_.size(); ++g)
    if (!parts_[g].parallel) return g;
  return parts_.size();
}

std::optional<std::size_t> Parts::part_of(Value v) const {
  const auto from = definer_.find(v);
  if (from == definer_.end()) return std::nullopt;
  for (std::size_t g = 0; g < parts_.size(); ++g)
    if (std::ranges::find(parts_[g].members, from->second) != parts_[g].members.end()) return g;
  return std::nullopt;
}

bool Parts::is_repeated(std::size_t stm) const { return kinds_[stm] == Kind::free || kinds_[stm] == Kind::check; }

std::optional<std::size_t> Parts::definer(Value v) const {
  const auto from = definer_.find(v);
  return from == definer_.end() ? std::nullopt : std::optional(from->second);
}

std::optional<Value> Parts::rows_of(Value v) const {
  const std::optional<std::size_t> from = definer(v);
  const Index* index = from ? get_if<Index>(stms_[*from]) : nullptr;
  if (index == nullptr || is_local(index->array) || index->dims.size() != map_.indices.size()) return std::nullopt;
  const Type& type = values_.type(index->array);
  for (std::size_t k = 0; k < index->dims.size(); ++k) {
    const bool here = !index->dims[k].is_slice() && index->dims[k].start == Poly(map_.indices[k]);
    if (!here || type.shape[k] != map_.widths[k]) return std::nullopt;
  }
  return index->array;
}

std::optional<Value> Parts::adopted(const Stm& stm) const {
  const Copy* copy = get_if<Copy>(stm);
  return copy != nullptr && has_attribute(stm.attributes, attribute::adopted) ? rows_of(copy->array) : std::nullopt;
}

// What a statement needs of others, looking through those that are done again.
std::set<Value> Parts::needs(const Stm& stm) const {
  std::set<Value> result = free_values(stm.op, values_);
  result.insert(stm.certificates.begin(), stm.certificates.end());
  return through_repeated(std::move(result));
}
std::set<Value> Parts::through_repeated(std::set<Value> values) const {
  std::vector<Value> work(values.begin(), values.end());
  while (!work.empty()) {
    const Value v = work.back();
    work.pop_back();
    const auto from = definer_.find(v);
    if (from == definer_.end() || !is_repeated(from->second)) continue;
    std::set<Value> next = free_values(stms_[from->second].op, values_);
    next.insert(stms_[from->second].certificates.begin(), stms_[from->second].certificates.end());
    for (const Value n : next)
      if (values.insert(n).second) work.push_back(n);
  }
  return values;
}
std::set<Value> Parts::needs(const Part& group) const {
  std::set<Value> result;
  for (const std::size_t k : group.members) result.merge(needs(stms_[k]));
  return result;
}
// Made by a statement of the lambda that is not done again.
bool Parts::is_kept(Value v) const {
  const auto from = definer_.find(v);
  return from != definer_.end() && !is_repeated(from->second);
}

// An array whose shape depends on the map's index cannot be kept for all of them: from where it is made to where it
// is used everything runs in one thread.
void Parts::merge_irregular() {
  for (bool again = true; again;) {
    again = false;
    for (std::size_t g = 0; g < parts_.size() && !again; ++g) {
      for (const Value v : needs(parts_[g])) {
        const std::optional<std::size_t> from = is_kept(v) ? part_of(v) : std::nullopt;
        if (!from || *from == g || regular(values_.type(v).shape, locals_)) continue;
        join(*from, g);
        again = true;
        break;
      }
    }
  }
}

void Parts::join(std::size_t first, std::size_t last) {
  Part all;
  for (std::size_t g = first; g <= last; ++g)
    all.members.insert(all.members.end(), parts_[g].members.begin(), parts_[g].members.end());
  std::ranges::sort(all.members);
  const auto begin = parts_.begin() + static_cast<std::ptrdiff_t>(first);
  parts_.erase(begin, parts_.begin() + static_cast<std::ptrdiff_t>(last) + 1);
  parts_.insert(parts_.begin() + static_cast<std::ptrdiff_t>(first), std::move(all));
}

// Results that no group makes (constants, indices, free values) are made by work.
void Parts::place_results() {
  for (const Operand& result : map_.map.body->results) {
    if (result.is_value() && is_kept(result.value())) continue;
    const bool placed = std::ranges::any_of(
        parts_, [&](const Part& part) { return std::ranges::find(part.extra, result) != part.extra.end(); });
    if (placed) continue;
    std::set<Value> needed;
    if (result.is_value()) needed = through_repeated({result.value()});
    const std::size_t g = first_place(needed);
    if (g == parts_.size()) parts_.emplace_back();
    parts_[g].extra.push_back(result);
  }
  for (Part& group : parts_) {
    for (const std::size_t k : group.members)
      for (const Value v : stms_[k].pattern)
        if (is_exported(v, group)) group.exports.push_back(v);
  }
}

bool Parts::is_exported(Value v, const Part& from) const {
  if (!is_kept(v)) return false;
  if (std::ranges::find(map_.map.body->results, Operand(v)) != map_.map.body->results.end()) return true;
  for (std::size_t g = 0; g < parts_.size(); ++g) {
    if (&parts_[g] != &from && needs(parts_[g]).contains(v)) return true;
    if (&parts_[g] == &from) continue;
    for (const Operand& result : parts_[g].extra)
      if (result.is_value() && through_repeated({result.value()}).contains(v)) return true;
  }
  return false;
}

}  // namespace apl
