// Proofs about polynomials: never wrong, against enumeration; and strong enough for what tiling asks.
#include <doctest/doctest.h>

#include "ir/poly.h"
#include "tests/unit/ir/random_values.h"
#include "tests/unit/ir/symbols.h"

namespace apl {
namespace {

using namespace testing_random;
using namespace testing_symbols;

// Sizes n, m; a tile size b; indices i, j; a free symbol k.
struct World {
  std::int64_t least_n, least_m;
  Poly i_size, j_size;

  SizeFacts facts() const {
    SizeFacts result;
    result.at_least(Value{0}, least_n);
    result.at_least(Value{1}, least_m);
    result.at_least(Value{2}, 1);
    result.index_of(Value{3}, i_size);
    result.index_of(Value{4}, j_size);
    return result;
  }

  // Symbol values that obey the facts; nullopt if an index range is empty.
  std::optional<Assignment> sample(Random& random) const {
    Assignment values;
    values.values[0] = random.between(least_n, 7);
    values.values[1] = random.between(least_m, 7);
    values.values[2] = random.between(1, 4);
    values.values[5] = random.between(-4, 4);
    for (const auto& [index, size] : {std::pair(3, i_size), std::pair(4, j_size)}) {
      const std::int64_t count = *size.evaluate(values);
      if (count <= 0) return std::nullopt;
      values.values[static_cast<std::size_t>(index)] = random.chance(40) ? count - 1 : random.between(0, count - 1);
    }
    return values;
  }
};

World random_world(Random& random) {
  const std::vector<Poly> sizes{n, m, n + m, ceil_div(n, b), floor_div(n, b), poly_min(n, m), poly_max(b, m), n * b, 5};
  return {random.between(-1, 2), random.between(-1, 2), random.pick(sizes), random.pick(sizes)};
}

// Half of them true for a reason: sums of products of what the facts say is not negative.
Poly random_question(Random& random, const World& world) {
  const std::vector<Poly> known{n - world.least_n,    m - world.least_m,   b - 1, i, j,
                                world.i_size - 1 - i, world.j_size - 1 - j};
  Poly result = random.chance(50) ? random_poly(random, 2, random.chance(50)) : Poly(random.between(-1, 2));
  for (std::int64_t terms = random.between(0, 2); terms > 0; --terms) result += random.pick(known) * random.pick(known);
  if (random.chance(20)) {
    const std::vector<Poly> dividends{n, i, n * m + i, n - i};
    result +=
        make_opaque(static_cast<OpaqueKind>(random.between(0, 3)), random.pick(dividends), random.chance(70) ? b : 3);
  }
  return random.chance(50) ? result : -result;
}

struct Tally {
  int decided = 0;
  int contradictions = 0;
};

// Asks `question`, then looks for a counterexample to its answer among samples.
template <class Holds>
void check_answer(Random& random, const World& world, Proof answer, Tally& tally, Holds holds) {
  if (answer == Proof::unknown) return;
  ++tally.decided;
  for (int sample = 0; sample < 60; ++sample) {
    const auto values = world.sample(random);
    if (!values) continue;
    const std::optional<bool> truth = holds(*values);
    if (truth && *truth != (answer == Proof::yes)) ++tally.contradictions;
  }
}

TEST_CASE("law: a proof about signs, order, equality or divisibility is never wrong") {
  Tally sign, less, equal, divisible;
  thousand_cases(1000, [&](Random& random) {
    const World world = random_world(random);
    const Poly p = random_question(random, world);
    const Poly q = random.chance(50) ? random_question(random, world) : random_poly(random, 2, true);
    const SizeFacts facts = world.facts();
    INFO("p = " << text(p) << ", q = " << text(q) << ", n >= " << world.least_n << ", m >= " << world.least_m
                << ", i < " << text(world.i_size) << ", j < " << text(world.j_size));
    const auto compare = [&](auto relation) {
      return [&, relation](const Assignment& values) -> std::optional<bool> {
        const auto x = p.evaluate(values);
        const auto y = q.evaluate(values);
        return x && y ? std::optional<bool>(relation(*x, *y)) : std::nullopt;
      };
    };
    using Number = std::int64_t;
    const int before = sign.contradictions + less.contradictions + equal.contradictions + divisible.contradictions;
    check_answer(random, world, prove_non_negative(p, facts), sign, compare([](Number x, Number) { return x >= 0; }));
    check_answer(random, world, prove_less(p, q, facts), less, compare([](Number x, Number y) { return x < y; }));
    const Proof same = random.chance(30) ? prove_equal(p, poly_min(p, p + q * q), facts) : Proof::unknown;
    check_answer(random, world, same, equal, [&](const Assignment&) { return true; });
    check_answer(random, world, prove_equal(p, q, facts), equal, compare([](Number x, Number y) { return x == y; }));
    check_answer(random, world, prove_divisible(p, q, facts), divisible, [&](const Assignment& values) {
      const auto x = p.evaluate(values);
      const auto y = q.evaluate(values);
      return x && y && *y > 0 ? std::optional<bool>(*x % *y == 0) : std::nullopt;
    });
    CHECK(sign.contradictions + less.contradictions + equal.contradictions + divisible.contradictions == before);
  });
  // Proofs that always answer `unknown` would pass, too.
  CHECK(sign.decided > 250);
  CHECK(less.decided > 150);
  CHECK(equal.decided > 150);
  CHECK(divisible.decided > 20);
}

TEST_CASE("law: quotients of bounded numbers compare as all their values do") {
  int decided = 0;
  thousand_cases(3000, [&](Random& random) {
    const std::int64_t low_n = random.between(-4, 4), high_n = low_n + random.between(0, 6);
    const std::int64_t low_b = random.between(1, 4), high_b = low_b + random.between(0, 2);
    SizeFacts facts;
    facts.at_least(Value{0}, low_n), facts.at_most(Value{0}, high_n);
    facts.at_least(Value{2}, low_b), facts.at_most(Value{2}, high_b);
    const auto kind = random.chance(50) ? OpaqueKind::floor_div : OpaqueKind::ceil_div;
    const Poly quotient = make_opaque(kind, n, random.chance(70) ? b : b + 1);
    const std::vector<Poly> scales{1, -1, 2, -3, b, -b};
    const Poly p = random.pick(scales) * quotient + random.pick(std::vector<Poly>{0, 1, b, n}) + random.between(-3, 3);
    CAPTURE(text(p));
    INFO("n in " << low_n << ".." << high_n << ", b in " << low_b << ".." << high_b);
    const Proof answer = prove_non_negative(p, facts);
    if (answer == Proof::unknown) return;
    ++decided;
    Assignment values;
    for (values.values[0] = low_n; values.values[0] <= high_n; ++values.values[0]) {
      for (values.values[2] = low_b; values.values[2] <= high_b; ++values.values[2]) {
        CHECK((*p.evaluate(values) >= 0) == (answer == Proof::yes));
      }
    }
  });
  CHECK(decided > 500);
}

TEST_CASE("law: without facts, nothing is assumed of a symbol") {
  thousand_cases(2000, [](Random& random) {
    const Poly p = random_poly(random, 5);
    const Proof answer = prove_non_negative(p);
    for (int sample = 0; sample < 20; ++sample) {
      const std::int64_t value = *p.evaluate(random_assignment(random, -9, 9));
      if (answer == Proof::yes) CHECK(value >= 0);
      if (answer == Proof::no) CHECK(value < 0);
    }
  });
  CHECK(prove_non_negative(n) == Proof::unknown);
  CHECK(prove_non_negative(n * n + 1) == Proof::yes);
  CHECK(prove_non_negative(n * n * n) == Proof::unknown);
}

TEST_CASE("proofs that tiling asks for") {
  SizeFacts facts;
  facts.at_least(Value{2}, 1);
  facts.index_of(Value{3}, n);  // i < n
  facts.index_of(Value{4}, m);  // j < m
  SUBCASE("a row-major index is in bounds") {
    CHECK(prove_less(i * m + j, n * m, facts) == Proof::yes);
    CHECK(prove_non_negative(i * m + j, facts) == Proof::yes);
    CHECK(prove_less(i * n + j, n * m, facts) == Proof::unknown);
  }
  SUBCASE("an index that exists says that its size is positive") {
    CHECK(prove_less(0, n, facts) == Proof::yes);
    CHECK(prove_less(0, n * m, facts) == Proof::yes);
    CHECK(prove_less(k, n) == Proof::unknown);
  }
  SUBCASE("unflattening undoes flattening") {
    CHECK(prove_equal(floor_div(i * m + j, m), i, facts) == Proof::yes);
    CHECK(prove_equal(remainder(i * m + j, m), j, facts) == Proof::yes);
  }
  SUBCASE("full tiles lie inside, and the last partial one is what is left") {
    SizeFacts tiles;
    tiles.at_least(Value{0}, 0);
    tiles.index_of(Value{5}, floor_div(n, b));
    tiles.index_of(Value{3}, b);
    CHECK(prove_less(k * b + i, n, tiles) == Proof::yes);
    SizeFacts guarded;
    guarded.index_of(Value{5}, ceil_div(n, b));
    guarded.index_of(Value{3}, poly_min(b, n - k * b));
    CHECK(prove_less(k * b + i, n, guarded) == Proof::yes);
    CHECK(prove_less(0, n - k * b, guarded) == Proof::yes);
  }
  SUBCASE("quotients") {
    CHECK(prove_non_negative(ceil_div(n, b) * b - n, facts) == Proof::yes);
    CHECK(prove_non_negative(n - floor_div(n, b) * b, facts) == Proof::yes);
    CHECK(prove_non_negative(ceil_div(n, b) - floor_div(n, b), facts) == Proof::yes);
    CHECK(prove_less(0, ceil_div(n, b), facts) == Proof::yes);
    CHECK(prove_less(ceil_div(n, b) * b, n + b, facts) == Proof::yes);
    CHECK(prove_less(floor_div(i, m), n, facts) == Proof::yes);
  }
  SUBCASE("minimum and maximum") {
    CHECK(prove_non_negative(n - poly_min(n, m)) == Proof::yes);
    CHECK(prove_non_negative(poly_max(n, m) - m) == Proof::yes);
    CHECK(prove_non_negative(poly_min(n, m), facts) == Proof::yes);
    CHECK(prove_equal(poly_min(i, n), i, facts) == Proof::yes);
    CHECK(prove_non_negative(poly_max(n, m) - poly_min(n, m)) == Proof::yes);
  }
  SUBCASE("a padded size is odd, and at least the size") {
    const Poly padded = i * j + 1 - remainder(i * j, 2);
    CHECK(prove_divisible(padded, 2) == Proof::no);
    CHECK(prove_non_negative(padded - i * j) == Proof::yes);
    CHECK(prove_less(i * j + 1, padded) == Proof::no);
  }
}

TEST_CASE("equality and divisibility") {
  CHECK(prove_equal(n * m, m * n) == Proof::yes);
  CHECK(prove_equal(n, n + 1) == Proof::no);
  CHECK(prove_equal(2 * n, 4 * m + 1) == Proof::no);
  CHECK(prove_equal(n, m) == Proof::unknown);
  CHECK(prove_divisible(6 * n * m, 3 * m) == Proof::yes);
  CHECK(prove_divisible(6 * n + 1, 3) == Proof::no);
  CHECK(prove_divisible(6 * n + 2, 4) == Proof::unknown);
  CHECK(prove_divisible(n, 0) == Proof::unknown);
  SizeFacts pinned;
  pinned.at_least(Value{0}, 8);
  pinned.at_most(Value{0}, 8);
  CHECK(prove_equal(n, 8, pinned) == Proof::yes);
  CHECK(prove_divisible(n, 4, pinned) == Proof::yes);
}

TEST_CASE("the tighter of two bounds is kept") {
  SizeFacts facts;
  facts.at_least(Value{0}, 3);
  facts.at_least(Value{0}, 1);
  facts.at_least(Value{0}, m);
  facts.at_most(Value{0}, 9);
  facts.at_most(Value{0}, 7);
  CHECK(*facts.lower(Value{0}) == Poly(3));
  CHECK(*facts.upper(Value{0}) == Poly(7));
  CHECK(facts.lower(Value{1}) == nullptr);
  CHECK(prove_non_negative(n - m, facts) == Proof::yes);
  CHECK(prove_non_negative(n - 3, facts) == Proof::yes);
}

TEST_CASE("numbers that would overflow are not reasoned about") {
  const Poly huge = INT64_MAX;
  CHECK(prove_less(INT64_MIN, 1) == Proof::yes);
  CHECK(prove_less(INT64_MAX, INT64_MIN) == Proof::no);
  CHECK(prove_less(huge * n, huge * m) == Proof::unknown);
  SizeFacts facts;
  facts.at_least(Value{0}, std::int64_t{1} << 40);
  CHECK(prove_non_negative(n * n - n, facts) == Proof::unknown);
  SizeFacts far_apart;
  far_apart.at_least(Value{3}, -9);
  far_apart.at_most(Value{3}, huge - n);
  CHECK(prove_less(n, 0, far_apart) == Proof::unknown);
  CHECK(prove_non_negative(n, far_apart) == Proof::unknown);
  CHECK(prove_non_negative(floor_div(n - huge, m - huge) * 2 + k) == Proof::unknown);
}

TEST_CASE("sums of very many sizes are no harder than those of few") {
  SizeFacts facts;
  Poly all;
  for (std::uint32_t id = 0; id < 600; ++id) {
    facts.at_least(Value{id}, 0);
    all += Poly(Value{id});
  }
  CHECK(prove_non_negative(all, facts) == Proof::yes);
  CHECK(prove_less(all - Poly(Value{7}), all + 1, facts) == Proof::yes);
  CHECK(prove_non_negative(all - 1, facts) == Proof::unknown);
}

TEST_CASE("bounds that refer to each other come to an end") {
  SizeFacts facts;
  facts.at_least(Value{0}, m);
  facts.at_least(Value{1}, n);
  facts.at_most(Value{0}, m);
  CHECK(prove_non_negative(n - m, facts) == Proof::yes);
  CHECK(prove_non_negative(n + m, facts) == Proof::unknown);
}

}  // namespace
}  // namespace apl
