// Kernels that are not what their schedules say: a test for every invariant, each broken on purpose.
#include "ir/schedule.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "ir/interpret.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "ir/walk.h"
#include "passes/pipeline.h"

namespace {

template <class T>
T take(apl::Result<T> result) {
  if (!result) MESSAGE(result.error().message);
  REQUIRE(result);
  return std::move(*result);
}

constexpr const char* kProduct = R"(stage kernel

entry mm (A : "[m][q]f32", B : "[q][n]f32") : {"[m][n]f32"}
fun mm [m, n, q] (A : [m][q]f32, B : [q][n]f32) : {[m][n]f32} = {
  let {C : [m][n]f32} =
    segmap(thread) (i < m, j < n) {
      let {xs : [q]f32} = A[i]
      let {ys : [q]f32} = B[0 :+ q, j]
      let {c : f32} =
        redomap(k < q, {xs, ys}, \{x : f32, y : f32} -> { let {xy : f32} = mul(x, y) in {xy} },
          {commutative \{u : f32, v : f32} -> { let {uv : f32} = add(u, v) in {uv} }, {0.0f32}})
      let {d : f32} = mul(c, 2.0f32)
      return {returns d}
    }
  in {C}
}
)";

// A product and a count of its terms.
constexpr const char* kTwoResults = R"(stage kernel

entry mm (A : "[m][q]f32", B : "[q][n]f32") : {"[m][n]f32", "[m][n]i64"}
fun mm [m, n, q] (A : [m][q]f32, B : [q][n]f32) : {[m][n]f32, [m][n]i64} = {
  let {C : [m][n]f32, D : [m][n]i64} =
    segmap(thread) (i < m, j < n) {
      let {xs : [q]f32} = A[i]
      let {ys : [q]f32} = B[0 :+ q, j]
      let {c : f32, d : i64} =
        redomap(k < q, {xs, ys}, \{x : f32, y : f32} -> { let {xy : f32} = mul(x, y) in {xy, 1i64} },
          {commutative \{u : f32, p : i64, v : f32, r : i64} -> {
            let {uv : f32} = add(u, v)
            let {pr : i64} = add(p, r)
            in {uv, pr}
          }, {0.0f32, 0i64}})
      return {returns c, returns d}
    }
  in {C, D}
}
)";

