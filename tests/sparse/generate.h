// Random entries with a sparse operand, and matrices of the kinds that occur.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "ir/host_value.h"

namespace apl::sparse_tests {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed * 0x9e3779b97f4a7c15U + 1) {}
  // The generator alone is the same everywhere; the distributions of the standard library are not.
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool chance(int percent) { return between(1, 100) <= percent; }
  template <class T>
  const T& one_of(const std::vector<T>& from) {
    return from[static_cast<std::size_t>(between(0, static_cast<std::int64_t>(from.size()) - 1))];
  }

 private:
  std::mt19937_64 engine_;
};

struct Entry {
  std::string name;
  std::string text;  // its definition
  // What was drawn: the element type, the sum over non-zeros, the form of the program, and the kind of the sparse
  // operand, which is the first parameter.
  std::string type, sum, form, matrix;
  std::uint64_t seed = 0;
};

// All that can be drawn, in the order of Entry's fields.
struct Choices {
  std::vector<std::string> types, sums, forms, matrices;
};
const Choices& choices();

Entry random_entry(std::uint64_t seed, const std::string& name);

// 0 where the kind has nothing; elements are small integers.
HostValue random_matrix(const std::string& kind, ScalarType type, std::int64_t rows, std::int64_t columns,
                        Random& random);

}  // namespace apl::sparse_tests
