// Kernel files of whole programs: every entry of the examples gives one that nvcc compiles, and that gives in emulation
// what the interpreter gives.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "ir/interpret.h"
#include "ir/parse.h"
#include "ir/sparse_arguments.h"
#include "machine/target/target.h"
#include "runtime/embed.h"
#include "runtime/names.h"
#include "suite/test_block.h"
#include "suite/values.h"
#include "tests/testing.h"
#include "tests/unit/codegen/emitted.h"
#include "tests/unit/codegen/kernel_files.h"
#include "tests/unit/skip.h"

namespace kernel_files {
namespace {

// The runtime's API as the functions use it, over the emulator.
constexpr const char* kRuntime = R"(
#include <stddef.h>
#include <stdint.h>
#include <string.h>
typedef int cudaError_t;
typedef void *cudaStream_t;
enum { cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorMemoryAllocation = 2, cudaErrorInvalidConfiguration = 9 };
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
typedef uint16_t __half;
inline float __half2float(__half a) { return apl_half_number(a); }
inline __half __float2half(float x) { return apl_half_bits(x); }
struct dim3 {
  unsigned x;
  explicit dim3(unsigned n) : x(n) {}
};
struct test_runtime {
  int (*launch)(const char *kernel, unsigned blocks, unsigned threads, void **args, size_t shared_bytes);
  void *(*allocate)(size_t bytes);
  void (*release)(void *data);
  void (*copy)(void *to, const void *from, size_t bytes);
};
extern "C" {
const test_runtime *runtime;
}
#define cudaLaunchKernel(kernel, grid, block, args, shared_bytes, stream) \
  runtime->launch(#kernel, (grid).x, (block).x, args, shared_bytes)
#define cudaFuncSetAttribute(kernel, attribute, value) cudaSuccess
inline cudaError_t cudaMallocAsync(void **data, size_t bytes, cudaStream_t) {
  if (bytes == 0) return cudaErrorInvalidValue;
  *data = runtime->allocate(bytes);
  return *data == NULL;
}
inline cudaError_t cudaFreeAsync(void *data, cudaStream_t) { return runtime->release(data), cudaSuccess; }
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind) {
  return runtime->copy(to, from, bytes), cudaSuccess;
}
inline cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t) {
  return cudaMemcpy(to, from, bytes, kind);
}
inline cudaError_t cudaMemsetAsync(void *to, int byte, size_t bytes, cudaStream_t) {
  void *set = malloc(bytes);
  if (set == NULL) return cudaErrorInvalidValue;
  memset(set, byte, bytes);
  runtime->copy(to, set, bytes);
  free(set);
  return cudaSuccess;
}
)";

// A parameter of a function, as it is declared: "const float *X", or "int64_t n".
struct Declared {
  std::string type;
  bool is_pointer = false;
};
std::vector<Declared> declared_of(const std::string& signature) {
  std::vector<Declared> all;
  for (std::size_t at = 0; at < signature.size();) {
    const std::size_t end = std::min(signature.find(", ", at), signature.size());
    const std::string one = signature.substr(at, end - at);
    const std::size_t name = one.find_last_of(" *") + 1;
    all.push_back({one.substr(0, name), one.find('*') != std::string::npos});
    if (one == "cudaStream_t stream") all.back().is_pointer = true;
    at = end + 2;
  }
  return all;
}

}  // namespace

struct Emulated::Runtime {
  int (*launch)(const char*, unsigned, unsigned, void**, std::size_t);
  void* (*allocate)(std::size_t);
  void (*release)(void*);
  void (*copy)(void*, const void*, std::size_t);
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
      CHECK(now_->machine_.memory.release(data));
    },
    [](void* to, const void* from, std::size_t bytes) { now_->copy(to, from, bytes); },
};

