// Sparse products in programs, by the runtime's kernels.
#include <doctest/doctest.h>

#include <algorithm>

#include "codegen/codegen.h"
#include "codegen/sparse/products.h"
#include "frontend/frontend.h"
#include "ir/interpret.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/walk.h"
#include "passes/pipeline.h"
#include "runtime/program/program.h"
#include "runtime/sparse/cpu_operands.h"
#include "tests/testing.h"

namespace {

using apl::HostValue;
using apl::Module;
using apl::ScalarType;
using Values = std::vector<HostValue>;

constexpr const char* kSource = R"(
#[sparse(A)]
entry spmm [n][m][b] (A: [n][m]f32) (B: [m][b]f32): [n][b]f32 =
  map (\row -> map (\col -> f32.sum (map2 (*) row col)) (transpose B)) A

#[sparse(A)]
entry halves [n][m][b] (A: [n][m]f16) (B: [m][b]f16): [n][b]f16 =
  map (\row -> map (\col -> f16.f32 (f32.sum (map2 (\a x -> f32.f16 a * f32.f16 x) row col))) (transpose B)) A

#[sparse(A, result)]
entry sampled [n][m][k] (A: [n][m]f32) (X: [n][k]f32) (Y: [m][k]f32): [n][m]f32 =
  map2 (\row x -> map2 (\a y -> a * f32.sum (map2 (*) x y)) row Y) A X

#[sparse(A)]
entry both [n][m][k][b] (A: [n][m]f32) (X: [n][k]f32) (Y: [m][k]f32) (V: [m][b]f32): [n][b]f32 =
  let S = map2 (\row x -> map2 (\a y -> a * f32.sum (map2 (*) x y)) row Y) A X
  in map (\row -> map (\col -> f32.sum (map2 (*) row col)) (transpose V)) S

#[sparse(A)]
entry vector [n][m] (A: [n][m]f32) (x: [m]f32): [n]f32 =
  map (\row -> f32.sum (map2 (*) row x)) A

#[sparse(A)]
entry integers [n][m][b] (A: [n][m]i64) (B: [m][b]i64): [n][b]i64 =
  map (\row -> map (\col -> i64.sum (map2 (*) col row)) (transpose B)) A

#[sparse(A)]
entry batches [n][m][b] (A: [n][m]f32) (B: [3][m][b]f32): [3][n][b]f32 =
  map (\each -> map (\row -> map (\col -> f32.sum (map2 (*) row col)) (transpose each)) A) B

#[sparse(A)]
entry layer [n][m][b] (A: [n][m]f16) (B: [m][b]f16) (bias: [b]f16) (scale: [n]f16) (most: f16): [n][b]f16 =
  map2 (\row s ->
          map2 (\col c ->
                  let sum = c + s * f16.f32 (f32.sum (map2 (\a x -> f32.f16 a * f32.f16 x) row col))
                  in if sum < 0 then 0 else f16.min most sum)
               (transpose B) bias)
       A scale

#[sparse(A, result)]
entry scores [n][m][k] (A: [n][m]f32) (X: [n][k]f32) (Y: [m][k]f32) (u: [n]f32) (w: [m]f32) (by: f32): [n][m]f32 =
  map3 (\row x r ->
          map3 (\a y c ->
                  let s = by * f32.sum (map2 (*) x y) - r + c
                  in if a == 0 then 0 else a * (if s < 0 then 0.25 * s else s))
               row Y w)
       A X u

#[sparse(A, result)]
entry half_scores [n][m][k] (A: [n][m]f16) (X: [n][k]f16) (Y: [m][k]f16): [n][m]f16 =
  map2 (\row x ->
          map2 (\a y -> if a == 0
                        then 0
                        else f16.f32 (f32.f16 a + 0.125 * f32.sum (map2 (\p q -> f32.f16 p * f32.f16 q) x y)))
               row Y)
       A X

#[sparse(A)] #[bf16(A, B)]
entry brain [n][m][b] (A: [n][m]f32) (B: [m][b]f32): [n][b]f32 =
  map (\row -> map (\col -> f32.sum (map2 (*) row col)) (transpose B)) A

#[sparse(A)]
entry wide [n][m][b] (A: [n][m]f16) (B: [m][b]f16): [n][b]f32 =
  map (\row -> map (\col -> f32.sum (map2 (\a x -> f32.f16 a * f32.f16 x) row col)) (transpose B)) A

#[sparse(A)] #[bf16(A, B)]
entry brain_layer [n][m][b] (A: [n][m]f32) (B: [m][b]f32) (bias: [b]f32): [n][b]f32 =
  map (\row -> map2 (\col c -> f32.max 0 (c + f32.sum (map2 (*) row col))) (transpose B) bias) A

#[sparse(A, result)] #[bf16(A, X, Y)]
entry brain_sampled [n][m][k] (A: [n][m]f32) (X: [n][k]f32) (Y: [m][k]f32): [n][m]f32 =
  map2 (\row x -> map2 (\a y -> a * f32.sum (map2 (*) x y)) row Y) A X

#[sparse(A)]
entry heads [n][m][k][b] (A: [n][m]f32) (X: [3][n][k]f32) (Y: [3][m][k]f32) (Z: [m][k]f32) (V: [3][m][b]f32)
    : [3][n][b]f32 =
  map3 (\X Y V ->
          let S = map2 (\row x -> map2 (\a y -> a * f32.sum (map2 (*) x y)) row Y) A X
          let T = map3 (\row s x -> map3 (\a s z -> if a == 0 then 0 else f32.max s (f32.sum (map2 (*) x z))) row s Z)
                       A S X
          in map2 (\row t -> map (\col -> t + f32.sum (map2 (*) row col)) (transpose V)) T (map f32.sum S))
       X Y V
)";