apl::Module tiled(const std::string& pipeline, const char* text = kProduct) {
  apl::Module module = take(apl::parse_module(text, "product.aplir"));
  take(apl::run_pipeline(module, take(apl::parse_pipeline(pipeline, apl::PassRegistry::builtin())), {}));
  return module;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  CAPTURE(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

// What the verifier says of the text.
std::string verdict(const std::string& text) {
  const auto module = apl::parse_module(text, "broken.aplir");
  if (!module) return module.error().message;
  const auto errors = apl::verify(*module);
  return errors.empty() ? "" : errors.front().message;
}

}  // namespace

TEST_CASE("schedule: what tile-contraction makes holds at every stage, and survives the textual IR") {
  for (const char* pipeline : {"tile-contraction", "tile-contraction,coalesce,simplify,place-memory"}) {
    const apl::Module module = tiled(pipeline);
    const std::string text = print(module);
    CHECK(text.find("schedule(simt \"mm.\"") != std::string::npos);
    CHECK(verdict(text).empty());
    CHECK(print(take(apl::parse_module(text, "again.aplir"))) == text);
  }
}

TEST_CASE("schedule: a body that is not what it says is refused, each way with its reason") {
  const std::string kernel = print(tiled("tile-contraction"));
  const std::string memory = print(tiled("tile-contraction,coalesce,simplify,place-memory"));
  struct Case {
    const std::string& text;
    const char *from, *to, *reason;
  };
  const Case cases[] = {
      {kernel, "(m m / T_m / R_m", "(m m / 1 / R_m", "a result's tile is not that of its dims"},
      {kernel, "(m m / T_m / R_m", "(m q / T_m / R_m", "a result's tile is not that of its dims"},
      {kernel, "(m m / T_m / R_m", "(m m / 2*T_m / R_m", "a tile number is neither a parameter nor 1"},
      {kernel, "(m m / T_m", "(n m / T_m", "it has 1 dims of the space, the block 2"},
      {kernel, "(m m / T_m", "(batch m / T_m", "there are no M and N dims"},
      {kernel, "depth q / T_q", "free q / T_q", "it has no depth dim"},
      {kernel, "depth q / T_q / 1", "depth q / T_q / T_q", "a depth dim has registers"},
      {kernel, "depth q / T_q", "depth m / T_q", "its guard is not where the depth ends"},
      {kernel, "depth q / T_q", "depth q / 1", "its window is another along the depth"},
      {kernel, "\"A\" f32 [q, 0, 1]", "\"A\" f32 [q, 0, 2]", "its window is another along the depth"},
      {kernel, "\"A\" f32 [q, 0, 1]", "\"A\" f32 [n, 0, 1]", "its window has other strides"},
      {kernel, "\"A\" f32 [q, 0, 1]", "\"A\" f32 [q, 1, 1]", "an operand varies along M and N dims"},
      {kernel, "\"A\" f32 [q, 0, 1]", "\"A\" f32 [q, 0]", "an operand has not one stride a dim"},
      {kernel, "\"A\" f32", "\"A\" f64", "it has another element type"},
      {kernel, ", \"B\" f32 [0, 1, n] copy 16 swizzled))", "))", "a contraction of tiles has other dims or operands"},
      {kernel, "A_s_3 at (2, 0)", "A_s_3 at (9, 0)", "axis 1 of tile"},
      {kernel, "copy 16", "copy 8", "copies are of 0, 4 or 16 bytes"},
      {kernel, "n n / T_n / R_n", "n n / T_n / T_n", "two numbers are one parameter"},
      {kernel, "splits 1", "splits m*n", "the parts of the reduction are not its outermost dim"},
      {kernel, "simt \"mm.\"", "mma \"mm.\"", "`general`, `simt` or `packed`"},
      {kernel, "stages 0", "stages -1", "a number of a schedule is not below 0"},
  };
  for (const Case& one : cases) {
    CAPTURE(std::string(one.from));
    CAPTURE(std::string(one.to));
    const std::string said = verdict(replaced(one.text, one.from, one.to));
    CAPTURE(said);
    CHECK(said.find(one.reason) != std::string::npos);
  }
  CHECK(verdict(memory).empty());
}

TEST_CASE("schedule: products of f32 are for matrix units where the statement allows products of tf32") {
  const std::string matrix =
      replaced(print(tiled("tile-contraction")), "schedule(simt \"mm.\"", "schedule(matrix \"mm.\"");
  CHECK(verdict(matrix).find("no sum of products that matrix units know") != std::string::npos);
  for (const char* attribute : {"#[tf32]", "#[f32_3xtf32]"})
    CHECK(verdict(replaced(matrix, "let {C :", std::string(attribute) + "\n  let {C :")).empty());
  CHECK_FALSE(verdict(replaced(matrix, "let {C :", "#[no_tiling]\n  let {C :")).empty());
}

TEST_CASE("schedule: where tiles and accumulators lie is a part of it") {
  const std::string memory = print(tiled("tile-contraction,coalesce,simplify,place-memory"));
  const auto all_replaced = [](std::string text, const std::string& from, const std::string& to) {
    std::size_t count = 0;
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size(), ++count)
      text.replace(at, from.size(), to);
    CAPTURE(from);
    REQUIRE(count > 0);
    return text;
  };
  // What the verifier says, and whatever else it says.
  const auto says = [](const std::string& text, const std::string& reason) {
    const auto module = take(apl::parse_module(text, "broken.aplir"));
    std::string all;
    for (const apl::Diagnostic& error : apl::verify(module)) all += error.message + "\n";
    CAPTURE(all);
    CHECK(all.find("its schedule does not hold: " + reason) != std::string::npos);
  };
  const std::string a_tile = "@ A_s_mem -> {offset: 0; strides: [T_m*R_m, 1]}";
  says(all_replaced(all_replaced(memory, "after_mem : mem@thread", "after_mem : mem@shared"),
                    "alloc(4*R_m*R_n, thread)\n      let {after :", "alloc(4*R_m*R_n, shared)\n      let {after :"),
       "an accumulator does not lie in registers");
  says(all_replaced(memory, "{after_mem : mem@thread} = alloc(4*R_m*R_n", "{after_mem : mem@thread} = alloc(8*R_m*R_n"),
       "an accumulator has other elements than the tile");
  says(replaced(memory, "A_s_2 : [T_q][T_m*R_m]f32 " + a_tile,
                "A_s_2 : [T_q][T_m*R_m]f32 @ B_s_mem -> {offset: 0; strides: [T_m*R_m, 1]}"),
       "the loop moves a tile or an accumulator in memory");
  says(replaced(memory, "{acc_4 : [T_m][T_n][R_m][R_n]f32 @ acc_mem -> {offset: 0;",
                "{acc_4 : [T_m][T_n][R_m][R_n]f32 @ acc_mem -> {offset: 1;"),
       "the remainder moves a tile or an accumulator in memory");
  says(all_replaced(memory, "@ B_s_mem ->", "@ A_s_mem ->"), "two operands have one tile");
  says(replaced(memory, "{A_s_4 : [T_q][T_m*R_m]f32 " + a_tile,
                "{A_s_4 : [T_q][T_m*R_m]f32 @ B_s_mem -> {offset: 0; strides: [T_m*R_m, 1]}"),
       "steps of the depth have an operand's tile in different places");
  says(all_replaced(memory, a_tile, "@ A_s_mem -> {offset: 1; strides: [T_m*R_m, 1]}"),
       "the tile of A: it is not an array of its own in shared memory");
  says(all_replaced(all_replaced(memory, "A_s_mem : mem@shared", "A_s_mem : mem@thread"),
                    "*T_q, shared)\n      let {A_s :", "*T_q, thread)\n      let {A_s :"),
       "the tile of A: it is not an array of its own in shared memory");
  says(all_replaced(memory, a_tile, "@ A_s_mem -> {offset: 0; strides: [1, T_q]}"),
       "the tile of A: its rows are not contiguous in shared memory");
  says(replaced(memory, " @ A_mem -> {offset: 0; strides: [q, 1]}", ""),
       "the tile of A: its array is nowhere in memory");
  const std::string two = print(tiled("tile-contraction,coalesce,simplify,place-memory", kTwoResults));
  CHECK(verdict(two).empty());
  says(replaced(two, "D : [m][n]i64 @ D_mem -> {offset: 0; strides: [n, 1]}} =",
                "D : [m][n]i64 @ D_mem -> {offset: 0; strides: [1, m]}} ="),
       "results do not lie alike in memory");
  says(replaced(two, " @ acc_mem -> {offset: 0; strides: [0, 0, R_n, 1]}, acc_9 :", ", acc_9 :"),
       "a result is no register tile in memory");
}

