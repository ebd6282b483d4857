// LMADs in memory: contiguity, injectivity, overlap, and the order of the dims, against brute force.
#include <doctest/doctest.h>

#include <algorithm>

#include "ir/lmad.h"
#include "tests/unit/ir/random_values.h"
#include "tests/unit/ir/symbols.h"

namespace apl {
namespace {

using namespace testing_random;
using namespace testing_symbols;

bool truly_contiguous(const Lmad& lmad, const Assignment& values = {}) {
  const auto all = points(lmad, values);
  for (std::size_t k = 0; k < all.size(); ++k) {
    if (all[k] != all[0] + static_cast<std::int64_t>(k)) return false;
  }
  return true;
}

bool truly_injective(const Lmad& lmad, const Assignment& values = {}) {
  auto all = points(lmad, values);
  std::sort(all.begin(), all.end());
  return std::adjacent_find(all.begin(), all.end()) == all.end();
}

bool truly_disjoint(const Lmad& a, const Lmad& c, const Assignment& values = {}) {
  const auto first = points(a, values);
  const auto second = points(c, values);
  return std::none_of(first.begin(), first.end(),
                      [&](std::int64_t p) { return std::find(second.begin(), second.end(), p) != second.end(); });
}

Proof proof(bool truth) { return truth ? Proof::yes : Proof::no; }

TEST_CASE("law: of constants, contiguity, injectivity and overlap are known exactly") {
  thousand_cases(1000, [](Random& random) {
    const auto some = [&random] {
      return random.chance(50) ? random_lmad(random, 3) : random_view(random, Lmad::row_major(random_shape(random, 4)));
    };
    const Lmad a = some();
    const Lmad c = some();
    CAPTURE(text(a));
    CAPTURE(text(c));
    const bool contiguous = truly_contiguous(a);
    // An offset apart from the strides, so that a one-element array is contiguous whatever its strides are.
    CHECK(a.contiguous() == proof(contiguous));
    CHECK(a.injective() == proof(truly_injective(a)));
    CHECK(a.disjoint(c) == proof(truly_disjoint(a, c)));
    CHECK(a.disjoint(c) == c.disjoint(a));
  });
}

// Views of arrays of symbolic shape: tiles, slices, rows, columns, padded and permuted.
Lmad symbolic_view(Random& random, const std::vector<Poly>& shape) {
  Lmad lmad = random.chance(60) ? Lmad::row_major(shape) : Lmad::padded(shape, 0);
  for (std::size_t k = 0; k < lmad.rank(); ++k) {
    const Poly size = lmad.dims()[k].size;
    switch (random.between(0, 6)) {
      case 0: lmad = lmad.slice(k, i, size - i, 1); break;
      case 1: lmad = lmad.slice(k, 0, i, 1); break;
      case 2: lmad = lmad.slice(k, size - 1, size, -1); break;
      case 3: lmad = lmad.slice(k, random.between(0, 1), floor_div(size, 2), 2); break;
      case 4: lmad = lmad.slice(k, random.between(0, 2), 1, 1); break;
      default: break;
    }
  }
  if (random.chance(10)) lmad = lmad.expand(0, n);
  std::vector<int> permutation;
  for (std::size_t k = 0; k < lmad.rank(); ++k) permutation.push_back(static_cast<int>(k));
  random.shuffle(permutation);
  return lmad.permute(permutation);
}

TEST_CASE("law: of symbolic LMADs, contiguity, injectivity and overlap are never told wrong") {
  int contiguous = 0, injective = 0, disjoint = 0;
  thousand_cases(2000, [&](Random& random) {
    const std::vector<std::vector<Poly>> shapes{{n}, {n, m}, {n, m, b}, {m, 2 * n}, {b, n * m}, {n + 1, m}};
    const auto& shape = random.pick(shapes);
    const Lmad a = symbolic_view(random, shape);
    const Lmad c = symbolic_view(random, random.chance(80) ? shape : random.pick(shapes));
    SizeFacts facts;
    const std::int64_t least = random.between(0, 2);
    for (const std::uint32_t size : {0u, 1u, 2u}) facts.at_least(Value{size}, least);
    facts.at_least(Value{3}, 0);
    CAPTURE(text(a));
    CAPTURE(text(c));
    CAPTURE(least);
    const Proof is_contiguous = a.contiguous(facts);
    const Proof is_injective = a.injective(facts);
    const Proof are_disjoint = a.disjoint(c, facts);
    contiguous += is_contiguous != Proof::unknown;
    injective += is_injective != Proof::unknown;
    disjoint += are_disjoint != Proof::unknown;
    for (int sample = 0; sample < 6; ++sample) {
      const Assignment values = random_assignment(random, least, 4);
      if (is_contiguous != Proof::unknown) CHECK(is_contiguous == proof(truly_contiguous(a, values)));
      if (is_injective != Proof::unknown) CHECK(is_injective == proof(truly_injective(a, values)));
      if (are_disjoint != Proof::unknown) CHECK(are_disjoint == proof(truly_disjoint(a, c, values)));
    }
  });
  CHECK(contiguous > 300);
  CHECK(injective > 650);
  CHECK(disjoint > 110);
}

TEST_CASE("injectivity of layouts that kernels use") {
  const Lmad tile = Lmad::padded({n, m, b}, 0);
  CHECK(tile.injective() == Proof::yes);
  CHECK(tile.permute({2, 0, 1}).injective() == Proof::yes);
  CHECK(Lmad(0, {{n, 1}, {m, n}}).injective() == Proof::yes);
  CHECK(Lmad(n * m - 1, {{n, -m}, {m, -1}}).injective() == Proof::yes);
  CHECK(Lmad(0, {{n, 0}, {m, 1}}).injective() == Proof::unknown);  // n may be 1
  CHECK(Lmad(0, {{n, 1}, {m, 1}}).injective() == Proof::unknown);
  SizeFacts facts;
  facts.at_least(Value{0}, 2), facts.at_least(Value{1}, 2);
  CHECK(Lmad(0, {{n, 0}, {m, 1}}).injective(facts) == Proof::no);
  CHECK(Lmad(0, {{n, 1}, {m, 1}}).injective(facts) == Proof::no);
  CHECK(Lmad(0, {{2, 3}, {3, 2}}).injective() == Proof::yes);  // does not nest, yet no two points meet
}

TEST_CASE("parts of an array that have no point in common") {
  const Lmad matrix = Lmad::row_major({n, m});
  SizeFacts facts;
  facts.index_of(Value{3}, m);
  facts.at_least(Value{0}, 1);
  const Lmad left = matrix.slice(1, 0, i, 1);
  const Lmad right = matrix.slice(1, i, m - i, 1);
  CHECK(left.disjoint(right, facts) == Proof::yes);
  CHECK(right.disjoint(left, facts) == Proof::yes);
  CHECK(left.disjoint(matrix.slice(1, 0, i + 1, 1), facts) == Proof::unknown);  // i may be 0
  CHECK(right.disjoint(matrix.slice(1, 0, i + 1, 1), facts) == Proof::no);
  CHECK(matrix.slice(0, 0, b, 1).disjoint(matrix.slice(0, b, n - b, 1)) == Proof::yes);
  CHECK(matrix.index(0, i).disjoint(matrix.index(0, i + 1)) == Proof::yes);
  CHECK(matrix.index(1, i).disjoint(matrix.index(1, i + 1), facts) ==
        Proof::unknown);  // i + 1 may be m: (0, m) is (1, 0)
  // Even and odd elements.
  CHECK(Lmad(0, {{n, 2}}).disjoint(Lmad(2 * m + 1, {{n, 2}})) == Proof::yes);
  CHECK(Lmad(0, {{n, 4}, {m, 2}}).disjoint(Lmad(2 * i, {{n, 2}})) == Proof::unknown);
}

TEST_CASE("law: the order of a permuted row-major array is recovered exactly") {
  thousand_cases(3000, [](Random& random) {
    const std::vector<Poly> sizes{n, m, b, n + m, 1, 2, 3, 3, n * b};
    std::vector<Poly> shape;
    for (std::int64_t rank = random.between(0, 6); rank > 0; --rank) shape.push_back(random.pick(sizes));
    std::vector<int> permutation;
    for (std::size_t k = 0; k < shape.size(); ++k) permutation.push_back(static_cast<int>(k));
    random.shuffle(permutation);
    Lmad lmad = Lmad::row_major(shape).permute(permutation);
    if (random.chance(20))
      lmad = lmad.expand(static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(lmad.rank()))), m);
    CAPTURE(text(lmad));
    const LayoutOrder recovered = recover_order(lmad);
    CHECK(recovered.exact);
    CHECK(recovered.reason == "");
    REQUIRE(recovered.order.size() == lmad.rank());
    // Rebuilt from the sizes in that order, the strides are the given ones.
    const Lmad sorted = lmad.permute(recovered.order);
    const std::size_t real = lmad.rank() - recovered.aside.size();
    const auto sorted_shape = sorted.shape();
    const Lmad rebuilt =
        Lmad::row_major({sorted_shape.begin(), sorted_shape.begin() + static_cast<std::ptrdiff_t>(real)});
    for (std::size_t k = 0; k < real; ++k) CHECK(rebuilt.dims()[k] == sorted.dims()[k]);
    for (std::size_t k = real; k < lmad.rank(); ++k)
      CHECK((sorted.dims()[k].size.is_one() || sorted.dims()[k].stride.is_zero()));
    CHECK(recovered.unit.has_value() == (real > 0));
    if (real > 0) CHECK(*recovered.unit == recovered.order[real - 1]);
  });
}

