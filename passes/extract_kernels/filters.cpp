// Filters on GPUs: what the frontend makes of `filter p xs`, and all that is like it, is one kernel.
//
//   let {places, flags} = screma(i < n, {xs}, \{x} -> {convert(p x), p x}, scan add 0)
//   let {kept} = if 0 < n { places[n - 1] } else { 0 }
//   let {out : [kept]f32} = scratch([kept]f32)
//   let {ys} = scatter(i < n, {flags, places, xs}, \{f, at, x} -> {if f { at - 1 } else { -1 }, x}, {out} at 1)
// =>
//   let {counts : [1]i64, all : [1][n]f32} = segmap(thread) (c < 1) team(256) blocks(B) { .. the same, scratch of n
//   elements .. } let {kept} = counts[0] let {ys : [kept]f32} = all[0, 0 :+ kept]
//
// How many elements there are is known when they are written, so all n have memory. A block that has scanned
// its tile has the elements' places in registers, and writes them: places and flags never come to memory.
//
// Fires where the scan counts (it adds 1 or 0 for each element, so that there are at most n), its rows are read by the
// scatter at the same index and nowhere else, but for the last element; and the scatter needs nothing that comes behind
// the scan, among it the count.
//
// Where the arrays' size is known before, nothing needs to be counted, and the scan may be any. So are the last part of
// a partition, and a step of a radix sort that reduces its flags, too, for where each digit begins:
//
//   let {a, b, na, bins} = screma(i < n, {xs}, f, scan .., reduce ..)
//   let {room : [n]u32} = scratch([n]u32)
//   let {ys} = scatter(i < n, {bins, a, b, xs}, .., {room} at 1)
// =>
//   let {na} = screma(i < n, {xs}, f', reduce ..)
//   let {all : [1][n]u32} = segmap(thread) (c < 1) team(256) blocks(B) { .. the scan, the scatter .. }
//   let {ys} = all[0]
//
// For that scans and reductions of one operation come apart where what is done for an element is little scalar code,
// which is done for each of them then: each reads the inputs, and neither rows nor places come to memory. It needs
// arrays that hold nothing before (scratch): of others the elements that are not written stay, and a kernel that writes
// into an array made before it has no blocks that share a scan.
#include "passes/extract_kernels/filters.h"

#include <range/v3/view/zip.hpp>

#include <algorithm>
#include <map>
#include <utility>

#include "ir/builder.h"
#include "ir/walk.h"

