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
// the scan, among it the count. A partition puts what is left behind the others, and a radix sort digits behind smaller
// ones: these need the count, so they stay a scan and a scatter.
#include "passes/extract_kernels/filters.h"

#include <range/v3/view/zip.hpp>

#include <algorithm>

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

}  // namespace

std::optional<Filter> find_filter(const Body& body, std::size_t first, const ValueTable& values) {
  const Stm& scan = body.stms[first];
  const Screma* screma = get_if<Screma>(scan);
  if (screma == nullptr || !counts(*screma, values)) return std::nullopt;
  Filter filter{.members = {first}, .scan = first, .scatter = 0, .count = {}, .refusal = {}};
  std::set<Value> behind;  // what is made behind the scan
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
    if (std::ranges::any_of(needed, [&](Value v) { return behind.contains(v); }))
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
    }
    behind.insert(stm.pattern.begin(), stm.pattern.end());
  }
  if (filter.scatter == 0 || !filter.count) return std::nullopt;
  const Scatter& scatter = std::get<Scatter>(body.stms[filter.scatter].op);
  for (const Value target : scatter.targets) {
    const auto made = std::ranges::find_if(
        body.stms, [&](const Stm& stm) { return std::ranges::find(stm.pattern, target) != stm.pattern.end(); });
    const bool is_scratch = made != body.stms.end() && get_if<Scratch>(*made) != nullptr &&
                            values.type(target).shape == std::vector<Poly>{Poly(filter.count)};
    if (!is_scratch) return std::nullopt;
    const auto readers =
        std::ranges::count_if(body.stms, [&](const Stm& stm) { return mentions(stm, {target}, values); });
    if (readers != 1) return std::nullopt;
    filter.members.insert(static_cast<std::size_t>(made - body.stms.begin()));
  }
  for (const std::size_t k : filter.members)
    if (!body.stms[k].certificates.empty()) filter.refusal = "it relies on a check";
  if (is_read_otherwise && filter.refusal.empty()) filter.refusal = "what is scanned is read elsewhere, too";
  return filter;
}

std::optional<std::vector<Stm>> make_filter(const Body& body, const Filter& filter, const Chunks& chunks,
                                            ValueTable& values) {
  const Stm& scatter = body.stms[filter.scatter];
  std::optional<ScannedScatter> made = make_scanned_scatter(body.stms[filter.scan], scatter, chunks, values);
  if (!made) return std::nullopt;
  std::vector<Stm> stms = std::move(made->stms);
  stms.push_back({.pattern = {filter.count}, .op = Use{Operand(made->count)}, .location = scatter.location});
  for (const auto& [value, written] : ranges::views::zip(scatter.pattern, made->written))
    stms.push_back({.pattern = {value},
                    .op = Index{written, {DimIndex::fix(0), DimIndex::slice(0, Poly(filter.count))}},
                    .location = scatter.location});
  return stms;
}

}  // namespace apl