Emulated::Emulated(const std::vector<apl::KernelFile>& files)
    : machine_(1, static_cast<std::int32_t>(apl::cuda_target().block_shared)) {
  std::string text = std::string("#include \"device.h\"\n") + kRuntime;
  for (const apl::KernelFile& file : files) {
    text += file.kernels + "extern \"C\" {\n" + file.host;
    // The same with an array of pointers to arguments.
    const std::size_t begin = file.host.find("\ncudaError_t ") + 13, open = file.host.find('(', begin);
    const std::size_t close = file.host.find(") {", open);
    const std::string name = file.host.substr(begin, open - begin);
    signatures_[name] = file.host.substr(open + 1, close - open - 1);
    std::vector<std::string> arguments;
    for (const Declared& one : declared_of(signatures_[name]))
      arguments.push_back(
          fmt::format(fmt::runtime(one.is_pointer ? "({})a[{}]" : "*({} *)a[{}]"), one.type, arguments.size()));
    text +=
        fmt::format("cudaError_t call_{}(void **a) {{ return {}({}); }}\n}}\n", name, name, fmt::join(arguments, ", "));
  }
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
                         "-ffp-contract=off",
                         "-Wl,-Bsymbolic"};
  compilation.libraries = {"-lm"};
  compilation.files = {{"file.cpp", text}, {"device.h", apl::device_header_text()}};
  compilation.output = "file.so";
  object_ = kernels::take(apl::compile_shared(compilation, {"/tmp", "", nullptr, {}}));
  now_ = this;
  *static_cast<const Runtime**>(object_.symbol("runtime")) = &kCallbacks;
}

Emulated::~Emulated() { now_ = nullptr; }

void* Emulated::array(const void* bytes, std::size_t count) {
  void* data = machine_.memory.allocate(static_cast<std::int64_t>(count), "an array");
  copy(data, bytes, count);
  return data;
}

void* Emulated::scratch(std::size_t floats) {
  return machine_.memory.allocate(static_cast<std::int64_t>(floats * sizeof(float)), "an array");
}

void Emulated::read(void* to, const void* from, std::size_t count) { copy(to, from, count); }

// Between memory of the device and of the host, which is no allocation.
void Emulated::copy(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  const auto count = static_cast<std::int64_t>(bytes);
  apl::emulate::Allocation* target = machine_.memory.find(to);
  apl::emulate::Allocation* source = machine_.memory.find(from);
  if (target != nullptr) REQUIRE(target->offset_of(to) + count <= target->shadow.bytes());
  if (source != nullptr) REQUIRE(source->offset_of(from) + count <= source->shadow.bytes());
  std::memcpy(to, from, bytes);
  if (target != nullptr && source != nullptr) {
    target->shadow.copy(target->offset_of(to), source->shadow, source->offset_of(from), count);
  } else if (target != nullptr) {
    target->shadow.define(target->offset_of(to), count);
  } else if (source != nullptr) {
    const bool is_defined = !source->shadow.first_undefined(source->offset_of(from), count).has_value();
    CHECK_MESSAGE(is_defined, source->what);
  }
}

