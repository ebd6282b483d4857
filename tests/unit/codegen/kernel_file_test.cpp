// Kernels as files of plain CUDA: nvcc compiles them as they are; in emulation the same kernels and the same host
// function give what the interpreter gives.
#include "codegen/emit/kernel_file.h"

#include <fmt/format.h>

#include <array>
#include <cstring>

#include "codegen/emit/device_subset.h"
#include "ir/host_value.h"
#include "runtime/backends/emulate/machine.h"
#include "runtime/backends/toolchain.h"
#include "runtime/embed.h"
#include "tests/unit/codegen/emitted.h"
#include "tests/unit/skip.h"

namespace {

using emitted::contains;
using emitted::take;

apl::KernelFile file_of(apl::Module module, const std::string& entry, const apl::CodegenOptions& options = {}) {
  return take(apl::generate_kernel_file(emitted::at(apl::Stage::memory, std::move(module)), entry, options));
}

// The runtime's API as the functions use it, over the emulator.
constexpr const char* kRuntime = R"(
#include <stddef.h>
#include <stdint.h>
#include <string.h>
typedef int cudaError_t;
typedef void *cudaStream_t;
enum { cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorMemoryAllocation = 2, cudaErrorInvalidConfiguration = 9 };
enum { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
struct dim3 {
  unsigned x;
  explicit dim3(unsigned n) : x(n) {}
};
struct test_runtime {
  int (*launch)(const char *kernel, unsigned blocks, unsigned threads, void **args, size_t shared_bytes);
  void *(*allocate)(size_t bytes);
  void (*release)(void *data);
};
extern "C" {
const test_runtime *runtime;
}
#define cudaLaunchKernel(kernel, grid, block, args, shared_bytes, stream) \
  runtime->launch(#kernel, (grid).x, (block).x, args, shared_bytes)
#define cudaFuncSetAttribute(kernel, attribute, value) cudaSuccess
inline cudaError_t cudaMallocAsync(void **data, size_t bytes, cudaStream_t) {
  *data = runtime->allocate(bytes);
  return *data == NULL;
}
inline cudaError_t cudaFreeAsync(void *data, cudaStream_t) { return runtime->release(data), cudaSuccess; }
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, int) { return memcpy(to, from, bytes), cudaSuccess; }
)";

// A file's kernels and function, loaded. One at a time: its callbacks are plain functions.
class Emulated {
 public:
  explicit Emulated(const apl::KernelFile& file)
      : machine_(1, static_cast<std::int32_t>(apl::cuda_target().block_shared)) {
    const std::string text =
        std::string("#include \"device.h\"\n") + kRuntime + file.kernels + "extern \"C\" {\n" + file.host + "}\n";
    apl::Compilation compilation;
    compilation.command = {"c++",
                           "-std=c++17",
                           "-O1",
                           "-shared",
                           "-fPIC",
                           "-DAPL_EMULATE",
                           "-fwrapv",
                           "-w",
                           "-fno-strict-aliasing",
                           "-ffp-contract=off"};
    compilation.libraries = {"-lm"};
    compilation.files = {{"file.cpp", text}, {"device.h", apl::device_header_text()}};
    compilation.output = "file.so";
    object_ = take(apl::compile_shared(compilation, {"/tmp", "", nullptr, {}}));
    now_ = this;
    *static_cast<const Runtime**>(object_.symbol("runtime")) = &kCallbacks;
  }
  ~Emulated() { now_ = nullptr; }

  void* array(const std::vector<float>& numbers) {
    void* data = scratch(numbers.size());
    std::memcpy(data, numbers.data(), numbers.size() * sizeof(float));
    apl::emulate::Allocation* allocation = machine_.memory.find(data);
    allocation->shadow.define(0, static_cast<std::int64_t>(numbers.size() * sizeof(float)));
    return data;
  }
  void* scratch(std::size_t floats) {
    return machine_.memory.allocate(static_cast<std::int64_t>(floats * sizeof(float)), "an array");
  }
  template <class Function>
  Function function(const std::string& name) {
    auto found = object_.function<Function>(name);
    const bool is_there = found != nullptr;
    REQUIRE_MESSAGE(is_there, name);
    return found;
  }
  int allocated = 0;  // and not released

