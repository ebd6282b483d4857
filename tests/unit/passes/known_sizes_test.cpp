#include "passes/place_memory/known_sizes.h"

#include <doctest/doctest.h>

namespace apl::memory {

TEST_CASE("what is known of sizes: their own symbols, until the body ends") {
  const Poly n(Value{0}), m(Value{1}), k(Value{2});
  KnownSizes sizes;
  CHECK_FALSE(sizes.surely_non_negative(n));
  sizes.non_negative(n);
  sizes.non_negative(m);
  CHECK(sizes.surely_non_negative(n * m));
  CHECK(sizes.surely_non_negative(2 * n + m));
  CHECK_FALSE(sizes.surely_non_negative(n - m));
  CHECK_FALSE(sizes.surely_non_negative(Poly(-1)));

  const KnownSizes::Mark before = sizes.mark();
  sizes.non_negative(n - m);
  sizes.non_negative(n - m);  // twice, and forgotten once
  CHECK(sizes.surely_non_negative(n - m));
  CHECK_FALSE(sizes.surely_non_negative(n - m, before));
  CHECK_FALSE(sizes.surely_non_negative(k + n - m));
  sizes.release(before);
  CHECK_FALSE(sizes.surely_non_negative(n - m));
  CHECK(sizes.surely_non_negative(n));
  sizes.non_negative(n - m);
  CHECK(sizes.surely_non_negative(n - m));
}

}  // namespace apl::memory