int Emulated::launch(std::string kernel, unsigned blocks, unsigned threads, void** args, std::size_t shared_bytes) {
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

std::vector<apl::HostValue> Emulated::call(const apl::Function& entry, const std::vector<apl::HostValue>& arguments) {
  machine_.failure = {};
  std::map<apl::Value, std::int64_t> sizes;
  for (std::size_t k = 0; k < entry.params.size(); ++k) {
    if (arguments[k].type == apl::ScalarType::i64 && arguments[k].rank() == 0)
      sizes[entry.params[k]] = arguments[k].at(0).as_int();
    for (std::size_t d = 0; d < arguments[k].rank(); ++d)
      if (const auto symbol = entry.type(entry.params[k]).shape[d].symbol()) sizes[*symbol] = arguments[k].shape[d];
  }
  const auto size = [&](apl::Value v) { return sizes.at(v); };
  const std::vector<apl::SparseSoa> soas = apl::find_soas(entry);

  std::vector<void*> pointers;
  std::vector<std::int64_t> numbers;
  numbers.reserve(entry.sizes.size());
  for (const apl::Value v : entry.sizes) pointers.push_back(&numbers.emplace_back(size(v)));
  for (std::size_t k = 0; k < arguments.size(); ++k) {
    if (std::ranges::any_of(soas, [&](const apl::SparseSoa& soa) { return soa.first == k; })) continue;
    const apl::HostValue& given = arguments[k];
    pointers.push_back(given.rank() == 0 ? const_cast<std::byte*>(given.data.data())
                                         : array(given.data.data(), given.data.size()));
  }
  // Results whose shape the entry decides come with their memory.
  struct Result {
    apl::HostValue value;
    void* data = nullptr;
    bool is_allocated = false;
  };
  std::vector<Result> results;
  for (const apl::Type& type : entry.results) {
    Result result;
    for (const apl::Poly& dim : type.shape)
      for (const apl::Value v : entry.result_sizes) result.is_allocated = result.is_allocated || dim.mentions(v);
    std::vector<std::int64_t> shape(type.rank());
    for (std::size_t d = 0; d < shape.size() && !result.is_allocated; ++d) shape[d] = *type.shape[d].evaluate(size);
    result.value = apl::HostValue::zeros(type.element, shape);
    if (type.rank() > 0 && !result.is_allocated)
      result.data = machine_.memory.allocate(static_cast<std::int64_t>(result.value.data.size()), "a result");
    results.push_back(std::move(result));
  }
  for (Result& result : results) {
    pointers.push_back(result.is_allocated ? &result.data : result.data ? result.data : result.value.data.data());
    if (result.is_allocated) pointers.push_back(result.value.shape.data());
  }
  const std::string name = apl::legal_name(entry.entry->name);
  const std::string& signature = signatures_.at(name);
  if (signature.find("void *failure") != std::string::npos) pointers.push_back(&machine_.failure);
  pointers.push_back(nullptr);
  REQUIRE(pointers.size() == declared_of(signature).size());
  status = function<int (*)(void**)>("call_" + name)(pointers.data());
  std::vector<apl::HostValue> values;
  for (Result& result : results) {
    if (result.is_allocated) result.value = apl::HostValue::zeros(result.value.type, result.value.shape);
    if (status == 0 && result.data != nullptr) read(result.value.data.data(), result.data, result.value.data.size());
    if (result.is_allocated && result.data != nullptr) kCallbacks.release(result.data);
    values.push_back(std::move(result.value));
  }
  return values;
}

}  // namespace kernel_files

namespace {

using kernel_files::Emulated;

struct TourProgram {
  std::string name;
  apl::Module source, memory;
  std::vector<apl::suite::CaseGroup> groups;
  std::vector<apl::KernelFile> files;  // of its entries, in their order

  std::vector<const apl::Function*> entries() const {
    std::vector<const apl::Function*> found;
    for (const apl::FunctionPtr& function : memory.functions)
      if (function->is_entry()) found.push_back(function.get());
    return found;
  }
};

std::vector<TourProgram> tour() {
  std::vector<TourProgram> programs;
  for (const auto& file : std::filesystem::directory_iterator(std::string(APL_SOURCE_DIR) + "/examples/tour")) {
    if (file.path().extension() != ".fut") continue;
    std::ifstream in(file.path());
    const std::string text(std::istreambuf_iterator<char>(in), {});
    TourProgram program{file.path().stem(), emitted::compiled(file.path().filename(), text), {}, {}, {}};
    program.memory = emitted::at(apl::Stage::memory, program.source);
    program.groups = emitted::take(apl::suite::parse_test_blocks(text)).groups;
    for (const apl::Function* entry : program.entries())
      program.files.push_back(
          emitted::take(apl::generate_kernel_file(program.memory, entry->entry->name, {}, apl::cuda_target())));
    programs.push_back(std::move(program));
  }
  std::ranges::sort(programs, {}, &TourProgram::name);
  return programs;
}

// Those of the test blocks that are written down; else random ones, for sizes that are no multiples of anything.
std::vector<std::vector<apl::HostValue>> arguments_of(const TourProgram& program, const apl::Function& entry) {
  std::vector<std::vector<apl::HostValue>> all;
  std::vector<apl::ScalarType> types;
  for (const apl::Value param : entry.params) types.push_back(entry.type(param).element);
  for (const apl::suite::CaseGroup& group : program.groups) {
    if (std::ranges::find(group.entries, entry.entry->name) == group.entries.end()) continue;
    for (const apl::suite::Case& one : group.cases)
      if (one.input.kind == apl::suite::Input::Kind::values)
        all.push_back(emitted::take(apl::parse_values(one.input.text, apl::OutOfRange::refuse, types)));
  }
  if (!all.empty()) return all;
  apl::testing::Sizes some{{"n", 19}, {"m", 21}, {"k", 5}, {"rounds", 3}, {"width", 4}};
  std::erase_if(some, [&](const auto& size) {
    const auto is_called_so = [&](apl::Value v) { return entry.values.name(v) == size.first; };
    return std::ranges::none_of(entry.sizes, is_called_so) && std::ranges::none_of(entry.params, is_called_so);
  });
  return {emitted::take(apl::testing::random_arguments(entry, some, 1)),
          emitted::take(apl::testing::random_arguments(entry, some, 2))};
}

}  // namespace