struct Compiled {
  Module source, memory;
  std::string host;
};

Compiled compiled(apl::Target target = apl::cuda_target(), const char* text = kSource) {
  Compiled result;
  auto module = apl::compile({"sparse.fut", text}, {});
  REQUIRE(module);
  result.source = result.memory = std::move(*module);
  const apl::Machine machine = !target.on_device() ? apl::Machine::cpu : apl::Machine::gpu;
  const auto pipeline =
      apl::parse_pipeline(apl::standard_pipeline(apl::Stage::memory, machine), apl::PassRegistry::builtin());
  REQUIRE(apl::run_pipeline(result.memory, *pipeline, {}));
  auto generated = apl::generate(result.memory, target);
  REQUIRE(generated);
  result.host = generated->host;
  return result;
}

// For C programs: what stands behind the sum is a loop over the results.
constexpr const char* kResidual = R"(
#[sparse(A)]
entry residual [n][m][b] (A: [n][m]f32) (B: [m][b]f32) (H: [n][b]f32) (s: [n]f32): [n][b]f32 =
  map3 (\row hs r -> map2 (\col h -> f32.max 0 (h - r * f32.sum (map2 (*) row col))) (transpose B) hs) A H s
)";

// Without the program's own kernels: what is right comes from the runtime.
std::string without_own(std::string host) {
  for (std::size_t at = 0; (at = host.find("_made) {", at)) != std::string::npos; ++at)
    host.replace(host.rfind("if (!", at), at + 8 - host.rfind("if (!", at), "if (0) {");
  return host;
}

Values inputs_of(const Module& module, const std::string& entry, const apl::testing::Sizes& sizes) {
  const apl::Function& function = *module.find_entry(entry);
  apl::testing::Sizes own;
  for (const apl::Value size : function.sizes) own.insert(*sizes.find(function.values.name(size)));
  auto values = apl::testing::random_arguments(function, own, 3);
  REQUIRE(values);
  // Two of three elements are absent, so that sums stay exact in half precision, too.
  for (std::int64_t k = 0; k < values->front().element_count(); ++k)
    if (k % 3 != 0) values->front().set(k, apl::Scalar::zero(values->front().type));
  return *std::move(values);
}

