// Kernels as files of plain CUDA: nvcc compiles them as they are; in emulation the same kernels and the same host
// function give what the interpreter gives.
#include "codegen/emit/kernel_file.h"

#include <fmt/format.h>

#include <array>
#include <numeric>

#include "codegen/emit/device_subset.h"
#include "codegen/emit/host_subset.h"
#include "runtime/backends/toolchain.h"
#include "runtime/embed.h"
#include "tests/unit/codegen/emitted.h"
#include "tests/unit/codegen/kernel_files.h"
#include "tests/unit/skip.h"

namespace {

using emitted::contains;
using emitted::take;
using kernel_files::Emulated;

apl::KernelFile file_of(apl::Module module, const std::string& entry, const apl::CodegenOptions& options = {}) {
  return take(apl::generate_kernel_file(emitted::at(apl::Stage::memory, std::move(module)), entry, options));
}

std::vector<float> some_floats(std::size_t count, int seed) {
  std::vector<float> numbers(count);
  for (std::size_t k = 0; k < count; ++k) numbers[k] = static_cast<float>((static_cast<int>(k) * 7 + seed) % 11 - 5);
  return numbers;
}

apl::Module sum_of_squares() {
  return emitted::compiled("norm.fut",
                           "entry norm [n] (xs: [n]f32) (scale: f32) : (f32, [n]f32) =\n"
                           "  let s = f32.sum (map (\\x -> x * x) xs)\n"
                           "  in (s, map (\\x -> x * scale / s) xs)\n");
}

}  // namespace

TEST_CASE("kernel file: a product launched by its function is right for sizes around its tiles") {
  apl::CodegenOptions options;
  options.sizes = {{"a", 40}, {"b", 24}, {"q", 20}};
  Emulated emulated(file_of(emitted::example("mm0"), "mm0", options));
  auto mm0 =
      emulated.function<int (*)(std::int64_t, std::int64_t, std::int64_t, const void*, const void*, void*, void*)>(
          "mm0");
  for (const auto& [a, b, q] :
       std::vector<std::array<std::size_t, 3>>{{40, 24, 20}, {1, 1, 1}, {33, 7, 5}, {3, 0, 2}, {2, 3, 0}}) {
    CAPTURE(a);
    CAPTURE(b);
    CAPTURE(q);
    const auto x = some_floats(a * q, 1), y = some_floats(b * q, 2);
    void* z = emulated.scratch(a * b);
    REQUIRE(mm0(static_cast<std::int64_t>(a), static_cast<std::int64_t>(b), static_cast<std::int64_t>(q),
                emulated.array(x), emulated.array(y), z, nullptr) == 0);
    for (std::size_t i = 0; i < a; ++i)
      for (std::size_t j = 0; j < b; ++j) {
        float sum = 0;
        for (std::size_t k = 0; k < q; ++k) sum += x[i * q + k] * y[j * q + k];
        REQUIRE(static_cast<const float*>(z)[i * b + j] == sum);
      }
  }
}

TEST_CASE("kernel file: temporaries are released, scalar results are the host's") {
  const apl::KernelFile file = file_of(sum_of_squares(), "");
  CHECK(contains(file.host, "if (bytes < 0) return cudaErrorMemoryAllocation;"));
  Emulated emulated(file);
  auto norm = emulated.function<int (*)(std::int64_t, const void*, float, float*, void*, void*)>("norm");
  const auto x = some_floats(100, 3);
  float expected = 0, sum = 0;
  for (float number : x) expected += number * number;
  void* y = emulated.scratch(100);
  REQUIRE(norm(100, emulated.array(x), 2.0f, &sum, y, nullptr) == 0);
  CHECK(sum == expected);
  CHECK(static_cast<const float*>(y)[1] == x[1] * 2.0f / expected);
  CHECK(emulated.allocated == 0);
}