// Names of parameters that are those which the launch function declares itself, or is made of.
constexpr const char* kNamedAsTheLaunch =
    "entry stream [blocks] [n] [threads] (stream: [blocks][n]i32) (failure: [threads]i32) (status: i32) (args: "
    "[n]i64)\n"
    "    (arg_1: [n]i32) (arg_0: [n]i32) (arg_2: i32) (arg_3: i64) (bytes: i64) (shape: i64) (result: i32)\n"
    "    (result_0: i32) (result_0_shape: i64) (shape_1: i64) (bytes_1: i64) (r_mem: i32) (r_mem_end: i32) (data: "
    "i32)\n"
    "    (stream_kernels: i32) (release_at_end: i32) (dim3: i32) (host_allocate: i32) (launch: i32) (cudaSuccess: "
    "i32)\n"
    "    : ([blocks]i32, [n]i32, i32, []i32) =\n"
    "  let sums = map (\\row -> i32.sum (map2 (*) row arg_0)) stream\n"
    "  let scaled = map3 (\\a x y -> failure[a] * status + x - 2 * y + arg_2) args arg_1 arg_0\n"
    "  let numbers = 2 * result + 3 * result_0 + 5 * r_mem + 7 * r_mem_end + 11 * data + 13 * stream_kernels\n"
    "              + 17 * release_at_end + 19 * dim3 + 23 * host_allocate + 29 * launch + 31 * cudaSuccess\n"
    "  let sizes = arg_3 + 2 * bytes + 3 * shape + 5 * result_0_shape + 7 * shape_1 + 11 * bytes_1\n"
    "  let out = map (+ numbers) scaled\n"
    "  in (sums, out, i32.sum out + i32.i64 sizes, filter (> numbers) out)\n";

TEST_CASE("kernel file: parameters may have the names of the launch function's own variables") {
  using apl::HostValue;
  const apl::Module source = emitted::compiled("names.fut", kNamedAsTheLaunch);
  const apl::Module memory = emitted::at(apl::Stage::memory, source);
  const apl::KernelFile file = emitted::take(apl::generate_kernel_file(memory, "stream", {}, apl::cuda_target()));
  const auto i32 = [](std::int32_t x) { return HostValue::array<std::int32_t>(apl::ScalarType::i32, {}, {x}); };
  const auto i64 = [](std::int64_t x) { return HostValue::array<std::int64_t>(apl::ScalarType::i64, {}, {x}); };
  std::vector<HostValue> arguments = {HostValue::array<std::int32_t>(apl::ScalarType::i32, {2, 3}, {1, 2, 3, 4, 5, 6}),
                                      HostValue::array<std::int32_t>(apl::ScalarType::i32, {4}, {3, 1, 4, 1}),
                                      i32(7),
                                      HostValue::array<std::int64_t>(apl::ScalarType::i64, {3}, {2, 0, 3}),
                                      HostValue::array<std::int32_t>(apl::ScalarType::i32, {3}, {10, 200, 3000}),
                                      HostValue::array<std::int32_t>(apl::ScalarType::i32, {3}, {5, 6, 8}),
                                      i32(-4)};
  for (const std::int64_t x : {101, 103, 107}) arguments.push_back(i64(x));
  for (const std::int32_t x : {2, 3}) arguments.push_back(i32(x));
  for (const std::int64_t x : {109, 113, 127}) arguments.push_back(i64(x));
  for (std::int32_t x = 1; x <= 9; ++x) arguments.push_back(i32(x));
  const auto expected = emitted::take(apl::interpret(source, "stream", arguments));
  Emulated emulated(file);
  const auto got = emulated.call(*memory.find_entry("stream"), arguments);
  REQUIRE(emulated.status == 0);
  REQUIRE(got.size() == expected.size());
  for (std::size_t k = 0; k < got.size(); ++k) {
    CAPTURE(k);
    CHECK(got[k] == expected[k]);
  }
}

