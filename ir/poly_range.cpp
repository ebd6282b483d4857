// Intervals: of a term the product of what its numbers lie between, of a sum their sum. In long double, whose numbers
// up to 2^64 are exact; what is larger does not fit in 64 bits anyway.
#include "ir/poly_range.h"

#include <algorithm>
#include <cmath>

namespace apl {

namespace {

bool fits(const SymbolRange& range) { return range.low >= -0x1p63L && range.high <= 0x1p63L - 1; }

SymbolRange range_of_factor(const Factor& factor, const RangeOf& ranges) {
  if (!factor.opaque) return ranges.symbol(factor.symbol);
  const SymbolRange a = range_of(factor.opaque->a, ranges), b = range_of(factor.opaque->b, ranges);
  if (!fits(a) || !fits(b)) return {.low = -HUGE_VALL, .high = HUGE_VALL};
  switch (factor.opaque->kind) {
    case OpaqueKind::min: return {.low = std::min(a.low, b.low), .high = std::min(a.high, b.high)};
    case OpaqueKind::max: return {.low = std::max(a.low, b.low), .high = std::max(a.high, b.high)};
    case OpaqueKind::floor_div:
    case OpaqueKind::ceil_div: break;
  }
  // By the least divisor, rounded either way.
  const long double by = std::max(b.low, 1.0L);
  return {.low = std::floor(std::min(a.low, 0.0L) / by), .high = std::ceil(std::max(a.high, 0.0L) / by)};
}

SymbolRange range_of_term(const Term& term, const RangeOf& ranges) {
  const auto coefficient = static_cast<long double>(term.coefficient);
  const auto scaled = [&](long double low, long double high) {
    return SymbolRange{.low = std::min(coefficient * low, coefficient * high),
                       .high = std::max(coefficient * low, coefficient * high)};
  };
  if (term.factors.empty()) return scaled(1, 1);
  if (term.factors.size() == 1) {
    const SymbolRange only = range_of_factor(term.factors.front(), ranges);
    return scaled(only.low, only.high);
  }
  long double most = 1;
  bool is_negative = false;
  int indices = 0;
  std::vector<Factor> sizes;
  for (const Factor& factor : term.factors) {
    const SymbolRange range = range_of_factor(factor, ranges);
    is_negative = is_negative || range.low < 0;
    if (range.kind == SymbolRange::Kind::number) most *= std::max(std::abs(range.low), std::abs(range.high));
    if (range.kind == SymbolRange::Kind::size) sizes.push_back(factor);
    indices += range.kind == SymbolRange::Kind::index;
  }
  const bool small = indices > 0 || sizes.size() < 2 || ranges.of_one_array(sizes);
  const int together = small ? std::max<int>(indices, !sizes.empty()) : static_cast<int>(sizes.size());
  for (int k = 0; k < together; ++k) most *= kMostElements;
  return scaled(is_negative ? -most : 0, most);
}

}  // namespace

SymbolRange range_of(const Poly& p, const RangeOf& ranges) {
  SymbolRange sum{.low = 0, .high = 0};
  for (const Term& term : p.terms()) {
    const SymbolRange range = range_of_term(term, ranges);
    sum.low += range.low;
    sum.high += range.high;
  }
  return sum;
}

bool is_exact(const Poly& p, const RangeOf& ranges) { return fits(range_of(p, ranges)); }

bool is_safe_size(const Poly& p, const RangeOf& ranges) {
  const bool multiplies = std::ranges::any_of(p.terms(), [](const Term& term) {
    return !term.factors.empty() && term.coefficient != 1 && term.coefficient != -1;
  });
  if (!multiplies) return true;
  // No other number between these has the same 64 bits as a size.
  const SymbolRange range = range_of(p, ranges);
  return range.low > -0x1p64L + kMostElements && range.high < 0x1p64L;
}

}  // namespace apl