TEST_CASE("kernel file: the head says what the contraction is and what was chosen, for the sizes that are given") {
  const apl::Module module = emitted::example("mm0");
  const std::string large = file_of(module, "mm0").text;
  CHECK(contains(large, "xs[a, b] from X[a, q], Y[b, q], reduced over q"));
  CHECK(contains(large, "elements apart: X: a by q, q by 1; Y: b by q, q by 1"));
  CHECK(contains(large, "const int64_t T_a = 32;"));
  CHECK(contains(large,
                 "cudaError_t mm0(int64_t a, int64_t b, int64_t q, const float *X, const float *Y, float *result, "));
  apl::CodegenOptions options;
  options.sizes = {{"a", 8}, {"b", 8}, {"q", 8}};
  CHECK(file_of(module, "mm0", options).text != large);
  // Nothing of ours but what is in the file.
  CHECK_FALSE(contains(large, "device.h"));
  CHECK_FALSE(contains(large, "APL_EMULATE"));
  CHECK_FALSE(contains(large, "apl_atomic_add"));
}

TEST_CASE("kernel file: what cannot be one is refused, with the reason") {
  const auto refusal = [](apl::Module module, const std::string& entry) {
    auto file = apl::generate_kernel_file(emitted::at(apl::Stage::memory, std::move(module)), entry, {});
    REQUIRE_FALSE(file);
    return file.error().message;
  };
  CHECK(contains(refusal(emitted::example("mm0"), ""), "there are: mm0, mm0_i32"));
  CHECK(contains(refusal(emitted::example("mm0"), "mm1"), "no entry `mm1`"));
}

TEST_CASE("kernel file: of a module with variants of a contraction it has the tiled one") {
  apl::Module module = emitted::example("mm0", "mm0");
  auto pipeline = take(apl::parse_pipeline(apl::standard_pipeline(apl::Stage::memory, apl::Machine::gpu, true),
                                           apl::PassRegistry::builtin()));
  take(apl::run_pipeline(module, pipeline, {}));
  const auto memory = take(apl::generate_kernel_file(module, "mm0", {}, apl::cuda_target()));
  CHECK_FALSE(contains(memory.host, "ctx"));
  Emulated emulated(memory);
  const auto X = apl::HostValue::array<float>(apl::ScalarType::f32, {2, 3}, {1, 2, 3, 4, 5, 6});
  const auto Y = apl::HostValue::array<float>(apl::ScalarType::f32, {1, 3}, {1, 0, -1});
  CHECK(emulated.call(*module.find_entry("mm0"), {X, Y}).at(0) ==
        apl::HostValue::array<float>(apl::ScalarType::f32, {2, 1}, {-2, -2}));
}

TEST_CASE("kernel file: a plan whose kernel spills gives way to the next, and the head says so") {
  const auto module = emitted::at(apl::Stage::memory, emitted::example("mm0", "mm0"));
  const auto plan_of = [](const apl::KernelFile& file) {
    const std::size_t at = file.text.find("  plan for ");
    return file.text.substr(at, file.text.find('\n', at) - at);
  };
  apl::CodegenOptions options;
  options.sizes = {{"a", 4096}, {"b", 4096}, {"q", 4096}};
  const auto with = [&](const apl::SpillCheck& check) {
    return take(apl::generate_kernel_file(module, "mm0", options, apl::cuda_target(), check));
  };
  const apl::KernelFile unasked = with(nullptr);
  CHECK(contains(unasked.text, "no compiler was asked whether its registers spill"));
  const apl::KernelFile without = with([](const std::string&) -> apl::Result<std::map<std::string, int>> {
    return apl::make_error(apl::Code::unsupported_backend, {}, "there is none");
  });
  CHECK(without.text == unasked.text);

  // The first `spilling` texts that are asked about spill.
  int asked = 0;
  const auto with_spilling = [&](int spilling) {
    asked = 0;
    return with([&, spilling](const std::string& kernels) -> apl::Result<std::map<std::string, int>> {
      const std::size_t at = kernels.find("mm0_");
      return std::map<std::string, int>{
          {kernels.substr(at, kernels.find('(', at) - at), asked++ < spilling ? 100 + asked : 0}};
    });
  };
  const apl::KernelFile fine = with_spilling(0);
  CHECK(asked == 1);
  CHECK(plan_of(fine) == plan_of(unasked));
  CHECK(contains(fine.text, "no registers spill, by ptxas\n"));
  const apl::KernelFile second = with_spilling(1), third = with_spilling(2);
  CHECK(asked == 3);
  CHECK(plan_of(second) != plan_of(fine));
  CHECK(plan_of(third) != plan_of(second));
  CHECK(contains(third.text, "as those of 2 plans that the model prefers do: 101, 102 bytes a thread"));
  // Where all do, the first one stays.
  const apl::KernelFile none = with_spilling(1000);
  CHECK(asked > 3);
  CHECK(plan_of(none) == plan_of(fine));
  CHECK(contains(none.text, "bytes a thread, and so do those of all other plans"));
  const auto failed = apl::generate_kernel_file(module, "mm0", options, apl::cuda_target(),
                                                [](const std::string&) -> apl::Result<std::map<std::string, int>> {
                                                  return apl::make_error(apl::Code::machine_io, {}, "a full disk");
                                                });
  REQUIRE_FALSE(failed);
  CHECK(failed.error().code == apl::Code::machine_io);
}

