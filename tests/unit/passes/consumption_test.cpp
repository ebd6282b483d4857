// Which arrays may be overwritten: through every way in which two values can share memory.
#include <doctest/doctest.h>

#include <string>

#include "ir/parse.h"
#include "passes/analysis/consumption.h"

namespace {

using namespace apl;

struct Case {
  const char* body;
  const char* value;
  bool consumed;
};

Value named(const Function& function, const std::string& name) {
  for (std::uint32_t k = 0; k < function.values.size(); ++k) {
    if (function.values.name(Value{k}) == name) return Value{k};
  }
  FAIL("no value " << name);
  return {};
}

TEST_CASE("an array is consumed if it may share memory with one that is") {
  const Case cases[] = {
      {"let {b : [4]f32} = A with [0] = x", "A", true},
      {"let {b : [4]f32} = A with [0] = x", "b", true},
      {"let {b : [4]f32} = copy(A) let {c : [4]f32} = b with [0] = x", "A", false},
      {"let {b : [4]f32} = copy(A) let {c : [4]f32} = b with [0] = x", "b", true},
      {"let {b : [4]f32} = A let {c : [4]f32} = b with [0] = x", "A", true},
      {"let {b : [2]f32} = A[1 :+ 2] let {c : [2]f32} = b with [0] = x", "A", true},
      {"let {b : [2][2]f32} = reshape(A, [2, 2]) let {d : [2][2]f32} = rearrange(b, (1, 0)) let {c : [2][2]f32} = d "
       "with [0, 0] = x",
       "A", true},
      {"let {b : [4]f32} = if q { in {A} } else { in {B} } let {c : [4]f32} = b with [0] = x", "B", true},
      {"let {b : [4]f32} = loop {p : [4]f32 = A} for i < 3 { let {c : [4]f32} = p with [i] = x in {c} }", "A", true},
      {"let {b : [4]f32} = loop {p : [4]f32 = A} for i < 3 { let {c : [4]f32} = copy(p) in {c} }", "A", false},
      {"let {R : [4][4]f32} = replicate([4], A) let {S : [4][4]f32} = map(i < 4, {R}, \\{r : [4]f32} -> { let {c : "
       "[4]f32} = r with [0] = x in {c} })",
       "R", true},
      {"let {R : [4][4]f32} = replicate([4], A) let {S : [4][4]f32} = map(i < 4, {R}, \\{r : [4]f32} -> { let {c : "
       "[4]f32} = r with [0] = x in {c} })",
       "A", false},
  };
  for (const Case& c : cases) {
    const std::string text = "stage soac\n\nfun f [] (A : *[4]f32, B : *[4]f32, x : f32, q : bool) : {f32} = {\n" +
                             std::string(c.body) + "\n in {x}\n}\n";
    const auto module = parse_module(text, "test");
    REQUIRE_MESSAGE(module, text);
    const Function& function = *module->functions[0];
    const Consumption consumption(function, &*module);
    CHECK_MESSAGE(consumption.consumed(named(function, c.value)) == c.consumed, c.body << ": " << c.value);
  }
}

TEST_CASE("values made later may be views of anything that is consumed") {
  const auto module = parse_module(
      "stage soac\n\nfun f [] (A : *[4]f32) : {*[4]f32} = {\n let {b : [4]f32} = A with [0] = 1.0f32\n in {b}\n}\n",
      "test");
  REQUIRE(module);
  const Consumption consumption(*module->functions[0], &*module);
  CHECK(consumption.consumed(Value{1000}));
  CHECK(consumption.escapes(Value{1000}));
}

TEST_CASE("parameters and results escape, what is local does not") {
  const auto module = parse_module(
      "stage soac\n\nfun f [] (A : [4]f32) : {[4]f32, f32} = {\n let {b : [4]f32} = copy(A)\n let {c : [4]f32} = "
      "copy(A)\n"
      " let {x : f32} = c[0]\n in {b, x}\n}\n",
      "test");
  REQUIRE(module);
  const Function& function = *module->functions[0];
  const Consumption consumption(function, &*module);
  CHECK(consumption.none());
  CHECK(consumption.escapes(named(function, "A")));
  CHECK(consumption.escapes(named(function, "b")));
  CHECK(!consumption.escapes(named(function, "c")));
}

}  // namespace
