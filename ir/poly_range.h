// Whether a polynomial over i64 is the number that its terms say, or may have wrapped. Laws of quotients and of order
// hold for the one alone.
#pragma once

#include <functional>

#include "ir/poly.h"

namespace apl {

// What a symbol lies between. Sizes of arrays and indices below them count as small: there is no memory for more than
// 2^48 elements, so that neither a product of sizes nor one of an index with sizes is larger.
struct SymbolRange {
  enum class Kind { number, size, index };
  Kind kind = Kind::number;
  long double low = -0x1p63L, high = 0x1p63L - 1;
};

constexpr long double kMostElements = 0x1p48L;

using RangeOf = std::function<SymbolRange(Value)>;
SymbolRange range_of(const Poly& p, const RangeOf& range_of_symbol);
bool is_exact(const Poly& p, const RangeOf& range_of_symbol);

}  // namespace apl
