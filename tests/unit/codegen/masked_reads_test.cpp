// Which loops of generated C stay scalar, since gcc could read neighbours of an array under a mask in them.
#include "codegen/kernel/masked_reads.h"

#include <doctest/doctest.h>

#include <string>

#include "machine/target/target.h"

namespace {

using namespace apl::kernel;

ExprPtr var(const char* name) { return variable(name); }
ExprPtr num(std::int64_t n) { return literal(n); }
ExprPtr times(std::int64_t n, const char* name) { return infix("*", num(n), var(name)); }

// out[i] = xs[position] where `c` holds.
Block copy_if(const ExprPtr& position) {
  return {branch(var("c"), {assign(element("out", var("i")), element("xs", position))})};
}
Stmt loop(Block body) { return for_loop(kIndex, "i", var("n"), std::move(body)); }
Stmt short_loop(ExprPtr rounds, Block body) { return for_loop(kIndex, "j", std::move(rounds), std::move(body)); }
bool stays_scalar(Block body, const Numbers& numbers = {}) {
  return reads_rows_in_branches(loop(std::move(body)), numbers);
}

TEST_CASE("reads in branches that move by more than one element keep their loop scalar") {
  CHECK(stays_scalar(copy_if(times(2, "i"))));
  CHECK(stays_scalar(copy_if(infix("-", infix("+", times(2, "i"), num(1)), times(2, "n")))));
  CHECK(stays_scalar(copy_if(infix("-", num(8), times(3, "i")))));
  CHECK(stays_scalar(copy_if(infix("*", var("i"), var("m")))));
  CHECK(stays_scalar(copy_if(infix("*", num(2), call("apl_index_min", {var("i"), var("m")})))));
  // By a variable that the loop changes, in any way.
  Block carried = copy_if(var("at"));
  carried.push_back(assign(var("at"), infix("+", var("at"), num(2))));
  CHECK(stays_scalar(carried));
  // Through a constant of the loop.
  Block named{declare(kIndex, "row", times(2, "i"))};
  for (Stmt& s : copy_if(infix("+", var("row"), num(1)))) named.push_back(s);
  CHECK(stays_scalar(named));
}

TEST_CASE("elements side by side, all of them or one for all, may become vectors") {
  CHECK(!stays_scalar(copy_if(var("i"))));
  CHECK(!stays_scalar(copy_if(infix("-", var("n"), var("i")))));
  CHECK(!stays_scalar(copy_if(times(2, "m"))));
  CHECK(!stays_scalar(copy_if(infix("+", infix("*", var("n"), var("m")), var("i")))));
  CHECK(!stays_scalar(copy_if(element("at", var("i")))));
  CHECK(!stays_scalar({assign(element("out", times(2, "i")), element("xs", times(2, "i")))}));
  CHECK(!stays_scalar({branch(var("c"), {assign(element("out", times(2, "i")), num(0))})}));
}

TEST_CASE("a short loop counts as unrolled, another one keeps branches from being converted") {
  const ExprPtr at = infix("+", times(2, "i"), var("j"));
  CHECK(stays_scalar({short_loop(num(2), copy_if(at))}));
  CHECK(stays_scalar({branch(var("c"), {short_loop(num(2), {assign(var("x"), element("xs", at))})})}));
  CHECK(stays_scalar({short_loop(call("apl_index_min", {num(4), var("m")}), {assign(var("x"), element("xs", at))})}));
  CHECK(!stays_scalar({short_loop(var("m"), copy_if(at))}));
  CHECK(stays_scalar({short_loop(var("m"), copy_if(at))}, {{"m", 2}}));
  CHECK(!stays_scalar({short_loop(num(400), copy_if(at))}));
  CHECK(!stays_scalar({short_loop(num(2), {assign(var("x"), element("xs", at))})}));
}

TEST_CASE("arms of a conditional expression are branches") {
  const ExprPtr read = element("xs", times(2, "i"));
  CHECK(stays_scalar({assign(var("x"), select(var("c"), read, num(0)))}));
  CHECK(stays_scalar({assign(var("x"), infix("&&", var("c"), read))}));
  CHECK(!stays_scalar({assign(var("x"), select(read, var("a"), var("b")))}));
}

TEST_CASE("generated C says so within the loop, and CUDA does not") {
  Function function;
  function.name = "rows";
  function.body = {loop({short_loop(num(2), copy_if(infix("+", times(2, "i"), var("j"))))})};
  const std::string c = print(function, *apl::find_dialect("c"));
  CHECK(c.find("__asm__") != std::string::npos);
  CHECK(c.find("__asm__") < c.find("int64_t j"));
  CHECK(print(function, *apl::find_dialect("cuda")).find("asm") == std::string::npos);
  // Of loops that threads share, the innermost one.
  Stmt rows = loop({short_loop(var("m"), copy_if(infix("+", infix("*", var("i"), var("m")), times(2, "j"))))});
  rows.parallel = true;
  rows.collapse = 2;
  function.body = {rows};
  const std::string collapsed = print(function, *apl::find_dialect("c"));
  CHECK(collapsed.find("__asm__") > collapsed.find("apl_round"));
  CHECK(collapsed.find("__asm__") != std::string::npos);
}

}  // namespace
