#include "passes/analysis/in_bounds.h"

#include <range/v3/view/zip.hpp>

#include <algorithm>

#include "ir/walk.h"

namespace apl {

void know_index(SizeFacts& facts, Value index, const Poly& size) {
  facts.index_of(index, size);
  if (const auto symbol = size.symbol()) facts.at_least(*symbol, 1);
}

bool surely_in_bounds(const Index& index, const ValueTable& values, const SizeFacts& facts) {
  const Type& type = values.type(index.array);
  for (std::size_t k = 0; k < index.dims.size(); ++k) {
    const DimIndex& dim = index.dims[k];
    const Poly last = dim.is_slice() ? dim.start + dim.stride * (*dim.count - 1) : dim.start;
    // A slice without elements is in bounds.
    SizeFacts some = facts;
    if (const auto count = dim.is_slice() ? dim.count->symbol() : std::nullopt) some.at_least(*count, 1);
    for (const Poly& at : {dim.start, last})
      if (prove_non_negative(at, some) != Proof::yes || prove_less(at, type.shape[k], some) != Proof::yes) return false;
  }
  return true;
}

namespace {

bool is_harmless_body(const Body& body, const ValueTable& values, const SizeFacts& facts) {
  return std::all_of(body.stms.begin(), body.stms.end(),
                     [&](const Stm& stm) { return is_harmless(stm, values, facts); });
}

}  // namespace

bool is_harmless(const Stm& stm, const ValueTable& values, SizeFacts facts) {
  if (!stm.certificates.empty()) return false;
  if (const auto* index = get_if<Index>(stm)) return !index->checked && surely_in_bounds(*index, values, facts);
  if (std::holds_alternative<Rearrange>(stm.op) || std::holds_alternative<Reshape>(stm.op)) return true;
  const bool arrays =
      std::any_of(stm.pattern.begin(), stm.pattern.end(), [&](Value v) { return values.type(v).is_array(); });
  if (arrays || can_fail(stm.op, values)) return false;
  if (const auto* screma = get_if<Screma>(stm))
    for (const auto& [index, width] : ranges::views::zip(screma->indices, screma->widths))
      know_index(facts, index, width);
  if (const auto* loop = get_if<Loop>(stm)) {
    if (!loop->index) return false;
    know_index(facts, loop->index, loop->bound);
  }
  bool inside = true;
  for_each_body(stm.op, [&](const BodyPtr& body) { inside = inside && is_harmless_body(*body, values, facts); });
  return inside;
}

}  // namespace apl
