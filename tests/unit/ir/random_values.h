// Seeded random polynomials and LMADs for law tests, and the loop that runs a law a thousand times.
#pragma once

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "ir/lmad.h"
#include "ir/poly.h"

namespace apl::testing_random {

// The engine is the same everywhere; the distributions of the standard library are not.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t bits() { return engine_(); }
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool chance(int percent) { return between(1, 100) <= percent; }
  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[static_cast<std::size_t>(between(0, static_cast<std::int64_t>(from.size()) - 1))];
  }
  template <class T>
  void shuffle(std::vector<T>& items) {
    for (std::size_t i = items.size(); i > 1; --i) {
      std::swap(items[i - 1], items[static_cast<std::size_t>(between(0, static_cast<std::int64_t>(i) - 1))]);
    }
  }

 private:
  std::mt19937_64 engine_;
};

template <class Law>
void thousand_cases(std::uint64_t first_seed, Law law) {
  for (std::uint64_t seed = first_seed; seed < first_seed + 1000; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    law(random);
  }
}

inline constexpr ScalarType kAllTypes[] = {ScalarType::i8,      ScalarType::i16,  ScalarType::i32, ScalarType::i64,
                                           ScalarType::u8,      ScalarType::u16,  ScalarType::u32, ScalarType::u64,
                                           ScalarType::f16,     ScalarType::bf16, ScalarType::f32, ScalarType::f64,
                                           ScalarType::boolean, ScalarType::unit};

inline constexpr std::uint32_t kSymbols = 6;
inline const std::vector<Value> kSymbolValues{Value{0}, Value{1}, Value{2}, Value{3}, Value{4}, Value{5}};

inline std::string symbol_name(Value value) { return std::string(1, "nmbijk"[value.id % kSymbols]); }
inline std::string text(const Poly& poly) { return poly.to_string(symbol_name); }
inline std::string text(const Lmad& lmad) { return lmad.to_string(symbol_name); }

struct Assignment {
  std::array<std::int64_t, kSymbols> values{};
  std::int64_t operator()(Value value) const { return values[value.id]; }
};

inline Assignment random_assignment(Random& random, std::int64_t low, std::int64_t high) {
  Assignment result;
  for (std::int64_t& value : result.values) value = random.between(low, high);
  return result;
}

// Up to three terms of up to two kSymbolValues. With `divisions`, some factors are opaque, and divisors are
// constants or kSymbolValues that the assignment makes positive.
inline Poly random_poly(Random& random, std::int64_t coefficient, bool divisions = false) {
  Poly result = random.between(-coefficient, coefficient);
  for (std::int64_t term = random.between(0, 2); term > 0; --term) {
    Poly factors = random.between(-coefficient, coefficient);
    for (std::int64_t degree = random.between(1, 2); degree > 0; --degree) factors *= random.pick(kSymbolValues);
    if (divisions && random.chance(40)) {
      const Poly a = random_poly(random, coefficient);
      const Poly b = random.chance(50) ? Poly(random.between(1, 5)) : Poly(random.pick(kSymbolValues));
      factors *= make_opaque(static_cast<OpaqueKind>(random.between(0, 3)), a, b);
    }
    result += factors;
  }
  return result;
}

inline std::vector<Poly> random_shape(Random& random, std::int64_t max_rank, std::int64_t least = 0) {
  std::vector<Poly> result;
  for (std::int64_t rank = random.between(0, max_rank); rank > 0; --rank) {
    result.emplace_back(random.chance(95) ? random.between(1, 4) : random.between(least, 1));
  }
  return result;
}

// Constant, with any strides: most are no layout that a program would have.
inline Lmad random_lmad(Random& random, std::int64_t max_rank) {
  std::vector<LmadDim> dims;
  for (const Poly& size : random_shape(random, max_rank)) dims.push_back({size, random.between(-6, 12)});
  return {random.between(0, 20), std::move(dims)};
}

// What programs make of a row-major array: permuted, sliced, reversed, broadcast.
inline Lmad random_view(Random& random, Lmad lmad) {
  for (std::size_t k = 0; k < lmad.rank(); ++k) {
    const auto size = lmad.dims()[k].size.constant();
    if (!size || *size == 0 || !random.chance(30)) continue;
    if (random.chance(30)) {
      lmad = lmad.slice(k, *size - 1, *size, -1);
    } else {
      const std::int64_t start = random.between(0, *size - 1);
      lmad = lmad.slice(k, start, random.between(0, *size - start), 1);
    }
  }
  if (random.chance(15)) lmad = lmad.expand(0, random.between(1, 3));
  std::vector<int> permutation(lmad.rank());
  for (std::size_t k = 0; k < lmad.rank(); ++k) permutation[k] = static_cast<int>(k);
  if (random.chance(50)) random.shuffle(permutation);
  return lmad.permute(permutation);
}

inline std::vector<std::int64_t> points(const Lmad& lmad, const Assignment& values = {}) {
  return *lmad.points(values);
}

// All index vectors of a constant shape, in row-major order.
inline std::vector<std::vector<Poly>> all_indices(const std::vector<Poly>& shape) {
  std::vector<std::vector<Poly>> result{{}};
  for (const Poly& size : shape) {
    std::vector<std::vector<Poly>> longer;
    for (const auto& prefix : result) {
      for (std::int64_t i = 0; i < *size.constant(); ++i) {
        longer.push_back(prefix);
        longer.back().emplace_back(i);
      }
    }
    result = std::move(longer);
  }
  return result;
}

}  // namespace apl::testing_random
