// Polynomials: the laws of their arithmetic against evaluation, their canonical form, folding, text.
#include "ir/poly.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/unit/ir/random_values.h"
#include "tests/unit/ir/symbols.h"

namespace apl {
namespace {

using namespace testing_random;
using namespace testing_symbols;

constexpr std::int64_t kAnything = INT64_MAX / 2;  // coefficients this large overflow in every product

std::int64_t wrapping(std::int64_t x, std::int64_t y, char op) {
  const auto a = static_cast<std::uint64_t>(x);
  const auto c = static_cast<std::uint64_t>(y);
  return static_cast<std::int64_t>(op == '+' ? a + c : op == '-' ? a - c : a * c);
}

TEST_CASE("law: sums, differences and products evaluate to those of the values, modulo 2^64") {
  thousand_cases(1000, [](Random& random) {
    const Poly a = random_poly(random, kAnything);
    const Poly c = random_poly(random, kAnything);
    const Assignment values = random_assignment(random, -kAnything, kAnything);
    CAPTURE(text(a));
    CAPTURE(text(c));
    CHECK((a + c).evaluate(values) == wrapping(*a.evaluate(values), *c.evaluate(values), '+'));
    CHECK((a - c).evaluate(values) == wrapping(*a.evaluate(values), *c.evaluate(values), '-'));
    CHECK((a * c).evaluate(values) == wrapping(*a.evaluate(values), *c.evaluate(values), '*'));
    CHECK((-a).evaluate(values) == wrapping(0, *a.evaluate(values), '-'));
  });
}

TEST_CASE("law: polynomials are a commutative ring, and equality is that of the form") {
  thousand_cases(2000, [](Random& random) {
    const Poly a = random_poly(random, kAnything, true);
    const Poly c = random_poly(random, kAnything, true);
    const Poly d = random_poly(random, kAnything);
    CHECK(a + c == c + a);
    CHECK(a * c == c * a);
    CHECK(a * (c * d) == d * (c * a));
    CHECK(a * (c + d) == a * c + a * d);
    CHECK(a - a == Poly(0));
    CHECK((a + c) - c == a);
    CHECK(a * 1 == a);
    CHECK((a * 0).is_zero());
    CHECK((a * (c + d)).hash() == (d * a + c * a).hash());
  });
}

TEST_CASE("law: the form is a sorted sum of sorted products without zeros") {
  thousand_cases(3000, [](Random& random) {
    const Poly a = random_poly(random, 3, true) * random_poly(random, 3, true) + random_poly(random, 3);
    const std::vector<Term>& terms = a.terms();
    for (std::size_t k = 0; k < terms.size(); ++k) {
      CHECK(terms[k].coefficient != 0);
      CHECK(std::is_sorted(terms[k].factors.begin(), terms[k].factors.end()));
      if (k == 0) continue;
      CHECK(terms[k - 1].factors.size() >= terms[k].factors.size());
      CHECK(terms[k - 1].factors != terms[k].factors);
    }
  });
}

TEST_CASE("law: the order is total and agrees with equality") {
  thousand_cases(4000, [](Random& random) {
    const Poly a = random_poly(random, 2, true);
    const Poly c = random.chance(30) ? a + 0 : random_poly(random, 2, true);
    const Poly d = random_poly(random, 2);
    CHECK((a < c) + (c < a) + (a == c) == 1);
    if (a < c && c < d) CHECK(a < d);
    if (a == c) CHECK(a.hash() == c.hash());
  });
}

TEST_CASE("law: substitution commutes with evaluation") {
  thousand_cases(5000, [](Random& random) {
    const Poly a = random_poly(random, 9, true);
    const Poly by = random_poly(random, 3) * random_poly(random, 3) + 1;
    Assignment values = random_assignment(random, 1, 6);
    const auto replaced = a.substitute([&](Value v) { return v == Value{3} ? std::optional(by) : std::nullopt; });
    const auto result = replaced.evaluate(values);
    values.values[3] = *by.evaluate(values);
    CAPTURE(text(a));
    CAPTURE(text(by));
    // Folding may give a value where a division was undefined, never another value.
    if (const auto expected = a.evaluate(values)) CHECK(result == expected);
  });
}

TEST_CASE("law: opaque nodes evaluate to what they are named after, folded or not") {
  thousand_cases(6000, [](Random& random) {
    const Poly divisor = random.chance(40) ? Poly(random.between(1, 6)) : random_poly(random, 3);
    const Poly a =
        random.chance(50) ? random_poly(random, 9) : divisor * random_poly(random, 3) + random.between(-5, 5);
    const Assignment values = random_assignment(random, 0, 9);
    const std::int64_t x = *a.evaluate(values);
    const std::int64_t y = *divisor.evaluate(values);
    CAPTURE(text(a));
    CAPTURE(text(divisor));
    CHECK(poly_min(a, divisor).evaluate(values) == std::min(x, y));
    CHECK(poly_max(a, divisor).evaluate(values) == std::max(x, y));
    CHECK(poly_min(a, divisor) == poly_min(divisor, a));
    if (y <= 0) return;
    const std::int64_t down = *floor_div(a, divisor).evaluate(values);
    const std::int64_t up = *ceil_div(a, divisor).evaluate(values);
    CHECK((down * y <= x && x < (down + 1) * y));
    CHECK((up * y >= x && x > (up - 1) * y));
    CHECK(remainder(a, divisor).evaluate(values) == x - down * y);
  });
}

TEST_CASE("law: division gives back quotient and remainder, exact division the factor") {
  thousand_cases(7000, [](Random& random) {
    const Poly a = random_poly(random, 9, true);
    const Poly divisor = random_poly(random, 5, true);
    CAPTURE(text(a));
    CAPTURE(text(divisor));
    const auto [quotient, rest] = a.divide(divisor);
    CHECK(quotient * divisor + rest == a);
    if (divisor.is_zero()) {
      CHECK_FALSE(a.divide_exact(divisor));
      return;
    }
    CHECK((a * divisor).divide_exact(divisor) == a);
    if (const auto exact = a.divide_exact(divisor)) CHECK(*exact * divisor == a);
    if (const auto number = divisor.constant(); number && *number > 0) {
      for (const Term& term : rest.terms()) CHECK(std::abs(term.coefficient) < *number);
    }
  });
}

TEST_CASE("law: linear_in splits exactly, and only what is linear") {
  thousand_cases(8000, [](Random& random) {
    const Poly a = random_poly(random, 9, true);
    const Value symbol = random.pick(kSymbolValues);
    const auto linear = a.linear_in(symbol);
    if (!linear) {
      CHECK(a.mentions(symbol));
      return;
    }
    CHECK(linear->coefficient * symbol + linear->rest == a);
    CHECK_FALSE(linear->coefficient.mentions(symbol));
    CHECK_FALSE(linear->rest.mentions(symbol));
  });
}

TEST_CASE("linear_in refuses powers and what an opaque node hides") {
  CHECK_FALSE((n * n).linear_in(Value{0}));
  CHECK_FALSE((n + ceil_div(n, b)).linear_in(Value{0}));
  CHECK((ceil_div(n, b) * m).linear_in(Value{1})->coefficient == ceil_div(n, b));
}

TEST_CASE("opaque nodes fold") {
  const Poly tile = i * j;  // T*R
  struct Case {
    Poly folded, expected;
  };
  const Case cases[] = {
      {ceil_div(7, 2), 4},
      {floor_div(-7, 2), -4},
      {ceil_div(-7, 2), -3},
      {floor_div(n, 1), n},
      {ceil_div(tile * n, tile), n},
      {ceil_div(tile * n + tile, tile), n + 1},
      {ceil_div(n * n - m * m, n + m), n - m},
      {floor_div(4 * n + 3, 4), n},
      {floor_div(4 * n - 1, 4), n - 1},
      {ceil_div(4 * n + 3, 4), n + 1},
      {ceil_div(n * m + i, m), n + ceil_div(i, m)},
      {floor_div(i * (n + 1) + j, n + 1), i + floor_div(j, n + 1)},
      {floor_div(2 * n, 4), floor_div(n, 2)},
      {floor_div(n * m - 1, n), m - 1},
      {ceil_div(n * m + 1, n), m + 1},
      {poly_min(n, n), n},
      {poly_min(n, n + 3), n},
      {poly_max(n - 1, n), n},
      {poly_max(INT64_MIN, INT64_MAX), INT64_MAX},
      {poly_min(m, n), poly_min(n, m)},
      {remainder(4 * n + 3, 4), 3},
      {remainder(n * m, m), 0},
  };
  for (const Case& c : cases) CHECK_MESSAGE(c.folded == c.expected, text(c.folded), " is ", text(c.expected));
}

TEST_CASE("law: a divisor above all coefficients takes nothing out, so that nothing can overflow") {
  // x - k*floor_div(x, k) + c for any x, as a program's sizes modulo something are.
  const std::int64_t extremes[] = {INT64_MAX, INT64_MAX - 1, INT64_MIN, INT64_MIN + 1, 0, -1};
  thousand_cases(8000, [&](Random& random) {
    const std::int64_t k = random.between(2, 9), divisor = random.between(10, 300), c = random.between(0, 5);
    const std::int64_t x = extremes[random.between(0, 5)];
    const Poly a = remainder(n, k) + c;
    const auto value_of = [x](Value) { return x; };
    const std::int64_t value = *a.evaluate(value_of);
    CAPTURE(text(a));
    CHECK(floor_div(a, divisor).evaluate(value_of) == value / divisor);
    CHECK(ceil_div(a, divisor).evaluate(value_of) == (value + divisor - 1) / divisor);
  });
}

TEST_CASE("division by what is not positive has no value and is not folded") {
  CHECK_FALSE(floor_div(4, 0).constant());
  CHECK_FALSE(ceil_div(4, -2).evaluate(Assignment{}));
  CHECK_FALSE(floor_div(n, m).evaluate(Assignment{}));
}

TEST_CASE("text") {
  CHECK(text(0) == "0");
  CHECK(text(-7) == "-7");
  CHECK(text(2 * b - 1 + m * n) == "n*m + 2*b - 1");
  CHECK(text(n * n - n) == "n*n - n");
  CHECK(text(-n + 1) == "-n + 1");
  CHECK(text(-2 * ceil_div(n, b * i)) == "-2*ceil_div(n, b*i)");
  CHECK(text(3 * n * poly_min(m, floor_div(n, b))) == "3*n*min(m, floor_div(n, b))");
  CHECK(text(INT64_MIN) == "-9223372036854775808");
}

TEST_CASE("constants and kSymbolValues are known as such") {
  CHECK(Poly(5).constant() == 5);
  CHECK(Poly(0).constant() == 0);
  CHECK_FALSE(n.constant());
  CHECK(n.symbol() == Value{0});
  CHECK_FALSE((2 * n).symbol());
  CHECK_FALSE((n * m).symbol());
  CHECK_FALSE(ceil_div(n, m).symbol());
  CHECK((n - n + 1).is_one());
  CHECK(product({}) == Poly(1));
  CHECK(product({n, m, 2}) == 2 * m * n);
}

TEST_CASE("symbols are visited once per occurrence, inside opaque nodes too") {
  int visits = 0;
  (n * n + ceil_div(n, m)).for_each_symbol([&](Value value) { visits += value == Value{0}; });
  CHECK(visits == 3);
}

}  // namespace
}  // namespace apl