TEST_CASE("law: strides sorted by magnitude are sorted for every size") {
  thousand_cases(4000, [](Random& random) {
    const Lmad lmad = symbolic_view(random, {n, m, b});
    const auto order = order_by_stride(lmad);
    if (!order) return;
    const Assignment values = random_assignment(random, 1, 5);
    const auto all = points(lmad, values);
    if (all.empty()) return;
    std::int64_t previous = INT64_MAX;
    for (const int k : *order) {
      const std::int64_t stride = std::abs(*lmad.dims()[static_cast<std::size_t>(k)].stride.evaluate(values));
      CHECK(stride <= previous);
      previous = stride;
    }
  });
}

TEST_CASE("where the chain of strides breaks, what is known of the order is kept") {
  const LayoutOrder padded = recover_order(Lmad::padded({n, m, b}, 0).permute({2, 0, 1}));
  CHECK_FALSE(padded.exact);
  CHECK(padded.unit == 0);
  CHECK(padded.order == std::vector<int>{1, 2, 0});
  CHECK(padded.reason == "a stride is not the product of the sizes further in");

  const LayoutOrder unknown = recover_order(Lmad(0, {{3, n}, {4, m}, {5, 1}, {1, 7}}));
  CHECK_FALSE(unknown.exact);
  CHECK(unknown.unit == 2);
  CHECK(unknown.order == std::vector<int>{2, 3});
  CHECK(unknown.aside == std::vector<int>{3});

  const LayoutOrder column = recover_order(Lmad::row_major({n, m}).index(1, 0));
  CHECK_FALSE(column.exact);
  CHECK_FALSE(column.unit);
  CHECK(column.reason == "no dimension has stride 1");

  const LayoutOrder sums = recover_order(Lmad::row_major({b, n + 1, m - 2}).permute({1, 2, 0}));
  CHECK(sums.exact);
  CHECK(sums.order == std::vector<int>{2, 0, 1});
}

}  // namespace
}  // namespace apl
