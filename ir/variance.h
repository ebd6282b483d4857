// Variance indices (T 4.7.3): which dims of a segmented space an array depends on. Dims are identities
// (values), not sizes, so that two dims of equal size are told apart.
#pragma once

#include <vector>

#include "ir/value.h"

namespace apl {

// Eq 25: for each dim of the array, in layout order, its positions in the space. A dim that the space lacks
// (a reduction dim) contributes nothing.
inline std::vector<int> variance_indices(const std::vector<Value>& array_dims, const std::vector<Value>& space) {
  std::vector<int> indices;
  for (const Value dim : array_dims) {
    for (std::size_t i = 0; i < space.size(); ++i) {
      if (space[i] == dim) indices.push_back(static_cast<int>(i));
    }
  }
  return indices;
}

// Eq 26: of what is known of each dim of the space, that which concerns the array.
template <class T>
std::vector<T> gather(const std::vector<T>& of_space, const std::vector<int>& indices) {
  std::vector<T> result;
  result.reserve(indices.size());
  for (const int i : indices) result.push_back(of_space[static_cast<std::size_t>(i)]);
  return result;
}

}  // namespace apl