TEST_CASE("kernel file: every entry of the tour gives in emulation what the interpreter gives") {
  std::size_t entries = 0;
  for (const TourProgram& program : tour()) {
    CAPTURE(program.name);
    Emulated emulated(program.files);
    for (const apl::Function* entry : program.entries()) {
      const std::string& name = entry->entry->name;
      CAPTURE(name);
      ++entries;
      const apl::Function* dense = program.source.find_entry(name);
      REQUIRE(dense != nullptr);
      const auto cases = arguments_of(program, *dense);
      REQUIRE_FALSE(cases.empty());
      for (const std::vector<apl::HostValue>& arguments : cases) {
        const auto expected = emitted::take(apl::interpret(program.source, name, arguments));
        const apl::SoaInterface sparse = apl::soa_interface(*entry);
        const auto packed = emitted::take(apl::pack_arguments(sparse, arguments));
        std::vector<apl::HostValue> results = emulated.call(*entry, packed.values);
        REQUIRE(emulated.status == 0);
        CHECK(emulated.failure() == 0);
        apl::unpack_results(sparse, packed, results);
        const auto difference = apl::suite::difference(results, expected);
        CHECK_MESSAGE(!difference, *difference);
        CHECK(emulated.allocated == 0);
      }
    }
  }
  CHECK(entries > 20);
}

