// Functions that make constants, and functions that read them: text, verifier, interpreter.
#include <doctest/doctest.h>

#include <fmt/format.h>

#include "ir/constants.h"
#include "ir/interpret.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/verify.h"

namespace apl::test {

namespace {

Module parsed(const std::string& text) {
  auto module = parse_module(text, "test");
  REQUIRE_MESSAGE(module, module.error().message);
  return *std::move(module);
}

std::string wrong(const std::string& text) {
  const std::vector<Diagnostic> found = verify(parsed(text));
  return found.empty() ? "" : found.front().message;
}

constexpr std::string_view kTable =
    "constant table () : {\"[4]i32\", \"i32\"}\n"
    "fun table [] () : {[4]i32, i32} = {\n"
    "  let {xs : [4]i32} = replicate([4], 7i32)\n"
    "  in {xs, 5i32}\n"
    "}\n\n";

std::string reader(const std::string& constants, const std::string& params) {
  return fmt::format(
      "stage soac\n\n{}entry main (x : \"i32\") : {{\"i32\"}} constants ({})\n"
      "fun main [] (x : i32, {}) : {{i32}} = {{\n"
      "  let {{y : i32}} = add(x, n)\n"
      "  in {{y}}\n"
      "}}\n",
      kTable, constants, params);
}

}  // namespace

TEST_CASE("constants: what is printed is parsed, and read by the interpreter") {
  const std::string text = reader("table as 2", "t : [4]i32, n : i32");
  const Module module = parsed(text);
  CHECK(print(module) == text);
  CHECK(verify(module).empty());
  const std::vector<HostValue> three = {HostValue::scalar(Scalar::integer(ScalarType::i32, 3))};
  const auto results = interpret(module, "main", three);
  REQUIRE(results);
  CHECK((*results)[0].at(0).as_int() == 8);
  CHECK(interpret(module, "table", {}).error().code == Code::run_argument);
  const auto none = interpret(module, "main", {});
  CHECK(none.error().message == "entry `main` takes 1 values, but 0 are given.");
}

TEST_CASE("constants: the verifier refuses others than there are") {
  CHECK(wrong(reader("table as 2", "t : [4]i32, n : i32")).empty());
  CHECK(wrong(reader("tables as 2", "t : [4]i32, n : i32")).find("no function `tables` makes a constant") !=
        std::string::npos);
  CHECK(wrong(reader("table", "n : i32")).find("the constant `table` has 2 values, 1 are read") != std::string::npos);
  CHECK(wrong(reader("table as 2", "n : i32")).find("the entry's parameters are 3 values, but the function has 2") !=
        std::string::npos);
  CHECK(wrong(reader("table as 2", "t : [4]f32, n : i32"))
            .find("value 1 of the constant `table` is read with another "
                  "type") != std::string::npos);
  CHECK(wrong(reader("table as 2", "t : [5]i32, n : i32"))
            .find("value 1 of the constant `table` is read with another "
                  "shape") != std::string::npos);
  CHECK(wrong("stage soac\n"
              "constant c () : {\"i32\"} constants (c)\n"
              "fun c [] (x : i32) : {i32} = { in {x} }\n")
            .find("the constant `c` reads itself") != std::string::npos);
  CHECK(wrong("stage soac\n"
              "constant c (x : \"i32\") : {\"i32\"}\n"
              "fun c [] (x : i32) : {i32} = { in {x} }\n")
            .find("the function makes a constant, and has parameters") != std::string::npos);
}

TEST_CASE("constants: calls of their functions become parameters, through other functions too") {
  Module module = parsed(
      "stage soac\n\n"
      "constant table () : {\"[]i64\"}\n"
      "fun table [] () : exists [d] {[d]i64} = {\n"
      "  let {xs : [3]i64} = iota(i64, 3, 0i64, 1i64)\n"
      "  in {xs}\n"
      "}\n\n"
      "fun at [] (i : i64) : {i64} = {\n"
      "  let {n : i64, xs : [n]i64} = apply table()\n"
      "  let {x : i64} = checked xs[i]\n"
      "  in {x}\n"
      "}\n\n"
      "entry main (i : \"i64\") : {\"i64\"}\n"
      "fun main [] (i : i64) : {i64} = {\n"
      "  let {x : i64} = apply at(i)\n"
      "  in {x}\n"
      "}\n");
  pass_constants(module);
  CHECK(verify(module).empty());
  CHECK(module.find("at")->sizes.size() == 1);
  CHECK(module.find("at")->params.size() == 2);
  CHECK(module.find_entry("main")->params.size() == 2);
  const std::vector<HostValue> two = {HostValue::scalar(Scalar::integer(ScalarType::i64, 2))};
  const auto passed = interpret(module, "main", two);
  REQUIRE(passed);
  CHECK((*passed)[0].at(0).as_int() == 2);
  expand_constants(module);
  CHECK(verify(module).empty());
  CHECK(*interpret(module, "main", two) == *passed);
}

}  // namespace apl::test
