// What of a contraction's map function is computed while an operand is packed, and what in the micro-kernel.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <vector>

#include "ir/module.h"

namespace apl::lower {

// The map function in three parts: what the operands of M, and those of N, give while they are packed, and what is
// left.
class PackedParts {
 public:
  // `mn_of`: 0 for M, 1 for N, of each of the map function's parameters.
  PackedParts(const Lambda& map, const std::vector<std::size_t>& mn_of, const ValueTable& values);

  Lambda mn[2];     // from the operands of M, of N, to what is packed
  Lambda combined;  // from all that is packed, M's first

 private:
  void split();
  bool is_of(Value v, std::size_t s) const;
  std::vector<Value> frontier(std::size_t s) const;

  const Lambda& map_;
  const ValueTable& values_;
  std::map<Value, std::size_t> mn_of_;
  std::set<Value> mixed_;
};

// Sums of products of integers of 16 bits at most, widened to 32, which dot instructions compute for two steps of the
// depth at once.
bool is_dot_product(const PackedParts& parts, const ReduceOp& reduce, const ValueTable& values);

// Sums of products of elements of one type that vectors of the machine have, 4 or 8 bytes wide.
bool is_sum_of_products(const PackedParts& parts, const ReduceOp& reduce, const ValueTable& values);

}  // namespace apl::lower
