// Which polynomials may have wrapped.
#include <doctest/doctest.h>

#include "ir/module.h"
#include "ir/poly_range.h"

namespace {

using apl::Poly;
using apl::SymbolRange;
using Kind = SymbolRange::Kind;

struct Symbols {
  apl::ValueTable values;
  apl::Value n = add("n"), m = add("m"), i = add("i"), j = add("j"), x = add("x"), y = add("y"), l = add("l"),
             z = add("z");

  apl::Value add(const char* name) { return values.add(apl::Type::scalar(apl::ScalarType::i64), name); }
  // Sizes n, m and l, indices i and j, x of 32 bits without a sign, y of which nothing is known but that it is not
  // negative, z of which nothing is known.
  SymbolRange range(apl::Value v) const {
    if (v == n || v == m || v == l) return {Kind::size, 0, apl::kMostElements};
    if (v == i || v == j) return {Kind::index, 0, apl::kMostElements};
    if (v == x) return {Kind::number, 0, 0x1p32L - 1};
    if (v == z) return {};
    return {Kind::number, 0, 0x1p63L - 1};
  }
  // Of arrays [n][m], and of one [n] that has nothing to do with one [l].
  apl::RangeOf ranges() const {
    return {.symbol = [this](apl::Value v) { return range(v); },
            .of_one_array =
                [this](const std::vector<apl::Factor>& sizes) {
                  const Poly product(apl::Term{1, sizes});
                  return !product.mentions(l);
                }};
  }
  bool exact(const Poly& p) const { return apl::is_exact(p, ranges()); }
  bool safe(const Poly& p) const { return apl::is_safe_size(p, ranges()); }
};

}  // namespace

TEST_CASE("poly_range: sizes and one index are small, however many are multiplied") {
  const Symbols s;
  const Poly n(s.n), m(s.m), i(s.i), j(s.j);
  CHECK(s.exact(n * m * n + 3 * i * m - j));
  CHECK(s.exact(1000 * i + 7));
  CHECK(!s.exact(i * j));
  CHECK(!s.exact(i * i * i * i));
  CHECK(!s.exact((std::int64_t{1} << 20) * i));
  CHECK(!s.exact(std::int64_t{6364136223846793005} * n + 5));
}

TEST_CASE("poly_range: numbers are as large as what is known of them") {
  const Symbols s;
  const Poly n(s.n), x(s.x), y(s.y);
  CHECK(s.exact(x * 1000));
  CHECK(!s.exact(x * x));
  CHECK(s.exact(y));
  CHECK(!s.exact(y + 1));
  CHECK(!s.exact(y + y));
  CHECK(s.exact(n - y - 1));
  CHECK(s.exact(apl::floor_div(y, 3) + 5));
  CHECK(!s.exact(apl::floor_div(y + 1, 3)));
  CHECK(s.exact(apl::poly_min(y, n) + 5));
}

TEST_CASE("poly_range: the sizes of two arrays may have a product that wraps, those of one array have none") {
  const Symbols s;
  const Poly n(s.n), m(s.m), l(s.l), i(s.i);
  CHECK(s.exact(4 * n * m));
  CHECK(!s.exact(n * l));
  CHECK(s.exact(n + l));
  CHECK(s.exact(i * l));
}

TEST_CASE("poly_range: a size that may have wrapped is no quotient of its polynomial") {
  const Symbols s;
  const Poly n(s.n), y(s.y), z(s.z);
  CHECK(s.safe(2 * n + 3));
  CHECK(!s.safe(2 * z + 3));
  CHECK(!s.safe(4 * z));
  // Nothing can be taken out of these.
  CHECK(s.safe(z + 1));
  CHECK(s.safe(z * z + y));
  // 2 * y is a size only where it is the number that it says: at most 2^64 - 2, which is negative.
  CHECK(s.safe(2 * y));
  CHECK(!s.safe(4 * y));
}
