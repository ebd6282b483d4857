// Where statements that were inlined say that they come from.
#include <doctest/doctest.h>

#include <fmt/format.h>

#include <string>

#include "ir/parse.h"
#include "ir/print.h"
#include "ir/walk.h"
#include "passes/pipeline.h"

namespace {

using namespace apl;

Module inlined(const std::string& text) {
  auto module = parse_module(text, "test");
  if (!module) FAIL(render(module.error(), "test", text));
  const auto pipeline = parse_pipeline("inline", PassRegistry::builtin());
  REQUIRE(pipeline);
  const auto done = run_pipeline(*module, *pipeline, {});
  if (!done) FAIL(done.error().message);
  return *module;
}

// `@...` of each statement that has one, in order.
std::string locations(const Module& module) {
  std::string result;
  const std::string text = print(module, {.locations = true});
  for (std::size_t at = text.find(" @"); at != std::string::npos; at = text.find(" @", at + 1)) {
    const std::size_t end = text.find_first_of("\n", at);
    result += text.substr(at + 1, end - at);
  }
  return result;
}

}  // namespace

TEST_CASE("what is inlined knows its calls, nested ones and those that the front end had inlined before") {
  const Module module = inlined(R"(stage soac

fun inner [] (x : i32) : {i32} = {
  let {a : i32} = add(x, 1i32) @1:1-1:9 from 2:1-2:9
  let {b : i32} = add(a, 1i32) @3:1-3:9
  let {c : bool} = eq(b, 0i32)
  let {d : i32} =
    if c {
      let {e : i32} = add(b, 5i32) @4:1-4:9
      in {e}
    } else {
      in {b}
    } @5:1-5:9
  in {d}
}

fun outer [] (x : i32) : {i32} = {
  let {r : i32} = apply inner(x) @11:1-11:9 from 12:1-12:9
  in {r}
}

entry main (x : "i32") : {"i32"}
fun main [] (x : i32) : {i32} = {
  let {y : i32} = apply outer(x) @21:1-21:9
  let {z : i32} = apply inner(y) @22:1-22:9
  in {z}
}
)");
  const std::string through = " from 11:1-11:9 from 12:1-12:9 from 21:1-21:9";
  const std::string directly = " from 22:1-22:9";
  std::string wanted;
  for (const std::string& calls : {through, directly}) {
    wanted += "@1:1-1:9 from 2:1-2:9" + calls + "\n@3:1-3:9" + calls + "\n";
    // A statement without a location of its own has that of the call.
    wanted += "@" + calls.substr(6) + "\n";
    wanted += "@4:1-4:9" + calls + "\n@5:1-5:9" + calls + "\n";
  }
  const std::string seen = locations(module);
  CHECK_MESSAGE(seen == wanted, seen);
}

TEST_CASE("entries that call entries keep their own calls") {
  const Module module = inlined(R"(stage soac

entry low (x : "i32") : {"i32"}
fun low [] (x : i32) : {i32} = {
  let {a : i32} = apply least(x) @1:1-1:9
  in {a}
}

entry high (x : "i32") : {"i32"}
fun high [] (x : i32) : {i32} = {
  let {a : i32} = apply low(x) @2:1-2:9
  let {b : i32} = apply low(a) @3:1-3:9
  in {b}
}

fun least [] (x : i32) : {i32} = {
  let {a : i32} = add(x, 1i32) @4:1-4:9
  in {a}
}
)");
  CHECK(locations(module) ==
        "@4:1-4:9 from 1:1-1:9\n"
        "@4:1-4:9 from 1:1-1:9 from 2:1-2:9\n"
        "@4:1-4:9 from 1:1-1:9 from 3:1-3:9\n");
}

TEST_CASE("the table has a call for each that the functions which stay contain") {
  // Twice as many at each step; those of the steps between are not in it.
  std::string text =
      "stage soac\n\nfun f0 [] (x : i32) : {i32} = {\n  let {a : i32} = add(x, 1i32) @1:1-1:9\n  in {a}\n}\n";
  constexpr std::size_t kSteps = 10;
  for (std::size_t k = 1; k <= kSteps; ++k)
    text += fmt::format(
        "\nfun f{0} [] (x : i32) : {{i32}} = {{\n  let {{a : i32}} = apply f{1}(x) @{2}:1-{2}:9\n"
        "  let {{b : i32}} = apply f{1}(a) @{2}:11-{2}:19\n  in {{b}}\n}}\n",
        k, k - 1, k + 1);
  text += fmt::format(
      "\nentry main (x : \"i32\") : {{\"i32\"}}\nfun main [] (x : i32) : {{i32}} = {{\n"
      "  let {{a : i32}} = apply f{}(x) @99:1-99:9\n  in {{a}}\n}}\n",
      kSteps);
  const Module module = inlined(text);
  CHECK(module.calls.size() == (std::size_t{2} << kSteps) - 1);
  const std::string seen = locations(module);
  CHECK(seen.starts_with("@1:1-1:9 from 2:1-2:9 from 3:1-3:9 from 4:1-4:9"));
  std::size_t stms = 0;
  for_each_stm(*module.functions.front()->body, [&](const Stm& stm) {
    ++stms;
    std::size_t depth = 0;
    for (std::uint32_t call = stm.location.call; call != 0; call = module.calls[call - 1].call) ++depth;
    CHECK(depth == kSteps + 1);
  });
  CHECK(stms == std::size_t{1} << kSteps);
}

TEST_CASE("large functions are simplified before they are copied") {
  // Of which nothing is left but x; copied as they are they would be more than what is refused.
  std::string text = "stage soac\n\nfun f0 [] (x : i32) : {i32} = {\n  let {y0 : i32} = mul(x, 1i32)\n";
  constexpr std::size_t kStms = 9000, kSteps = 8;
  for (std::size_t k = 1; k < kStms; ++k) text += fmt::format("  let {{y{} : i32}} = mul(y{}, 1i32)\n", k, k - 1);
  text += fmt::format("  in {{y{}}}\n}}\n", kStms - 1);
  for (std::size_t k = 1; k <= kSteps; ++k)
    text += fmt::format(
        "\nfun f{0} [] (x : i32) : {{i32}} = {{\n  let {{a : i32}} = apply f{1}(x)\n  let {{b : i32}} = apply f{1}(a)\n"
        "  let {{c : i32}} = add(a, b)\n  in {{c}}\n}}\n",
        k, k - 1);
  text += fmt::format(
      "\nentry main (x : \"i32\") : {{\"i32\"}}\nfun main [] (x : i32) : {{i32}} = {{\n"
      "  let {{a : i32}} = apply f{}(x)\n  in {{a}}\n}}\n",
      kSteps);
  const Module module = inlined(text);
  std::size_t stms = 0;
  for_each_stm(*module.functions.front()->body, [&](const Stm&) { ++stms; });
  CHECK(stms < 1000);
}
