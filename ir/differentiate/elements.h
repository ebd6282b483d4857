// Single elements of arrays that a lambda makes by maps: what computes one, and nothing of the array.
#pragma once

#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "ir/builder.h"
#include "ir/walk.h"

namespace apl::differentiation {

// The sum, over the indices of `map`, of the arrays that its lambda gives as `row`, an array of `shape`: a map over the
// shape of a reduction over the indices, without an array for each of them. None where an element takes more than
// scalar operations, or too many.
std::optional<Value> sum_of_rows(Builder& b, const Screma& map, const Operand& row, const std::vector<Poly>& shape);

}  // namespace apl::differentiation