Values inputs_for(const Module& module, const std::string& entry, std::int64_t scale) {
  // A vector alone needs more non-zeros: 65536 of them, some random elements being 0.
  if (entry == "vector") return inputs_of(module, entry, {{"n", 250 * scale}, {"m", 700}});
  return inputs_of(module, entry, {{"n", 40 * scale}, {"m", 56 * scale}, {"b", 40}, {"k", 40}});
}

}  // namespace

TEST_CASE("sparse products and SDDMM of a GPU's programs ask the runtime first") {
  const std::string host = compiled().host;
  for (const char* call : {"backend->sparse_product", "backend->sparse_sddmm_product"}) {
    std::size_t count = 0;
    for (std::size_t at = 0; (at = host.find(call, at)) != std::string::npos; ++at) ++count;
    INFO(call);
    CHECK(count >= 4);  // asked whether it is there, and called, in two entries or more
  }
}

TEST_CASE("the runtime's kernels give what the program's own do") {
  const Compiled program = compiled();
  apl::ProgramOptions options;
  options.backend = "emulate";
  auto loaded = apl::Program::load(without_own(program.host), options);
  REQUIRE(loaded);
  for (const char* entry : {"spmm", "halves", "sampled", "both", "vector", "integers", "batches", "layer", "scores",
                            "half_scores", "heads", "brain", "wide", "brain_layer", "brain_sampled"}) {
    INFO(std::string(entry));
    const Values inputs = inputs_for(program.source, entry, 2);
    const auto expected = apl::interpret(program.source, entry, inputs);
    REQUIRE(expected);
    for (int call = 0; call < 2; ++call) {
      const auto got = loaded->call(entry, inputs);
      REQUIRE_MESSAGE(got, (got ? std::string() : got.error().message));
      CHECK(apl::testing::same_results(*got, *expected));
    }
  }
}

TEST_CASE("what the runtime has no kernels for is refused with the condition that fails") {
  struct Case {
    const char *text, *why;
  };
  for (const Case& one : {
           Case{"entry e [n][m][b] (A: [n][m]f32) (B: [b][m]f32): [n][b]f32 = map (\\r -> map (\\c -> f32.sum (map2 "
                "(*) r "
                "c)) B) A",
                "rows of the dense operand and of the result do not both lie side by side in memory"},
           Case{"entry e [n][m][b] (A: [n][m]f32) (B: [m][b]f32): [n][b]f32 = map (\\r -> map (\\c -> reduce f32.max 0 "
                "(map2 (*) r c)) (transpose B)) A",
                "its operator is not a plain sum"},
           Case{"entry e [n][m][b] (A: [n][m]f32) (B: [m][b]f32): [n][b]f32 = map (\\r -> map (\\c -> f32.sum (map2 "
                "(\\a "
                "x -> a * f32.sqrt x) r c)) (transpose B)) A",
                "the other factor is computed in the sum"},
           Case{"entry e [n][m][b] (A: [n][m]f32) (B: [n][b]f32): [m][b]f32 = map (\\r -> map (\\c -> f32.sum (map2 "
                "(*) r "
                "c)) (transpose B)) (transpose A)",
                "its terms are not the non-zeros of a row, one after the other"},
           Case{
               "entry e [n][m][k] (A: [n][m]f32) (X: [n][k]f32) (Y: [m][k]f32): [n][m]f32 = map2 (\\r x -> map2 (\\a y "
               "-> a * f32.sum (map2 (\\p q -> p * f32.exp q) x y)) r Y) A X",
               "the factors are computed in the kernel"},
           Case{
               "entry e [n][m][k] (A: [n][m]f32) (X: [n][k]f32) (Y: [m][k]f32): [n][m]f64 = map2 (\\r x -> map2 (\\a y "
               "-> f64.f32 (a * f32.sum (map2 (*) x y))) r Y) A X",
               "there are no kernels for its types: all must be one, or f16 or bf16 with sums in f32"},
           Case{
               "entry e [n][m][k] (A: [n][m]f32) (X: [k][n]f32) (Y: [m][k]f32): [n][m]f32 = map2 (\\r x -> map2 (\\a y "
               "-> a * f32.sum (map2 (*) x y)) r Y) A (transpose X)",
               "rows of both dense operands do not lie side by side in memory"},
           Case{"entry e [n][m][k] (A: [n][m]i32) (X: [n][k]i32) (Y: [m][k]i32) (d: i32): [n][m]i32 = map2 (\\r x -> "
                "map2 "
                "(\\a y -> a * (i32.sum (map2 (*) x y) / d)) r Y) A X",
                "code after the sum can fail"},
           Case{"entry e [n][m] (A: [n][m]f32) (x: [n]f32): [n][m]f32 = map2 (\\r x -> map (\\a -> a * x) r) A x",
                "it has no sum: each of its numbers comes from one non-zero"},
       }) {
    INFO(one.text);
    auto module = apl::compile({"sparse.fut", std::string("#[sparse(A)] ") + one.text}, {});
    REQUIRE(module);
    const auto pipeline = apl::parse_pipeline(apl::standard_pipeline(apl::Stage::memory), apl::PassRegistry::builtin());
    REQUIRE(apl::run_pipeline(*module, *pipeline, {}));
    const apl::Function& function = *module->find_entry("e");
    std::string why = "no kernel over non-zeros";
    for (const apl::Stm& stm : function.body->stms) {
      if (!apl::get_if<apl::SegOp>(stm) || stm.attributes.empty()) continue;
      why.clear();
      const bool sddmm = stm.attributes.front().arguments.back() == "sddmm";
      if (sddmm) CHECK(!apl::lower::find_sparse_sddmm(stm, function, &why));
      if (!sddmm) CHECK(!apl::lower::find_sparse_product(stm, function, &why));
    }
    CHECK(why == one.why);
  }
}