namespace {

// Scalars of f16 and bf16 as arguments and results, and what the host computes with them.
struct NarrowEntry {
  apl::Module module;
  std::string name;
  std::vector<std::string> arguments;  // of calls
};
std::vector<NarrowEntry> narrow_entries() {
  const apl::Module f16 = emitted::compiled("f16.fut", R"(
entry passed (s: f16) (xs: []f16) = (map (* s) xs, s)
entry branch (s: f16) (t: f16) (xs: []f16) = map (+ (if s < t then s * t else f16.max s t)) xs
entry loops (n: i64) (xs: []f16) = loop ys = xs for i < n do map (* (f16.i64 i / f16.f32 3)) ys
entry sums (s: f16) (xs: []f16) = (f16.sum xs + s, f16.sqrt s, xs)
entry filled (s: f16) (n: i64) = replicate n s
entry doubles (x: f64) (y: f32) (s: f16) (xs: []f16) =
  map (+ (f16.f64 x + f16.sgn s + f16.nextafter s (f16.f32 y))) xs
entry until (xs: []f16) (s: f16) = loop (t, ys) = (s, xs) while t < 10f16 do (t * 2 + f16.maximum ys, map (+ t) ys)
)");
  const apl::Module bf16 = emitted::take(apl::parse_module(R"(stage soac

entry kept (s : "bf16", w : "f64", xs : "[d0]f32") : {"[d0]f32", "bf16", "bf16"}
fun kept [d0] (s : bf16, w : f64, xs : [d0]f32) : {[d0]f32, bf16, bf16} = {
  let {t : f32} = convert(s, f32)
  let {u : f32} = mul(t, 3.3f32)
  let {v : bf16} = convert(u, bf16)
  let {v_1 : bf16} = convert(w, bf16)
  let {u_1 : f32} = convert(v, f32)
  let {ys : [d0]f32} = map(i < d0, {xs}, \{x : f32} -> { let {y : f32} = mul(x, u_1) in {y} })
  in {ys, v, v_1}
}
)",
                                                           "bf16.aplir"));
  return {
      {f16, "passed", {"1.5f16 [2f16, 0.1f16]", "f16.nan [1f16]", "-0.0f16 [3f16]"}},
      {f16, "branch", {"1.1f16 2.3f16 [1f16]", "f16.inf 1f16 [1f16]", "f16.nan 2f16 [1f16]"}},
      {f16, "loops", {"4i64 [1000f16, 0.3f16]", "0i64 [1f16]"}},
      {f16, "sums", {"60000f16 [5000f16, 5000f16]", "0.3f16 [0.1f16, 0.2f16]", "-1f16 [1f16]"}},
      {f16, "filled", {"0.1f16 5i64", "1f16 0i64"}},
      // Halfway between two of f16, by a number that f32 does not have; subnormal; too large.
      {f16, "doubles", {"1.00048828125000001 2f32 -3f16 [0f16]", "3e-8 0f32 0f16 [0f16]", "7e4 0f32 -0.0f16 [1f16]"}},
      {f16, "until", {"[1f16, 2f16] 0.5f16", "[1f16] 11f16"}},
      {bf16, "kept", {"1.5bf16 2.7 [1f32, 3f32]", "1bf16 1.00390625000000001 [0.1f32]", "bf16.nan 1e300 [2f32]"}}};
}

}  // namespace

TEST_CASE("kernel file: floats of 16 bits are scalar arguments and results, and the host computes with them") {
  for (const NarrowEntry& one : narrow_entries()) {
    CAPTURE(one.name);
    const apl::Module memory = emitted::at(apl::Stage::memory, one.module);
    const apl::Function& entry = *memory.find_entry(one.name);
    Emulated emulated(emitted::take(apl::generate_kernel_file(memory, one.name, {}, apl::cuda_target())));
    std::vector<apl::ScalarType> types;
    for (const apl::Value param : entry.params) types.push_back(entry.type(param).element);
    for (const std::string& text : one.arguments) {
      CAPTURE(text);
      const auto arguments = emitted::take(apl::parse_values(text, apl::OutOfRange::refuse, types));
      const auto expected = emitted::take(apl::interpret(one.module, one.name, arguments));
      const std::vector<apl::HostValue> results = emulated.call(entry, arguments);
      REQUIRE(emulated.status == 0);
      const auto difference = apl::suite::difference(results, expected);
      CHECK_MESSAGE(!difference, *difference);
    }
  }
}

TEST_CASE("kernel file: nvcc compiles those of the tour, all in one file" * doctest::test_suite("nvcc")) {
  if (auto found = apl::run_tool({"nvcc", "--version"}); !found) return tests::skip(found.error().message);
  auto folder = emitted::take(apl::TemporaryFolder::make("/tmp"));
  std::ofstream all(folder.path() + "/all.cu");
  for (const TourProgram& program : tour())
    for (const apl::KernelFile& file : program.files) all << file.text;
  for (const NarrowEntry& one : narrow_entries()) {
    const apl::Module memory = emitted::at(apl::Stage::memory, one.module);
    all << emitted::take(apl::generate_kernel_file(memory, one.name, {}, apl::cuda_target())).text;
  }
  all.close();
  // Whether it compiles; as it is optimised for use, NVRTC compiles kernels in other tests. That takes thrice as long.
  auto compiled = apl::run_tool({"nvcc", "-std=c++17", "-arch=sm_90", "-Werror", "all-warnings", "-Xcicc", "-O1",
                                 "-Xptxas", "-O0", "-c", folder.path() + "/all.cu", "-o", folder.path() + "/all.o"});
  CHECK_MESSAGE(compiled, compiled.error().message);
}