namespace apl {

namespace {

// Whether the scan's first operator adds 1 or 0 for each element, and there is no other.
bool counts(const Screma& scan, const ValueTable& values) {
  if (scan.reduces.size() != 1 || !scan.reduces.front().scan || scan.widths.size() != 1) return false;
  const ReduceOp& reduce = scan.reduces.front();
  if (reduce.neutral.size() != 1) return false;
  if (reduce.neutral.front() != i64_constant(0)) return false;
  const Body& add = *reduce.op.body;
  const SizeExpr* sum = add.stms.size() == 1 ? get_if<SizeExpr>(add.stms.front()) : nullptr;
  const bool adds = as_binary_op(reduce.op) == BinaryOp::add ||
                    (sum != nullptr && sum->value == Poly(reduce.op.params[0]) + Poly(reduce.op.params[1]) &&
                     add.results.front() == Operand(add.stms.front().pattern.front()));
  const Operand& element = scan.map.body->results.front();
  const Stm* made = element.is_value() ? defining_stm(*scan.map.body, element.value()) : nullptr;
  const Convert* flag = made != nullptr ? get_if<Convert>(*made) : nullptr;
  return adds && flag != nullptr && values.type(flag->x).element == ScalarType::boolean;
}

// Whether the condition is that there are elements.
bool has_some(const Operand& condition, const Poly& n, const Body& body) {
  const Stm* made = condition.is_value() ? defining_stm(body, condition.value()) : nullptr;
  const Compare* compare = made != nullptr ? get_if<Compare>(*made) : nullptr;
  if (compare == nullptr || compare->op != CompareOp::lt || compare->x != i64_constant(0) || !compare->y.is_value())
    return false;
  const Stm* size = defining_stm(body, compare->y.value());
  const SizeExpr* computed = size != nullptr ? get_if<SizeExpr>(*size) : nullptr;
  return Poly(compare->y.value()) == n || (computed != nullptr && computed->value == n);
}

// Whether the statement of the body makes the last element of `row`, of `n` ones, or 0 if there is none.
bool makes_last(const Stm& stm, Value row, const Poly& n, const Body& body) {
  const If* branch = get_if<If>(stm);
  if (branch != nullptr && !has_some(branch->condition, n, body)) return false;
  if (branch == nullptr || stm.pattern.size() != 1 || branch->then_body->stms.size() != 1 ||
      !branch->else_body->stms.empty() || branch->else_body->results.front() != i64_constant(0))
    return false;
  const Stm& read = branch->then_body->stms.front();
  const Index* index = get_if<Index>(read);
  return index != nullptr && index->array == row && index->dims.size() == 1 && !index->dims.front().is_slice() &&
         index->dims.front().start == n - 1 && branch->then_body->results.front() == Operand(read.pattern.front());
}

bool mentions(const Stm& stm, const std::vector<Value>& some, const ValueTable& values) {
  const std::set<Value> read = free_values(stm.op, values);
  return std::ranges::any_of(some, [&](Value v) { return read.contains(v); });
}

// Whether the statement may overwrite what others read, other than arrays that hold nothing yet.
bool may_overwrite(const Stm& stm, const Body& body) {
  if (const Scatter* scatter = get_if<Scatter>(stm))
    return !std::ranges::all_of(scatter->targets, [&](Value target) {
      const Stm* made = defining_stm(body, target);
      return made != nullptr && get_if<Scratch>(*made) != nullptr;
    });
  bool found = get_if<Update>(stm) || get_if<Loop>(stm) || get_if<Apply>(stm);
  for_each_body(stm.op, [&](const BodyPtr& inner) {
    for_each_stm(*inner, [&](const Stm& other) {
      found = found || get_if<Update>(other) || get_if<Scatter>(other) || get_if<Loop>(other) || get_if<Apply>(other);
    });
  });
  return found;
}

}  // namespace

std::optional<Filter> find_filter(const Body& body, std::size_t first, const ValueTable& values) {
  const Stm& scan = body.stms[first];
  const Screma* screma = get_if<Screma>(scan);
  if (screma == nullptr || screma->widths.size() != 1 || screma->reduces.size() != 1 || !screma->reduces.front().scan)
    return std::nullopt;
  if (std::none_of(body.stms.begin() + static_cast<std::ptrdiff_t>(first) + 1, body.stms.end(), [&](const Stm& stm) {
        return get_if<Scatter>(stm) != nullptr && mentions(stm, scan.pattern, values);
      }))
    return std::nullopt;
  Filter filter{.members = {first}, .scan = first, .scatter = 0, .count = {}, .refusal = {}};
  std::set<Value> behind, derived;  // what is made behind the scan, and of what it gives
  bool is_read_otherwise = std::ranges::any_of(body.results, [&](const Operand& x) {
    return x.is_value() && std::ranges::find(scan.pattern, x.value()) != scan.pattern.end();
  });
  const auto takes = [&](const Stm& stm, std::size_t k) {
    if (makes_last(stm, scan.pattern.front(), screma->widths.front(), body)) {
      if (filter.count) return false;
      filter.count = stm.pattern.front();
      return true;
    }
    const Scatter* scatter = get_if<Scatter>(stm);
    if (scatter == nullptr || filter.scatter != 0 || scatter->op || scatter->widths != screma->widths) return false;
    std::set<Value> needed = free_values(scatter->map, values);
    needed.insert(scatter->inputs.begin(), scatter->inputs.end());
    for (const Value v : scan.pattern) needed.erase(v);
    const std::set<Value>& late = filter.count ? behind : derived;
    if (std::ranges::any_of(needed, [&](Value v) { return late.contains(v); }))
      filter.refusal = "where elements go depends on what comes behind the scan";
    filter.scatter = k;
    return true;
  };
  for (std::size_t k = first + 1; k < body.stms.size(); ++k) {
    const Stm& stm = body.stms[k];
    if (mentions(stm, scan.pattern, values)) {
      if (takes(stm, k)) {
        filter.members.insert(k);
      } else {
        is_read_otherwise = true;
      }
      derived.insert(stm.pattern.begin(), stm.pattern.end());
    } else if (std::ranges::any_of(free_values(stm.op, values), [&](Value v) { return derived.contains(v); })) {
      derived.insert(stm.pattern.begin(), stm.pattern.end());
    }
    behind.insert(stm.pattern.begin(), stm.pattern.end());
  }
  if (filter.scatter == 0 || (filter.count && !counts(*screma, values))) return std::nullopt;
  const Scatter& scatter = std::get<Scatter>(body.stms[filter.scatter].op);
  for (const Value target : scatter.targets) {
    const auto made = std::ranges::find_if(
        body.stms, [&](const Stm& stm) { return std::ranges::find(stm.pattern, target) != stm.pattern.end(); });
    const std::vector<Poly>& shape = values.type(target).shape;
    if (made == body.stms.end() || get_if<Scratch>(*made) == nullptr || shape.size() != 1) return std::nullopt;
    bool is_known = true;
    shape.front().for_each_symbol([&](Value v) { is_known = is_known && !derived.contains(v); });
    if (filter.count ? shape.front() != Poly(filter.count) : !is_known) return std::nullopt;
    const auto readers =
        std::ranges::count_if(body.stms, [&](const Stm& stm) { return mentions(stm, {target}, values); });
    if (readers != 1) return std::nullopt;
    filter.members.insert(static_cast<std::size_t>(made - body.stms.begin()));
  }
  // The scan comes later then.
  if (!filter.count)
    for (std::size_t k = first + 1; k < filter.scatter; ++k)
      if (may_overwrite(body.stms[k], body)) filter.refusal = "an array may be overwritten between them";
  for (const std::size_t k : filter.members)
    if (!body.stms[k].certificates.empty()) filter.refusal = "it relies on a check";
  if (is_read_otherwise && filter.refusal.empty()) filter.refusal = "what is scanned is read elsewhere, too";
  return filter;
}

namespace {

// Statements that several kernels may do for each element, as reading it costs more.
constexpr std::size_t kMostLightStms = 48;

// How many there are, if all are scalar code that cannot fail and reads no arrays.
std::optional<std::size_t> light_statements(const Body& body, const ValueTable& values) {
  std::size_t count = body.stms.size();
  for (const Stm& stm : body.stms) {
    const bool computes = get_if<Unary>(stm) || get_if<Binary>(stm) || get_if<Compare>(stm) || get_if<Convert>(stm) ||
                          get_if<SizeExpr>(stm) || get_if<Use>(stm);
    if ((!computes && !get_if<If>(stm)) || can_fail(stm.op, values) || !stm.certificates.empty()) return std::nullopt;
    for (const BodyPtr& branch : branches(stm.op)) {
      const auto inside = light_statements(*branch, values);
      if (!inside) return std::nullopt;
      count += *inside;
    }
  }
  return count;
}

// One operator of the statement alone, with fresh values for these of its mapped rows.
Stm operator_alone(const Stm& stm, std::size_t which, const std::vector<std::size_t>& rows, ValueTable& values) {
  Screma own = std::get<Screma>(stm.op);
  std::size_t first = 0;
  for (std::size_t k = 0; k < which; ++k) first += own.reduces[k].neutral.size();
  const std::size_t count = own.reduces[which].neutral.size();
  std::vector<std::size_t> kept;
  for (std::size_t k = first; k < first + count; ++k) kept.push_back(k);
  kept.insert(kept.end(), rows.begin(), rows.end());
  own.reduces = {own.reduces[which]};
  Substitution indices;
  for (Value& index : own.indices) {
    const Value fresh = values.add(values.type(index), values.name(index));
    indices.insert_or_assign(index, Operand(fresh));
    index = fresh;
  }
  Stm alone = stm;
  alone.pattern.clear();
  own.map = copy_fresh(own.map, {}, values, values);
  std::vector<Operand> results;
  for (const std::size_t k : kept) {
    results.push_back(own.map.body->results[k]);
    const Value made = stm.pattern[k];
    alone.pattern.push_back(k < first + count ? made : values.add(values.type(made), values.name(made)));
  }
  // Without what only the others need.
  std::set<Value> needed;
  for (const Operand& x : results)
    if (x.is_value()) needed.insert(x.value());
  std::vector<Stm> stms;
  for (auto it = own.map.body->stms.rbegin(); it != own.map.body->stms.rend(); ++it) {
    if (std::ranges::none_of(it->pattern, [&](Value v) { return needed.contains(v); })) continue;
    needed.merge(free_values(it->op, values));
    stms.push_back(*it);
  }
  std::ranges::reverse(stms);
  own.map.body = substitute(make_body(std::move(stms), std::move(results)), indices, values);
  alone.op = std::move(own);
  return alone;
}

}  // namespace

BodyPtr with_filters_apart(const Body& body, std::size_t first, ValueTable& values) {
  const Stm& stm = body.stms[first];
  const Screma* screma = get_if<Screma>(stm);
  if (screma == nullptr || !screma->scans() || screma->reduces.size() < 2 || !stm.certificates.empty()) return nullptr;
  const auto light = light_statements(*screma->map.body, values);
  if (!light || *light > kMostLightStms) return nullptr;
  std::vector<Stm> folds, scans;
  std::map<std::size_t, Stm> readers;  // the scatters, as they read their scans' own rows
  std::size_t from = 0;
  for (std::size_t which = 0; which < screma->reduces.size(); ++which) {
    const std::size_t count = screma->reduces[which].neutral.size(), begin = std::exchange(from, from + count);
    if (!screma->reduces[which].scan) {
      folds.push_back(operator_alone(stm, which, {}, values));
      continue;
    }
    const auto own = stm.pattern.begin() + static_cast<std::ptrdiff_t>(begin);
    const std::vector<Value> scanned(own, own + static_cast<std::ptrdiff_t>(count));
    const auto reader = std::ranges::find_if(body.stms, [&](const Stm& other) {
      return get_if<Scatter>(other) != nullptr && mentions(other, scanned, values);
    });
    const auto at = static_cast<std::size_t>(reader - body.stms.begin());
    if (reader == body.stms.end() || readers.contains(at)) return nullptr;
    std::vector<std::size_t> rows;
    for (std::size_t k = screma->reduced_count(); k < stm.pattern.size(); ++k)
      if (mentions(*reader, {stm.pattern[k]}, values)) rows.push_back(k);
    scans.push_back(operator_alone(stm, which, rows, values));
    Substitution here;
    for (std::size_t k = 0; k < rows.size(); ++k)
      here.insert_or_assign(stm.pattern[rows[k]], Operand(scans.back().pattern[count + k]));
    readers.emplace(at, substitute(*reader, here, values));
  }
  // Rows that anybody else reads would be made by nobody.
  const std::vector<Value> rows(stm.pattern.begin() + static_cast<std::ptrdiff_t>(from), stm.pattern.end());
  for (std::size_t k = 0; k < body.stms.size(); ++k)
    if (!readers.contains(k) && mentions(body.stms[k], rows, values)) return nullptr;
  for (const Operand& x : body.results)
    if (x.is_value() && std::ranges::find(rows, x.value()) != rows.end()) return nullptr;
  std::vector<Stm> stms(body.stms.begin(), body.stms.begin() + static_cast<std::ptrdiff_t>(first));
  std::ranges::move(folds, std::back_inserter(stms));
  const std::size_t begin = stms.size();
  std::ranges::move(scans, std::back_inserter(stms));
  const std::size_t end = stms.size();
  for (std::size_t k = first + 1; k < body.stms.size(); ++k) {
    const auto reader = readers.find(k);
    stms.push_back(reader == readers.end() ? body.stms[k] : reader->second);
  }
  const BodyPtr apart = make_body(std::move(stms), body.results);
  for (std::size_t k = begin; k < end; ++k)
    if (const auto filter = find_filter(*apart, k, values); filter && filter->refusal.empty()) return apart;
  return nullptr;
}

std::optional<std::vector<Stm>> make_filter(const Body& body, const Filter& filter, const Chunks& chunks,
                                            ValueTable& values) {
  const Stm& scatter = body.stms[filter.scatter];
  std::optional<ScannedScatter> made =
      make_scanned_scatter(body.stms[filter.scan], scatter, bool(filter.count), chunks, values);
  if (!made) return std::nullopt;
  std::vector<Stm> stms = std::move(made->stms);
  if (filter.count)
    stms.push_back({.pattern = {filter.count}, .op = Use{Operand(made->count)}, .location = scatter.location});
  for (const auto& [value, written] : ranges::views::zip(scatter.pattern, made->written))
    stms.push_back({.pattern = {value},
                    .op = Index{written, {DimIndex::fix(0), DimIndex::slice(0, values.type(value).shape.front())}},
                    .location = scatter.location});
  return stms;
}

}  // namespace apl
