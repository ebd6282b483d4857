#include <doctest/doctest.h>

#include <string>

#include "frontend/frontend.h"
#include "ir/interpret.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "suite/join.h"
#include "tests/testing.h"

namespace apl::suite {
namespace {

Module front_end(const std::string& text) {
  auto module = compile({"join.fut", text}, [&](const Diagnostic& d) { FAIL(d.message); });
  REQUIRE(module);
  return *std::move(module);
}

std::string called(const Module& module, const std::string& entry, std::int64_t argument) {
  const auto result = interpret(module, entry, {HostValue::scalar(Scalar::integer(ScalarType::i64, argument))});
  return result ? result->front().to_text() : "error: " + result.error().message;
}

// Entries and helpers of both have the same names, and are called in branches and loops.
constexpr const char* kTwice = R"(
#[noinline]
def step (x: i64): i64 = x + x
entry main (x: i64): i64 = if x > 0 then step x else (loop y = x for i < 3 do step y)
)";
constexpr const char* kSquare = R"(
#[noinline]
def step (x: i64): i64 = x * x
entry main (x: i64): i64 = reduce (+) 0 (map step [x, x + 1])
entry fails (x: i64): i64 = [x, x][step x]
)";

TEST_CASE("joined programs of the same names mean what each means alone") {
  const Module first = front_end(kTwice), second = front_end(kSquare);
  const Module joined = join({&first, &second, &first});
  REQUIRE(verify(joined).empty());
  for (const std::int64_t x : {-2, 0, 1, 5}) {
    CHECK(called(joined, joined_name(0, "main"), x) == called(first, "main", x));
    CHECK(called(joined, joined_name(1, "main"), x) == called(second, "main", x));
    CHECK(called(joined, joined_name(2, "main"), x) == called(first, "main", x));
  }
  CHECK(called(joined, joined_name(1, "fails"), 3) == called(second, "fails", 3));
  CHECK(joined.find_entry("main") == nullptr);
  CHECK(testing::round_trips(joined));
}

TEST_CASE("calls that were inlined keep their places when programs are joined") {
  const Module plain = front_end(kTwice);
  const auto inlined = testing::run_module("inline", front_end(kSquare));
  REQUIRE(inlined);
  REQUIRE_FALSE(inlined->after.calls.empty());
  const Module joined = join({&inlined->after, &plain, &inlined->after});
  REQUIRE(verify(joined).empty());
  REQUIRE(joined.calls.size() == 2 * inlined->after.calls.size() + plain.calls.size());
  const auto notes = [](const Module& module, const std::string& entry) {
    const auto result = interpret(module, entry, {HostValue::scalar(Scalar::integer(ScalarType::i64, 3))});
    REQUIRE_FALSE(result);
    return result.error().notes.size();
  };
  CHECK(notes(joined, joined_name(2, "fails")) == notes(inlined->after, "fails"));
}

TEST_CASE("tuning parameters of entries are renamed with them, others stay") {
  const Module module = front_end(kTwice);
  const std::map<std::string, std::int64_t> expected{{"p4_main.T_a", 3}, {"width", 7}};
  CHECK(joined_parameters(4, module, {{"main.T_a", 3}, {"width", 7}}) == expected);
}

}  // namespace
}  // namespace apl::suite
