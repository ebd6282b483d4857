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
  apl::Value n = add("n"), m = add("m"), i = add("i"), j = add("j"), x = add("x"), y = add("y");

  apl::Value add(const char* name) { return values.add(apl::Type::scalar(apl::ScalarType::i64), name); }
  // Sizes n and m, indices i and j, x of 32 bits without a sign, y of which nothing is known but that it is not
  // negative.
  SymbolRange range(apl::Value v) const {
    if (v == n || v == m) return {Kind::size, 0, apl::kMostElements};
    if (v == i || v == j) return {Kind::index, 0, apl::kMostElements};
    if (v == x) return {Kind::number, 0, 0x1p32L - 1};
    return {Kind::number, 0, 0x1p63L - 1};
  }
  bool exact(const Poly& p) const {
    return apl::is_exact(p, [this](apl::Value v) { return range(v); });
  }
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
