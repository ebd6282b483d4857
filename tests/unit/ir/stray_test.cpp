// Which kernels may leave their arrays, or run for ever, if these hold anything.
#include "ir/stray.h"

#include <doctest/doctest.h>

#include "ir/parse.h"
#include "ir/walk.h"

namespace {

// Of the kernel that stands in the function's body.
bool strays(const std::string& statements) {
  const std::string text =
      "stage kernel\n\nentry main (A : \"[n]i64\", k : \"i64\") : {\"[n]i64\"}\n"
      "fun main [n] (A : [n]i64, k : i64) : {[n]i64} = {\n  let {r : [n]i64} = segmap(thread) (i < n) {\n" +
      statements + "    return {returns x}\n  }\n  in {r}\n}\n";
  const auto module = apl::parse_module(text, "test.aplir");
  REQUIRE_MESSAGE(module, (module ? "" : module.error().message));
  const apl::Function& main = *module->functions.front();
  return apl::may_stray(main.body->stms.front().op, main.values);
}

}  // namespace

TEST_CASE("stray: unchecked positions that arrays decide, and rounds of loops") {
  CHECK_FALSE(strays("    let {x : i64} = A[i]\n"));
  CHECK_FALSE(strays("    let {x : i64} = A[n - i - 1]\n"));
  CHECK_FALSE(strays("    let {j : i64} = add(i, k)\n    let {x : i64} = A[j]\n"));
  CHECK_FALSE(strays("    let {j : i64} = A[i]\n    let {x : i64} = checked A[j]\n"));
  CHECK(strays("    let {j : i64} = A[i]\n    let {x : i64} = A[j]\n"));
  CHECK(strays("    let {y : i64} = A[i]\n    let {j : i64} = add(y, k)\n    let {x : i64} = A[j]\n"));
  CHECK_FALSE(
      strays("    let {x : i64} = loop {s : i64 = 0i64} for j < k {\n      let {y : i64} = A[j]\n"
             "      let {t : i64} = add(s, y)\n      in {t}\n    }\n"));
  CHECK(
      strays("    let {m : i64} = A[i]\n    let {x : i64} = loop {s : i64 = 0i64} for j < m {\n"
             "      let {t : i64} = add(s, j)\n      in {t}\n    }\n"));
  CHECK(
      strays("    let {x : i64} = loop {s : i64 = 0i64} for j < k {\n      let {t : i64} = A[s]\n      in {t}\n"
             "    }\n"));
}