TEST_CASE("small products are the program's own") {
  const Compiled program = compiled();
  apl::ProgramOptions options;
  options.backend = "emulate";
  auto loaded = apl::Program::load(program.host, options);
  REQUIRE(loaded);
  const Values inputs = inputs_for(program.source, "spmm", 1);
  const auto expected = apl::interpret(program.source, "spmm", inputs), got = loaded->call("spmm", inputs);
  REQUIRE(expected);
  REQUIRE(got);
  CHECK(apl::testing::same_results(*got, *expected));
}

TEST_CASE("C programs leave products of every type to the runtime: rows of sums, rounded or not, and SDDMM") {
  std::string text = kSource;
  for (const char* type : {"i8", "u16", "i32", "u64", "f64"}) {
    std::string entry = R"(
#[sparse(A)]
entry spmm_T [n][m][b] (A: [n][m]T) (B: [m][b]T): [n][b]T =
  map (\row -> map (\col -> reduce (+) 0 (map2 (*) row col)) (transpose B)) A
)";
    for (std::size_t at = 0; (at = entry.find('T', at)) != std::string::npos;) entry.replace(at, 1, type);
    text += entry;
  }
  text += kResidual;
  const Compiled program = compiled(apl::c_target(), text.c_str());
  apl::ProgramOptions options;
  options.backend = "c";
  options.c_flags = {"-O0"};
  auto loaded = apl::Program::load(without_own(program.host), options);
  REQUIRE_MESSAGE(loaded, (loaded ? std::string() : loaded.error().message));
  for (const char* entry :
       {"spmm", "halves", "sampled", "both", "vector", "batches", "brain", "wide", "brain_sampled", "brain_layer",
        "residual", "scores", "heads", "spmm_i8", "spmm_u16", "spmm_i32", "spmm_u64", "spmm_f64"}) {
    INFO(entry);
    const Values inputs = inputs_for(program.source, entry, 1);
    const auto expected = apl::interpret(program.source, entry, inputs);
    REQUIRE(expected);
    const auto got = loaded->call(entry, inputs);
    REQUIRE_MESSAGE(got, (got ? std::string() : got.error().message));
    CHECK(apl::testing::same_results(*got, *expected));
  }
}

