// Whether a polynomial over i64 is the number that its terms say, or may have wrapped. Laws of quotients and of order
// hold for the one alone.
#pragma once

#include <functional>
#include <vector>

#include "ir/poly.h"

namespace apl {

// What a symbol lies between. Sizes of arrays and indices below them count as small: there is no memory for more than
// 2^48 elements, and no time for more steps of a loop, so that no product of an index with sizes is larger, nor that of
// the sizes of one array. The sizes of two arrays that have nothing to do with each other may have a larger product.
struct SymbolRange {
  enum class Kind { number, size, index };
  Kind kind = Kind::number;
  long double low = -0x1p63L, high = 0x1p63L - 1;
};

constexpr long double kMostElements = 0x1p48L;

struct RangeOf {
  std::function<SymbolRange(Value)> symbol;
  std::function<bool(const std::vector<Factor>&)> of_one_array;  // whether the product is of sizes of one array
};
SymbolRange range_of(const Poly& p, const RangeOf& ranges);
bool is_exact(const Poly& p, const RangeOf& ranges);

// Whether the laws of quotients hold for it wherever its value is the size of an array: then it is the number that its
// terms say, or a quotient takes nothing out of it that has a symbol. 2*n + 3 is no such polynomial if n may be
// 2^63 - 1: its value is the size 1, and its half is not n + 2.
bool is_safe_size(const Poly& p, const RangeOf& ranges);

}  // namespace apl
