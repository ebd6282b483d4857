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
#include "ir/team.h"
#include "ir/walk.h"
#include "passes/extract_kernels/scans.h"
#include "passes/extract_kernels/split_operators.h"

namespace apl {

namespace {

// Whether the condition is that there are elements.
bool has_some(const Operand& condition, const Poly& n, const Body& body, const BodyUses& uses) {
  const auto made_by = [&](const Operand& x) -> const Stm* {
    const std::optional<std::size_t> at = x.is_value() ? uses.definer(x.value()) : std::nullopt;
    return at ? &body.stms[*at] : nullptr;
  };
  const Stm* made = made_by(condition);
  const Compare* compare = made != nullptr ? get_if<Compare>(*made) : nullptr;
  if (compare == nullptr || compare->op != CompareOp::lt || compare->x != i64_constant(0) || !compare->y.is_value())
    return false;
  const Stm* size = made_by(compare->y);
  const SizeExpr* computed = size != nullptr ? get_if<SizeExpr>(*size) : nullptr;
  return Poly(compare->y.value()) == n || (computed != nullptr && computed->value == n);
}

// Whether the statement of the body makes the last element of `row`, of `n` ones, or 0 if there is none.
bool makes_last(const Stm& stm, Value row, const Poly& n, const Body& body, const BodyUses& uses) {
  const If* branch = get_if<If>(stm);
  if (branch != nullptr && !has_some(branch->condition, n, body, uses)) return false;
  if (branch == nullptr || stm.pattern.size() != 1 || branch->then_body->stms.size() != 1 ||
      !branch->else_body->stms.empty() || branch->else_body->results.front() != i64_constant(0))
    return false;
  const Stm& read = branch->then_body->stms.front();
  const Index* index = get_if<Index>(read);
  return index != nullptr && index->array == row && index->dims.size() == 1 && !index->dims.front().is_slice() &&
         index->dims.front().start == n - 1 && branch->then_body->results.front() == Operand(read.pattern.front());
}

// What is made of these values, directly or not, before statement `last`.
std::set<Value> made_of(const std::vector<Value>& some, std::size_t last, const Body& body, const BodyUses& uses) {
  std::set<Value> result;
  std::set<std::size_t> pending = uses.readers(some);
  while (!pending.empty() && *pending.begin() < last) {
    const std::vector<Value>& made = body.stms[*pending.begin()].pattern;
    pending.erase(pending.begin());
    pending.merge(uses.readers(made));
    result.insert(made.begin(), made.end());
  }
  return result;
}

}  // namespace

std::optional<Filter> find_filter(const Body& body, const BodyUses& uses, std::size_t first,
                                  const std::set<std::size_t>& taken, const ValueTable& values) {
  const Stm& scan = body.stms[first];
  const Screma* screma = get_if<Screma>(scan);
  if (screma == nullptr || screma->widths.size() != 1 || screma->reduces.size() != 1 || !screma->reduces.front().scan)
    return std::nullopt;
  const std::set<std::size_t> readers = uses.readers(scan.pattern);
  Filter filter{.members = {first}, .scan = first, .scatter = 0, .count = {}, .refusal = {}};
  bool is_read_otherwise = std::ranges::any_of(scan.pattern, [&](Value v) { return uses.is_result(v); });
  bool counts_before = false;
  for (const std::size_t k : readers) {
    const Stm& stm = body.stms[k];
    const Scatter* scatter = get_if<Scatter>(stm);
    if (!filter.count && makes_last(stm, scan.pattern.front(), screma->widths.front(), body, uses)) {
      filter.count = stm.pattern.front();
    } else if (scatter != nullptr && filter.scatter == 0 && !scatter->op && scatter->widths == screma->widths) {
      filter.scatter = k;
      counts_before = bool(filter.count);
    } else {
      is_read_otherwise = true;
      continue;
    }
    filter.members.insert(k);
  }
  const bool counts_one = screma->reduced_count() == 1 && counts_flags(*screma, values);
  if (filter.scatter == 0 || taken.contains(filter.scatter) || (filter.count && !counts_one)) return std::nullopt;
  const Scatter& scatter = std::get<Scatter>(body.stms[filter.scatter].op);
  const std::set<Value> derived = made_of(scan.pattern, filter.scatter, body, uses);
  std::set<Value> needed = free_values(scatter.map, values);
  needed.insert(scatter.inputs.begin(), scatter.inputs.end());
  for (const Value v : scan.pattern) needed.erase(v);
  const auto comes_late = [&](Value v) { return counts_before ? uses.definer(v) > first : derived.contains(v); };
  if (std::ranges::any_of(needed, comes_late))
    filter.refusal = "where elements go depends on what comes behind the scan";
  for (const Value target : scatter.targets) {
    const std::optional<std::size_t> made = uses.definer(target);
    const std::vector<Poly>& shape = values.type(target).shape;
    if (!made || get_if<Scratch>(body.stms[*made]) == nullptr || shape.size() != 1) return std::nullopt;
    bool is_known = true;
    shape.front().for_each_symbol([&](Value v) { is_known = is_known && !derived.contains(v); });
    if (filter.count ? shape.front() != Poly(filter.count) : !is_known) return std::nullopt;
    if (uses.readers(target).size() != 1) return std::nullopt;
    filter.members.insert(*made);
  }
  // The scan comes later then.
  if (!filter.count && uses.may_overwrite(first + 1, filter.scatter))
    filter.refusal = "an array may be overwritten between them";
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

}  // namespace

BodyPtr with_filters_apart(const Body& body, const BodyUses& uses, std::size_t first,
                           const std::set<std::size_t>& taken, ValueTable& values) {
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
      folds.push_back(part_of(stm, *screma, operator_alone(*screma, which), values));
      continue;
    }
    const auto own = stm.pattern.begin() + static_cast<std::ptrdiff_t>(begin);
    const std::vector<Value> scanned(own, own + static_cast<std::ptrdiff_t>(count));
    const std::set<std::size_t> of_scan = uses.readers(scanned);
    const auto reader =
        std::ranges::find_if(of_scan, [&](std::size_t k) { return get_if<Scatter>(body.stms[k]) != nullptr; });
    if (reader == of_scan.end() || readers.contains(*reader) || taken.contains(*reader)) return nullptr;
    PartOfScrema part = operator_alone(*screma, which);
    for (std::size_t k = screma->reduced_count(); k < stm.pattern.size(); ++k)
      if (std::ranges::binary_search(uses.readers(stm.pattern[k]), *reader)) part.rows.push_back(k);
    Stm alone = part_of(stm, *screma, part, values);
    Substitution here;
    for (std::size_t k = 0; k < part.rows.size(); ++k) {  // others may have the same rows
      Value& row = alone.pattern[count + k];
      const Value own = values.add(values.type(row), values.name(row));
      here.insert_or_assign(std::exchange(row, own), Operand(own));
    }
    readers.emplace(*reader, substitute(body.stms[*reader], here, values));
    scans.push_back(std::move(alone));
  }
  // Rows that anybody else reads would be made by nobody.
  const std::vector<Value> rows(stm.pattern.begin() + static_cast<std::ptrdiff_t>(from), stm.pattern.end());
  for (const std::size_t k : uses.readers(rows))
    if (!readers.contains(k)) return nullptr;
  if (std::ranges::any_of(rows, [&](Value v) { return uses.is_result(v); })) return nullptr;
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
  const BodyUses apart_uses(*apart, values);
  for (std::size_t k = begin; k < end; ++k)
    // None of the scatters that read the scans is taken.
    if (const auto filter = find_filter(*apart, apart_uses, k, {}, values); filter && filter->refusal.empty())
      return apart;
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