TEST_CASE("sums are not left where code after them reads another array") {
  const std::string text = apl::print(compiled(apl::c_target(), kResidual).memory);
  std::string in_place = text;
  const std::string place = "@ xs_mem -> ", other = "@ H_mem -> ";
  for (std::size_t at = 0; (at = in_place.find(place, at)) != std::string::npos; at += other.size())
    in_place.replace(at, place.size(), other);
  REQUIRE(in_place != text);
  const auto why_not = [](const std::string& program) {
    const auto module = apl::parse_module(program, "residual.aplir");
    REQUIRE(module);
    const apl::Function& function = *module->find_entry("residual");
    std::string why;
    for (const apl::Stm& stm : function.body->stms) {
      if (stm.attributes.empty()) continue;
      const bool fits = apl::lower::find_host_product(stm, function, &why).has_value();
      CHECK(fits == why.empty());
    }
    return why;
  };
  CHECK(why_not(text).empty());
  CHECK(why_not(in_place) == "the results take the place of an array that is read after the sums");
}

TEST_CASE("C programs keep what they make of an argument, and pack it when that pays") {
  constexpr std::int64_t kRows = 200, kColumns = 96, kWidth = 64;
  std::vector<std::int64_t> start = {0};
  std::vector<std::int32_t> column;
  std::vector<float> values, b(static_cast<std::size_t>(kColumns * kWidth), 1.0F);
  // Neighbouring rows have the same columns, so that blocks pay.
  for (std::int64_t row = 0; row < kRows; ++row) {
    for (std::int32_t k = 0; k < 12; ++k) column.push_back(static_cast<std::int32_t>(row / 8) % 8 + 8 * k);
    start.push_back(static_cast<std::int64_t>(column.size()));
  }
  values.assign(column.size(), 2.0F);
  std::vector<float> c(static_cast<std::size_t>(kRows * kWidth));
  const apl_sparse_product product{.type = APL_F32,
                                   .is_wide = 0,
                                   .rows = kRows,
                                   .columns = kColumns,
                                   .nonzeros = start.back(),
                                   .width = kWidth,
                                   .row_start = start.data(),
                                   .column = column.data(),
                                   .values = values.data(),
                                   .b = b.data(),
                                   .b_row = kWidth,
                                   .c = c.data(),
                                   .c_row = kWidth,
                                   .epilogue = nullptr};
  apl_sparse_cpu_operands operands{};
  operands.threads = 2;
  const auto run = [&](std::uint64_t pattern, std::uint64_t whose) {
    std::int32_t threads = 0;
    std::fill(c.begin(), c.end(), -1.0F);
    REQUIRE(apl_sparse_cpu_product(&operands, &product, pattern, whose, nullptr, &threads) == APL_SPARSE_FINE);
    if (threads > 0) apl_sparse_cpu_work(&operands.call);
    return threads;
  };
  CHECK(run(0, 0) == 0);  // an array that is gone after the call
  REQUIRE(run(7, 8) > 0);
  CHECK(operands.known[0].tiles == nullptr);
  for (int call = 0; call < 10; ++call) REQUIRE(run(7, 8) > 0);
  CHECK(operands.count == 1);
  CHECK(operands.known[0].tiles != nullptr);
  CHECK(std::all_of(c.begin(), c.end(), [](float x) { return x == 24.0F; }));
  // Other values come into the same tiles.
  for (float& value : values) value = 3.0F;
  run(7, 0);
  CHECK(std::all_of(c.begin(), c.end(), [](float x) { return x == 36.0F; }));
  // Many arguments: the oldest is forgotten.
  for (std::uint64_t pattern = 20; pattern < 30; ++pattern) run(pattern, 0);
  CHECK(operands.count == APL_SPARSE_CPU_KNOWN);
  CHECK(operands.known[0].pattern == 22);
  apl_sparse_cpu_forget(&operands);
}
