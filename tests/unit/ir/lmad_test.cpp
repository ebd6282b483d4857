// LMADs as index functions: every law against the brute-force list of points, in index order.
#include "ir/lmad.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/unit/ir/random_values.h"
#include "tests/unit/ir/symbols.h"

namespace apl {
namespace {

using namespace testing_random;
using namespace testing_symbols;

std::int64_t number(const Poly& poly) { return *poly.constant(); }

std::vector<int> random_permutation(Random& random, std::size_t rank) {
  std::vector<int> result;
  for (std::size_t k = 0; k < rank; ++k) result.push_back(static_cast<int>(k));
  random.shuffle(result);
  return result;
}

TEST_CASE("law: apply and apply_flat enumerate the points") {
  thousand_cases(1000, [](Random& random) {
    const Lmad lmad = random_lmad(random, 4);
    CAPTURE(text(lmad));
    const auto expected = points(lmad);
    const auto indices = all_indices(lmad.shape());
    REQUIRE(indices.size() == expected.size());
    CHECK(number(lmad.element_count()) == static_cast<std::int64_t>(expected.size()));
    for (std::size_t k = 0; k < indices.size(); ++k) {
      CHECK(number(lmad.apply(indices[k])) == expected[k]);
      CHECK(number(lmad.apply_flat(static_cast<std::int64_t>(k))) == expected[k]);
      CHECK(unflatten_index(static_cast<std::int64_t>(k), lmad.shape()) == indices[k]);
    }
  });
}

TEST_CASE("law: a row-major array counts upwards") {
  thousand_cases(2000, [](Random& random) {
    const auto expected = points(Lmad::row_major(random_shape(random, 4)));
    for (std::size_t k = 0; k < expected.size(); ++k) CHECK(expected[k] == static_cast<std::int64_t>(k));
  });
}

TEST_CASE("law: permute reorders the indices") {
  thousand_cases(3000, [](Random& random) {
    const Lmad lmad = random_lmad(random, 4);
    const auto permutation = random_permutation(random, lmad.rank());
    const Lmad permuted = lmad.permute(permutation);
    for (const auto& index : all_indices(permuted.shape())) {
      std::vector<Poly> original(lmad.rank());
      for (std::size_t k = 0; k < index.size(); ++k) original[static_cast<std::size_t>(permutation[k])] = index[k];
      CHECK(permuted.apply(index) == lmad.apply(original));
    }
  });
}

TEST_CASE("law: slice, index and expand are what they are of the index") {
  thousand_cases(4000, [](Random& random) {
    const Lmad lmad = random_lmad(random, 3).expand(0, 3);
    const auto k = static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(lmad.rank()) - 1));
    const Poly start = random.between(0, 2);
    const Poly step = random.between(-2, 2);
    const Lmad sliced = lmad.slice(k, start, 2, step);
    for (auto index : all_indices(sliced.shape())) {
      const Poly point = sliced.apply(index);
      index[k] = start + index[k] * step;
      CHECK(point == lmad.apply(index));
    }
    const Lmad indexed = lmad.index(k, start);
    const Lmad expanded = lmad.expand(k, 2);
    for (auto index : all_indices(indexed.shape())) {
      const Poly point = indexed.apply(index);
      index.insert(index.begin() + static_cast<std::ptrdiff_t>(k), start);
      CHECK(point == lmad.apply(index));
    }
    for (auto index : all_indices(expanded.shape())) {
      const Poly point = expanded.apply(index);
      index.erase(index.begin() + static_cast<std::ptrdiff_t>(k));
      CHECK(point == lmad.apply(index));
    }
  });
}

// Whether an LMAD of this shape gives these points: its strides follow from them.
bool representable(const std::vector<std::int64_t>& wanted, const std::vector<Poly>& shape) {
  if (wanted.empty()) return true;
  std::vector<LmadDim> dims;
  std::size_t inner = wanted.size();
  for (const Poly& size : shape) {
    inner /= static_cast<std::size_t>(number(size));
    dims.push_back({size, size.is_one() ? Poly(0) : Poly(wanted[inner] - wanted[0])});
  }
  return points(Lmad(wanted[0], dims)) == wanted;
}