TEST_CASE("kernel file: a bias is read once for each column, with a guard, and results without one") {
  const auto file = file_of(emitted::compiled("mm.fut",
                                              "entry mm [n][k][m] (A: [n][k]f32) (B: [k][m]f32) (c: [m]f32) (r: [n]f32)"
                                              " : [n][m]f32 =\n"
                                              "  map2 (\\a s -> map2 (\\b x -> s * f32.sum (map2 (*) a b) + x)"
                                              " (transpose B) c) A r\n"),
                            "mm");
  const std::size_t after = file.kernels.find("// code after the reduction"), end = file.kernels.find("// write-back");
  REQUIRE(after < end);
  const std::string text = file.kernels.substr(after, end - after);
  const auto count = [&](std::string_view what) {
    int found = 0;
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
    return found;
  };
  CHECK(count("= c_1(") == 1);
  CHECK(count("= r_1(") == 1);
  CHECK(count("if (") == 2);
  CHECK(contains(text, "x_of_column[j]"));
  CHECK(contains(text, "s_of_row[0]"));
}

TEST_CASE("kernel file: loops of the host exchange their blocks, and copy what the caller gets") {
  // The loop's array starts as an argument, which stays as it was; the number of rounds is the host's.
  const apl::Module module = emitted::compiled("f.fut",
                                               "entry f [n] (steps: i64) (xs: [n]f32) : ([n]f32, f32) =\n"
                                               "  let ys = loop ys = xs for i < steps do\n"
                                               "    map2 (\\y z -> y + z) ys (rotate (i + 1) ys)\n"
                                               "  in (ys, f32.sum ys)\n");
  const apl::KernelFile file = file_of(module, "f");
  CHECK(contains(file.host, "host_swap("));
  Emulated emulated(file);
  auto f = emulated.function<int (*)(std::int64_t, std::int64_t, const void*, void*, float*, void*)>("f");
  for (const std::int64_t steps : {0, 1, 4})
    for (const std::size_t n : {0, 1, 7}) {
      CAPTURE(steps);
      CAPTURE(n);
      std::vector<float> expected = some_floats(n, 1);
      void* const xs = emulated.array(expected);
      void* const result = emulated.scratch(n);
      float sum = 0;
      REQUIRE(f(static_cast<std::int64_t>(n), steps, xs, result, &sum, nullptr) == 0);
      for (std::int64_t step = 0; step < steps; ++step) {
        const std::vector<float> before = expected;
        for (std::size_t k = 0; k < n; ++k)
          expected[k] = before[k] + before[(k + static_cast<std::size_t>(step) + 1) % n];
      }
      std::vector<float> got(n), argument(n);
      emulated.read(got.data(), result, n * sizeof(float));
      emulated.read(argument.data(), xs, n * sizeof(float));
      CHECK(got == expected);
      CHECK(argument == some_floats(n, 1));
      CHECK(sum == std::accumulate(expected.begin(), expected.end(), 0.0f));
      CHECK(emulated.allocated == 0);
    }
}

