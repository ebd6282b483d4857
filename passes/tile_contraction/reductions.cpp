// Reductions of one thread: out of branches, and together.
#include <range/v3/view/zip.hpp>

#include <algorithm>

#include "ir/walk.h"
#include "passes/analysis/in_bounds.h"
#include "passes/tile_contraction/fission.h"

namespace apl::tile {

bool is_plain_reduction(const Stm& stm) {
  const Screma* screma = get_if<Screma>(stm);
  return screma != nullptr && !screma->reduces.empty() && !screma->scans() &&
         screma->map.body->results.size() == screma->reduced_count();
}

bool holds_reduction(const Body& body) {
  bool found = false;
  for_each_stm(body, [&](const Stm& stm) { found = found || is_plain_reduction(stm); });
  return found;
}

std::vector<const Stm*> needed_stms(const std::vector<Stm>& stms, std::set<Value> roots, const ValueTable& values) {
  std::vector<const Stm*> needed;
  for (std::size_t k = stms.size(); k-- > 0;) {
    const Stm& stm = stms[k];
    const bool wanted = std::any_of(stm.pattern.begin(), stm.pattern.end(), [&](Value v) { return roots.contains(v); });
    if (!wanted) continue;
    needed.push_back(&stm);
    roots.merge(free_values(stm.op, values));
    roots.insert(stm.certificates.begin(), stm.certificates.end());
  }
  std::reverse(needed.begin(), needed.end());
  return needed;
}

namespace {

// Lifts what the reductions of a branch's body need, and them; nullopt if that is not harmless, or there is none.
std::optional<std::vector<Stm>> lift_from(BodyPtr& body, const ValueTable& values, const SizeFacts& facts) {
  std::vector<Stm> stms;
  for (const Stm& stm : body->stms) {
    Stm kept = stm;
    if (If* branch = std::get_if<If>(&kept.op); branch != nullptr && stm.certificates.empty())
      for (BodyPtr* inner : {&branch->then_body, &branch->else_body})
        if (auto lifted = lift_from(*inner, values, facts)) stms.insert(stms.end(), lifted->begin(), lifted->end());
    stms.push_back(std::move(kept));
  }
  std::set<Value> roots;
  for (const Stm& stm : stms)
    if (is_plain_reduction(stm)) roots.insert(stm.pattern.begin(), stm.pattern.end());
  if (roots.empty()) return std::nullopt;
  const std::vector<const Stm*> needed = needed_stms(stms, std::move(roots), values);
  if (!std::all_of(needed.begin(), needed.end(), [&](const Stm* stm) { return is_harmless(*stm, values, facts); }))
    return std::nullopt;
  std::vector<Stm> lifted, remainder;
  for (const Stm& stm : stms)
    (std::find(needed.begin(), needed.end(), &stm) != needed.end() ? lifted : remainder).push_back(stm);
  body = make_body(std::move(remainder), body->results);
  return lifted;
}

std::set<Value> roots_of(const Stm& stm, const ValueTable& values) {
  std::set<Value> roots = free_values(stm.op, values);
  roots.insert(stm.certificates.begin(), stm.certificates.end());
  return roots;
}

bool needs(const std::vector<Stm>& stms, const Stm& later, const Stm& earlier, const ValueTable& values) {
  const std::vector<const Stm*> needed = needed_stms(stms, roots_of(later, values), values);
  return std::find(needed.begin(), needed.end(), &earlier) != needed.end();
}

// Arrays of other kernels that a statement reads elements or rows of.
std::set<Value> arrays_read(const std::vector<Stm>& stms, const Stm& reduction, const ValueTable& values) {
  std::set<Value> arrays, local;
  const auto add = [&](const Stm& stm) {
    local.insert(stm.pattern.begin(), stm.pattern.end());
    for (Value v : free_values(stm.op, values))
      if (values.type(v).is_array()) arrays.insert(v);
  };
  for (const Stm* stm : needed_stms(stms, roots_of(reduction, values), values)) add(*stm);
  add(reduction);
  std::erase_if(arrays, [&](Value v) { return local.contains(v); });
  return arrays;
}

Stm merged(const Stm& first, const Stm& second, ValueTable& values) {
  Stm stm = first;
  Screma& both = std::get<Screma>(stm.op);
  const Screma& other = std::get<Screma>(second.op);
  Substitution renaming;
  for (const auto& [old, index] : ranges::views::zip(other.indices, both.indices))
    renaming.insert_or_assign(old, Operand(index));
  for (std::size_t k = 0; k < other.inputs.size(); ++k) {
    const auto same = std::find(both.inputs.begin(), both.inputs.end(), other.inputs[k]);
    if (same != both.inputs.end()) {
      renaming.insert_or_assign(other.map.params[k],
                                Operand(both.map.params[static_cast<std::size_t>(same - both.inputs.begin())]));
      continue;
    }
    both.inputs.push_back(other.inputs[k]);
    both.map.params.push_back(other.map.params[k]);
  }
  const BodyPtr body = substitute(other.map.body, renaming, values);
  std::vector<Stm> stms = both.map.body->stms;
  stms.insert(stms.end(), body->stms.begin(), body->stms.end());
  std::vector<Operand> results = both.map.body->results;
  for (const Operand& result : body->results) results.push_back(substitute(result, renaming));
  both.map.body = make_body(std::move(stms), std::move(results));
  both.reduces.insert(both.reduces.end(), other.reduces.begin(), other.reduces.end());
  stm.pattern.insert(stm.pattern.end(), second.pattern.begin(), second.pattern.end());
  stm.certificates.insert(stm.certificates.end(), second.certificates.begin(), second.certificates.end());
  return stm;
}

// Merges the first two that can be.
bool merge_two(std::vector<Stm>& stms, ValueTable& values) {
  for (std::size_t a = 0; a < stms.size(); ++a) {
    if (!is_plain_reduction(stms[a])) continue;
    const std::set<Value> arrays = arrays_read(stms, stms[a], values);
    for (std::size_t b = a + 1; b < stms.size(); ++b) {
      if (!is_plain_reduction(stms[b]) || needs(stms, stms[b], stms[a], values)) continue;
      if (std::get<Screma>(stms[a].op).widths != std::get<Screma>(stms[b].op).widths) continue;
      const std::set<Value> others = arrays_read(stms, stms[b], values);
      if (std::none_of(others.begin(), others.end(), [&](Value v) { return arrays.contains(v); })) continue;
      std::set<Value> roots = roots_of(stms[a], values);
      roots.merge(roots_of(stms[b], values));
      const std::vector<const Stm*> needed = needed_stms(stms, std::move(roots), values);
      std::vector<Stm> before, after;
      for (std::size_t k = 0; k < stms.size(); ++k) {
        if (k == a || k == b) continue;
        (std::find(needed.begin(), needed.end(), &stms[k]) != needed.end() ? before : after).push_back(stms[k]);
      }
      before.push_back(merged(stms[a], stms[b], values));
      before.insert(before.end(), after.begin(), after.end());
      stms = std::move(before);
      return true;
    }
  }
  return false;
}

}  // namespace

bool lift_reductions(const SegOp& kernel, std::vector<Stm>& stms, const ValueTable& values) {
  SizeFacts facts;
  for (const SegDim& dim : kernel.space) know_index(facts, dim.index, dim.bound);
  bool any = false;
  std::vector<Stm> result;
  for (const Stm& stm : stms) {
    Stm kept = stm;
    if (If* branch = std::get_if<If>(&kept.op); branch != nullptr && stm.certificates.empty())
      for (BodyPtr* body : {&branch->then_body, &branch->else_body})
        if (auto lifted = lift_from(*body, values, facts)) {
          result.insert(result.end(), lifted->begin(), lifted->end());
          any = true;
        }
    result.push_back(std::move(kept));
  }
  if (any) stms = std::move(result);
  return any;
}

bool merge_reductions(std::vector<Stm>& stms, ValueTable& values) {
  bool any = false;
  while (merge_two(stms, values)) any = true;
  return any;
}

}  // namespace apl::tile