 private:
  struct Runtime {
    int (*launch)(const char*, unsigned, unsigned, void**, std::size_t);
    void* (*allocate)(std::size_t);
    void (*release)(void*);
  };
  int launch(std::string kernel, unsigned blocks, unsigned threads, void** args, std::size_t shared_bytes) {
    kernel = kernel.substr(kernel.rfind(':') + 1);
    const apl_launch launch{
        kernel.c_str(), blocks, static_cast<std::int32_t>(threads), static_cast<std::int32_t>(shared_bytes), 0, args};
    auto fault = machine_.run(launch, function<apl::emulate::Machine::Kernel>(kernel + "_call"),
                              function<apl::emulate::Machine::Attach>("apl_emulator_attach"),
                              function<apl::emulate::Machine::Warp>("apl_emulator_warp"));
    CHECK(fault);
    CHECK_MESSAGE(!*fault, kernel);
    return fault && !*fault ? 0 : 1;
  }
  static const Runtime kCallbacks;
  static Emulated* now_;

  apl::emulate::Machine machine_;
  apl::SharedObject object_;
};
Emulated* Emulated::now_ = nullptr;
const Emulated::Runtime Emulated::kCallbacks = {
    [](const char* kernel, unsigned blocks, unsigned threads, void** args, std::size_t shared_bytes) {
      return now_->launch(kernel, blocks, threads, args, shared_bytes);
    },
    [](std::size_t bytes) {
      ++now_->allocated;
      return now_->machine_.memory.allocate(static_cast<std::int64_t>(bytes), "a temporary");
    },
    [](void* data) {
      --now_->allocated;
      now_->machine_.memory.release(data);
    },
};

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
  CHECK(contains(large, "const int64_t T_a = 16;"));
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
  CHECK(contains(refusal(emitted::compiled("f.fut", "entry f (xs: []i32) : []i32 = filter (> 0) xs"), "f"), "sizes"));
  CHECK(contains(
      refusal(emitted::compiled("f.fut", "entry f [n] (xs: [n]i32) = loop ys = xs for _i < 3 do map (+ 1) ys"), "f"),
      "loops"));
}

TEST_CASE("device.h: what kernels use is a part that stands alone") {
  const std::string none = apl::device_subset(apl::device_header_text(), "nothing", *apl::find_dialect("cuda"));
  CHECK(none.empty());
  const std::string some = apl::device_subset(
      apl::device_header_text(), "apl_atomic_add(C, i, x); apl_floor_div(a, b);", *apl::find_dialect("cuda"));
  for (const char* needed :
       {"apl_atomic_##name", "APL_ATOMIC(add", "APL_BINARY(apl_floor_div", "APL_BINARY(apl_div", "struct apl_result"})
    CHECK_MESSAGE(contains(some, needed), needed);
  for (const char* other : {"APL_ATOMIC(max", "apl_cp_async", "APL_EMULATE", "struct apl_half {"})
    CHECK_MESSAGE(!contains(some, other), other);
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
      << file_of(emitted::compiled("main.fut", "entry main [n] (NULL: [n]i32) : [n]i32 = map (+ 1) NULL"), "").text
      << "int main() { return mm0(0, 0, 0, nullptr, nullptr, nullptr, nullptr); }\n";
  all.close();
  auto compiled = apl::run_tool({"nvcc", "-std=c++17", "-arch=sm_90", "-Werror", "all-warnings", "-c",
                                 folder.path() + "/all.cu", "-o", folder.path() + "/all.o"});
  CHECK_MESSAGE(compiled, compiled.error().message);
}