TEST_CASE("kernel file: a failed check ends it before the host acts on what is missing") {
  // The loop would not end if the number that the failing kernel does not write were 0.
  const apl::Module module = emitted::compiled("f.fut",
                                               "entry f [n] (xs: [n]i32) (is: [n]i64) : i32 =\n"
                                               "  loop s = 0 while s < 10 do s + i32.sum (map (\\i -> xs[i]) is)\n");
  const apl::KernelFile file = file_of(module, "f");
  Emulated emulated(file);
  const auto call = [&](const std::vector<std::int64_t>& is) {
    return emulated.call(*emitted::at(apl::Stage::memory, module).find_entry("f"),
                         {apl::HostValue::array<std::int32_t>(apl::ScalarType::i32, {3}, {1, 2, 3}),
                          apl::HostValue::array(apl::ScalarType::i64, {3}, is)});
  };
  CHECK(call({0, 1, 2}).at(0).at(0).as_int() == 12);
  CHECK(emulated.status == 0);
  call({0, 1, 3});
  CHECK(emulated.status == 1);  // cudaErrorInvalidValue
  CHECK(emulated.failure() != 0);
  CHECK(emulated.allocated == 0);
}

TEST_CASE("kernel file: results whose size the entry decides are allocated, and the caller's") {
  const apl::Module module = emitted::compiled("f.fut", "entry f (xs: []i32) : []i32 = filter (> 0) xs");
  const apl::KernelFile file = file_of(module, "f");
  CHECK(contains(file.host, "int32_t **result, int64_t *result_shape"));
  Emulated emulated(file);
  const auto memory = emitted::at(apl::Stage::memory, module);
  for (const std::vector<std::int32_t>& xs : std::vector<std::vector<std::int32_t>>{{}, {-1}, {3, -1, 0, 7, 2}}) {
    const auto given = apl::HostValue::array(apl::ScalarType::i32, {static_cast<std::int64_t>(xs.size())}, xs);
    const auto results = emulated.call(*memory.find_entry("f"), {given});
    REQUIRE(emulated.status == 0);
    std::vector<std::int32_t> expected = xs;
    std::erase_if(expected, [](std::int32_t x) { return x <= 0; });
    CHECK(results.at(0) ==
          apl::HostValue::array(apl::ScalarType::i32, {static_cast<std::int64_t>(expected.size())}, expected));
    CHECK(emulated.allocated == 0);
  }
}

TEST_CASE("scalar.h: what host code calls is a part that stands alone, without macros") {
  const std::string header(apl::scalar_header_text());
  CHECK(apl::host_subset(header, {"nothing"}).empty());
  const std::string some = apl::host_subset(header, {"apl_clz_i64", "apl_mod_u8", "apl_from_float_i32"});
  CHECK(contains(some, "inline int64_t apl_clz_i64(int64_t a) {"));
  CHECK(contains(some, "inline uint8_t apl_mod_u8(uint8_t a, uint8_t b) {"));
  CHECK(contains(some, "if (x <= (double)(INT32_MIN)) return (int32_t)(INT32_MIN);"));
  for (const char* other : {"#", "APL_", "clz_i32", "static"}) CHECK_MESSAGE(!contains(some, other), other);
  // What is called stands before.
  const std::string quot = apl::host_subset(header, {"apl_quot_u32"});
  CHECK(quot.find("apl_div_u32(uint32_t a") < quot.find("apl_quot_u32(uint32_t a"));
}

TEST_CASE("device.h: what kernels use is a part that stands alone") {
  const std::string none = apl::device_subset(apl::device_header_text(), "nothing", *apl::find_dialect("cuda"));
  CHECK(none.empty());
  const std::string some = apl::device_subset(
      apl::device_header_text(), "apl_atomic_add(C, i, x); apl_floor_div(a, b);", *apl::find_dialect("cuda"));
  for (const char* needed :
       {"apl_atomic_##name", "APL_ATOMIC(add", "APL_BINARY(apl_floor_div", "APL_BINARY(apl_div", "struct apl_result"})
    CHECK_MESSAGE(contains(some, needed), needed);
  for (const char* other :
       {"APL_ATOMIC(max", "apl_cp_async", "APL_EMULATE", "struct apl_half {", "apl_mma", "APL_WARP"})
    CHECK_MESSAGE(!contains(some, other), other);
  // Conditions are whole, and so is what stands in them.
  const std::string product =
      apl::device_subset(apl::device_header_text(), "apl_mma<apl_half>(s, a, b);", *apl::find_dialect("cuda"));
  for (const char* needed : {"#ifndef APL_WARP\n#define APL_WARP 32\n#endif\n", "#define APL_MMA(name)", "apl_lane()"})
    CHECK_MESSAGE(contains(product, needed), needed);
  CHECK(!contains(product, "_H\n"));
}