TEST_CASE("schedule: a pass that breaks it leaves the kernel without, with a remark") {
  apl::PassRegistry registry = apl::PassRegistry::builtin();
  apl::PassInfo breaks;
  breaks.name = "break";
  breaks.summary = "reads a tile at another stride";
  breaks.takes = apl::stage_bit(apl::Stage::kernel);
  breaks.run = [](apl::Module& module, apl::PassContext&) -> apl::Result<apl::Change> {
    // The loop over the depth becomes one with another name for its bound: nothing else changes, but copies are two.
    apl::Function function = *module.functions.front();
    const std::function<apl::BodyPtr(const apl::BodyPtr&)> twice = [&](const apl::BodyPtr& body) {
      std::vector<apl::Stm> stms;
      for (const apl::Stm& stm : body->stms) {
        stms.push_back(stm);
        stms.back().op = apl::map_bodies(stm.op, twice);
        if (!apl::get_if<apl::TileContract>(stm)) continue;
        // A statement behind the contraction.
        const apl::Value again = function.values.add(apl::Type::scalar(apl::ScalarType::i64), "again");
        stms.push_back({.pattern = {again}, .op = apl::SizeExpr{apl::Poly(1)}});
      }
      return apl::make_body(std::move(stms), body->results);
    };
    function.body = twice(function.body);
    module.functions.front() = std::make_shared<const apl::Function>(std::move(function));
    return apl::Change::yes;
  };
  registry.add(breaks);
  apl::Module module = take(apl::parse_module(kProduct, "product.aplir"));
  apl::PipelineOptions options;
  std::vector<apl::Remark> remarks;
  options.remarks = [&](const apl::Remark& remark) { remarks.push_back(remark); };
  take(apl::run_pipeline(module, take(apl::parse_pipeline("tile-contraction,break", registry)), options));
  CHECK(print(module).find("schedule(") == std::string::npos);
  REQUIRE(!remarks.empty());
  CHECK(remarks.back().code == apl::kScheduleDropped);
  CHECK(remarks.back().pass == "break");
  CHECK(remarks.back().message.find("does more than to copy and contract tiles") != std::string::npos);
}

TEST_CASE("choose: alternatives of a contraction are equal, whichever is asked for") {
  apl::Module module = take(apl::parse_module(kProduct, "product.aplir"));
  const std::vector<apl::HostValue> inputs{
      apl::HostValue::array<float>(apl::ScalarType::f32, {3, 70}, std::vector<float>(210, 2)),
      apl::HostValue::array<float>(apl::ScalarType::f32, {70, 2}, std::vector<float>(140, 3))};
  const auto expected = take(apl::interpret(module, "mm", inputs, {}));
  for (const char* pipeline :
       {"tile-contraction{variants}", "tile-contraction{variants},coalesce,simplify,place-memory"}) {
    apl::Module made = module;
    take(apl::run_pipeline(made, take(apl::parse_pipeline(pipeline, apl::PassRegistry::builtin())), {}));
    const std::string text = print(made);
    CHECK(text.find("choose model \"mm.variant\"") != std::string::npos);
    CHECK(print(take(apl::parse_module(text, "again.aplir"))) == text);
    for (const std::int64_t number : {0, 1, 2, 3}) {
      apl::InterpretOptions options;
      if (number > 0) options.parameters["mm.variant"] = number;
      CHECK(take(apl::interpret(made, "mm", inputs, options)) == expected);
    }
  }
}

TEST_CASE("choose: what is no choice is refused") {
  const std::string text = print(tiled("tile-contraction{variants}"));
  const auto verdict_of = [&](const char* from, const char* to) { return verdict(replaced(text, from, to)); };
  CHECK(verdict(text).empty());
  CHECK(verdict_of("      split {", "      tiled {").find("two alternatives have the name 'tiled'") !=
        std::string::npos);
  CHECK(verdict_of("      transposed {", "      transposed when false {").find("may not always run") !=
        std::string::npos);
  CHECK(verdict_of("      split {", "      split when 1i64 {").find("the condition 1i64 has type i64") !=
        std::string::npos);
  CHECK(verdict_of("choose model", "choose cheapest").find("or `first`") != std::string::npos);
}