// Another shape with as many elements: a number of neighbours merged, some dims split.
std::vector<Poly> other_shape(Random& random, const std::vector<Poly>& shape) {
  std::vector<Poly> result;
  for (const Poly& size : shape) {
    if (!result.empty() && random.chance(50)) {
      result.back() *= size;
    } else {
      result.push_back(size);
    }
  }
  for (std::size_t k = 0; k < result.size(); ++k) {
    const std::int64_t size = number(result[k]);
    for (const std::int64_t factor : {2, 3}) {
      if (size == 0 || size % factor != 0 || !random.chance(40)) continue;
      result[k] = size / factor;
      result.insert(result.begin() + static_cast<std::ptrdiff_t>(k), factor);
      break;
    }
  }
  if (random.chance(30)) result.insert(result.begin(), 1);
  return result;
}

TEST_CASE("law: reshape gives the same points in the same order, and refuses only what no LMAD is") {
  int reshaped = 0, refused = 0;
  thousand_cases(5000, [&](Random& random) {
    const Lmad lmad =
        random.chance(20) ? random_lmad(random, 3) : random_view(random, Lmad::row_major(random_shape(random, 4)));
    const auto shape = other_shape(random, lmad.shape());
    const Lmad::Outcome outcome = lmad.reshape(shape);
    CAPTURE(text(lmad));
    CAPTURE(text(Lmad::row_major(shape)));
    if (outcome) {
      ++reshaped;
      CHECK(outcome->shape() == shape);
      CHECK(points(*outcome) == points(lmad));
    } else {
      ++refused;
      CHECK(outcome.reason != "");
      CHECK_FALSE(representable(points(lmad), shape));
    }
  });
  CHECK(reshaped > 300);
  CHECK(refused > 80);
}

TEST_CASE("law: flatten and unflatten keep the points, and refuse only what no LMAD is") {
  int flattened = 0, refused = 0;
  thousand_cases(6000, [&](Random& random) {
    const Lmad lmad = random_view(random, Lmad::row_major(random_shape(random, 4))).expand(0, 1);
    const auto last = random.between(0, static_cast<std::int64_t>(lmad.rank()) - 1);
    const auto first = static_cast<std::size_t>(random.between(0, last));
    const Lmad::Outcome flat = lmad.flatten(first, static_cast<std::size_t>(last));
    CAPTURE(text(lmad));
    if (!flat) {
      ++refused;
      auto shape = lmad.shape();
      for (std::int64_t k = last; k > static_cast<std::int64_t>(first); --k) {
        shape[first] *= shape[static_cast<std::size_t>(k)];
        shape.erase(shape.begin() + k);
        // Merged from the outside in, the product ends up at `first`.
      }
      CHECK_FALSE(representable(points(lmad), shape));
      return;
    }
    ++flattened;
    CHECK(points(*flat) == points(lmad));
    const auto shape = lmad.shape();
    const Lmad::Outcome back =
        flat->unflatten(first, {shape.begin() + static_cast<std::ptrdiff_t>(first), shape.begin() + last + 1});
    REQUIRE(back);
    CHECK(back->shape() == shape);
    CHECK(points(*back) == points(lmad));
  });
  CHECK(flattened > 500);
  CHECK(refused > 50);
}