TEST_CASE("kernel file: nvcc compiles it, also two of them in one file" * doctest::test_suite("nvcc")) {
  if (auto found = apl::run_tool({"nvcc", "--version"}); !found) {
    return tests::skip(found.error().message);
  }
  auto folder = take(apl::TemporaryFolder::make("/tmp"));
  std::ofstream all(folder.path() + "/all.cu");
  all << file_of(emitted::example("mm0"), "mm0").text << file_of(sum_of_squares(), "").text
      << file_of(emitted::compiled("f.fut", "entry at [n] (xs: [n]f16) (is: [n]i64) : [n]f16 = map (\\i -> xs[i]) is"),
                 "")
             .text
      << file_of(emitted::compiled("product.fut",
                                   "entry product [n][m][k] (A: [n][k]f16) (B: [k][m]f16) : [n][m]f32 =\n"
                                   "  map (\\r -> map (\\c -> f32.sum (map2 (\\x y -> f32.f16 x * f32.f16 y) r c))\n"
                                   "    (transpose B)) A\n"),
                 "")
             .text
      << file_of(
             emitted::compiled("bytes.fut",
                               "entry bytes [n][m][k] (A: [n][k]i8) (B: [m][k]u8) : [n][m]i32 =\n"
                               "  map (\\r -> map (\\c -> i32.sum (map2 (\\x y -> i32.i8 x * i32.u8 y) r c)) B) A\n"),
             "")
             .text
      << file_of(emitted::compiled("three.fut",
                                   "#[f32_3xtf32]\nentry three [n][m][k] (A: [n][k]f32) (B: [m][k]f32) : [n][m]f32 =\n"
                                   "  map (\\r -> map (\\c -> f32.sum (map2 (*) r c)) B) A\n"),
                 "")
             .text
      << file_of(emitted::compiled("kept.fut", "entry kept [n] (xs: [n]i32) = filter (> 3) xs"), "").text
      << file_of(emitted::compiled("parted.fut", "entry parted [n] (xs: [n]i32) = partition (> 3) xs"), "").text
      << file_of(emitted::compiled(
                     "attended.fut",
                     "entry attended [n][m][d] (q: [n][d]f32) (k: [m][d]f32) (v: [m][d]f32) =\n"
                     "  let s = map (\\qi -> map (\\ki -> f32.sum (map2 (*) qi ki)) k) q\n"
                     "  let p = map (\\r -> let most = f32.maximum r let e = map (\\x -> f32.exp (x - most)) r\n"
                     "                    let z = f32.sum e in map (/ z) e) s\n"
                     "  in map (\\r -> map (\\c -> f32.sum (map2 (*) r c)) (transpose v)) p\n"),
                 "")
             .text
      << file_of(emitted::compiled("main.fut", "entry main [n] (NULL: [n]i32) : [n]i32 = map (+ 1) NULL"), "").text
      << "int main() { return mm0(0, 0, 0, nullptr, nullptr, nullptr, nullptr); }\n";
  all.close();
  // Whether it compiles; as it is optimised for use, NVRTC compiles kernels in other tests. That takes thrice as long.
  auto compiled = apl::run_tool({"nvcc", "-std=c++17", "-arch=sm_90", "-Werror", "all-warnings", "-Xcicc", "-O1",
                                 "-Xptxas", "-O0", "-c", folder.path() + "/all.cu", "-o", folder.path() + "/all.o"});
  CHECK_MESSAGE(compiled, compiled.error().message);
}