TEST_CASE("law: compose looks at this array through the view") {
  int composed = 0, refused = 0;
  thousand_cases(7000, [&](Random& random) {
    const Lmad base = random_view(random, Lmad::row_major(random_shape(random, 3, 1)));
    const auto elements = points(base);
    const Lmad flat_view = random_view(random, Lmad::row_major(base.shape()));
    const Lmad view = random.chance(70) ? flat_view : Lmad(random.between(0, 3), random_lmad(random, 2).dims());
    const auto positions = points(view);
    for (const std::int64_t position : positions) {
      if (position < 0 || position >= static_cast<std::int64_t>(elements.size())) return;  // the caller's promise
    }
    const Lmad::Outcome outcome = base.compose(view);
    CAPTURE(text(base));
    CAPTURE(text(view));
    if (!outcome) {
      ++refused;
      CHECK(outcome.reason != "");
      CHECK(base.contiguous() != Proof::yes);
      return;
    }
    ++composed;
    CHECK(outcome->shape() == view.shape());
    std::vector<std::int64_t> expected;
    for (const std::int64_t position : positions) expected.push_back(elements[static_cast<std::size_t>(position)]);
    CHECK(points(*outcome) == expected);
  });
  CHECK(composed > 500);
  CHECK(refused < 50);
}

TEST_CASE("law: symbolic results agree with the results for numbers") {
  thousand_cases(8000, [](Random& random) {
    const std::vector<Poly> sizes{n, m, b, 2, n * m, 1};
    std::vector<Poly> shape;
    for (std::int64_t rank = random.between(1, 3); rank > 0; --rank) shape.push_back(random.pick(sizes));
    const auto k = static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(shape.size()) - 1));
    const Lmad lmad = (random.chance(50) ? Lmad::row_major(shape) : Lmad::padded(shape, k))
                          .permute(random_permutation(random, shape.size()));
    const Assignment values = random_assignment(random, 0, 3);
    const auto fixed = lmad.substitute([&](Value v) { return Poly(values(v)); });
    CAPTURE(text(lmad));
    CHECK(points(fixed) == points(lmad, values));
    if (const auto flat = lmad.reshape({lmad.element_count()})) CHECK(points(*flat, values) == points(lmad, values));
    const auto elements = points(lmad, values);
    for (std::size_t position = 0; position < elements.size(); ++position) {
      CHECK(lmad.apply_flat(static_cast<std::int64_t>(position)).evaluate(values) == elements[position]);
    }
  });
}

TEST_CASE("symbolic shapes: flatten, unflatten, reshape and compose") {
  const Lmad lmad = Lmad::row_major({n, m, b});
  CHECK(*lmad.flatten(0, 2) == Lmad::row_major({n * m * b}));
  CHECK(*lmad.flatten(1, 2) == Lmad::row_major({n, m * b}));
  CHECK(*lmad.reshape({n * m, 1, b}) == Lmad::row_major({n * m, 1, b}));
  CHECK(*Lmad::row_major({m * n}).unflatten(0, {n, m}) == Lmad::row_major({n, m}));
  CHECK(lmad.reshape({b, n, m})->strides() == std::vector<Poly>{n * m, m, 1});
  CHECK_FALSE(lmad.permute({1, 0, 2}).flatten(0, 1));
  CHECK_FALSE(lmad.reshape({n, m}));
  CHECK(lmad.reshape({n, m}).reason == "the element counts cannot be shown to be equal");
  // Broadcasting dims merge with each other.
  CHECK(*Lmad::row_major({b}).expand(0, m).expand(0, n).flatten(0, 1) == Lmad(0, {{n * m, 0}, {b, 1}}));

  // The transpose of a slice of columns, by way of a view of the slice's own positions.
  const Lmad columns = lmad.slice(1, 2, m - 2, 1).index(2, 0);
  const auto transposed = columns.compose(Lmad::row_major({n, m - 2}).permute({1, 0}));
  REQUIRE(transposed);
  CHECK(*transposed == columns.permute({1, 0}));
  CHECK(columns.compose(Lmad(0, {{n * (m - 2), 1}})).reason.find("end of a row") != std::string::npos);
}

TEST_CASE("text") {
  CHECK(text(Lmad(n, {{n, m}, {m, 1}})) == "{offset: n; shape: [n, m]; strides: [m, 1]}");
  CHECK(text(Lmad()) == "{offset: 0; shape: []; strides: []}");
}

}  // namespace
}  // namespace apl
