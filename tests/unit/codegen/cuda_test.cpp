#include "runtime/backends/cuda.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "runtime/embed.h"
#include "tests/unit/codegen/kernels.h"
#include "tests/unit/skip.h"

namespace {

using kernels::contains;
using kernels::Device;
using kernels::take;

// All operations of device.h, so that both compilers see every template of it.
const std::string kOperations = R"(#include "device.h"
template <class T>
APL_DEVICE void integers(apl_out<T> C, const apl_shared<T> a, const apl_in<T> A) {
  const int i = apl_thread();
  a(i) = A(i);
  C(i) = apl_add(a(i), a(i + 1));
  C(i) = apl_sub(a(i), apl_mul(a(i), a(i + 1)));
  C(i) = apl_div(a(i), apl_mod(a(i), a(i + 1)));
  C(i) = apl_quot(a(i), apl_rem(a(i), a(i + 1)));
  C(i) = apl_pow(a(i), apl_min(a(i), apl_max(a(i), C(i))));
  C(i) = apl_shl(a(i), apl_shr(a(i), apl_mul_hi(a(i), a(i + 1))));
  C(i) = apl_clz(apl_popc(apl_abs(apl_sgn(apl_neg(a(i))))));
  C(i) = apl_from_float<T>(1.5);
  C(i) += 1;
}
APL_KERNEL(32) void i8(apl_out<int8_t> C, apl_in<int8_t> A) { integers(C, apl_shared_at<int8_t>(0, 64), A); }
APL_EXPORT(i8)
APL_KERNEL(32) void i16(apl_out<int16_t> C, apl_in<int16_t> A) { integers(C, apl_shared_at<int16_t>(0, 64), A); }
APL_EXPORT(i16)
APL_KERNEL(32) void i32(apl_out<int32_t> C, apl_in<int32_t> A) { integers(C, apl_shared_at<int32_t>(0, 64), A); }
APL_EXPORT(i32)
APL_KERNEL(32) void i64(apl_out<int64_t> C, apl_in<int64_t> A) { integers(C, apl_shared_at<int64_t>(0, 64), A); }
APL_EXPORT(i64)
APL_KERNEL(32) void u8(apl_out<uint8_t> C, apl_in<uint8_t> A) { integers(C, apl_shared_at<uint8_t>(0, 64), A); }
APL_EXPORT(u8)
APL_KERNEL(32) void u16(apl_out<uint16_t> C, apl_in<uint16_t> A) { integers(C, apl_shared_at<uint16_t>(0, 64), A); }
APL_EXPORT(u16)
APL_KERNEL(32) void u32(apl_out<uint32_t> C, apl_in<uint32_t> A) { integers(C, apl_shared_at<uint32_t>(0, 64), A); }
APL_EXPORT(u32)
APL_KERNEL(32) void u64(apl_out<uint64_t> C, apl_in<uint64_t> A) { integers(C, apl_shared_at<uint64_t>(0, 64), A); }
APL_EXPORT(u64)
template <class T>
APL_DEVICE void floats(apl_out<T> C, const apl_shared<T> a, const apl_in<T> A) {
  const int64_t i = apl_thread();
  a(i) = A(i) + T(INFINITY) - T(NAN);
  C(i) = apl_min(a(i), apl_max(a(i), apl_mod(a(i), apl_pow(a(i), apl_div(a(i), T(2))))));
  C(i) -= apl_abs(apl_sgn(apl_from_bits<T>(apl_to_bits<T>(a(i)))));
  C(i) *= sqrt(a(i)) + exp(a(i)) + log(a(i)) + sin(a(i)) + cos(a(i)) + tan(a(i)) + floor(a(i)) + ceil(a(i));
}
APL_KERNEL(32) void f16(apl_out<apl_half> C, apl_in<apl_half> A, apl_half s) {
  const apl_shared<apl_half> a = apl_shared_at<apl_half>(0, 64);
  const int64_t i = apl_thread();
  a(i) = A(i);
  const apl_half x = (apl_half)((apl_half)a(i) * s + (apl_half)1.5f);
  C(i) = apl_min(a(i), apl_max(a(i), apl_mod(x, apl_pow(x, apl_div(x, apl_half(2))))));
  C(i) = (apl_half)(tgammaf(x) + lgammaf(x) + erff(x) + cbrtf(x) + ldexpf(x, apl_from_float<int32_t>(x)));
  C(i) = apl_nextafter<apl_half>(x, apl_sgn(a(i)));
  C(i) = x < s ? (apl_half)A(i) : apl_from_bits<apl_half>(apl_to_bits<apl_half>(x));
  C(i) = (apl_half)(int64_t)(1.0e300 * x);
}
APL_EXPORT(f16)
APL_KERNEL(32) void f32(apl_out<float> C, apl_in<float> A) { floats(C, apl_shared_at<float>(0, 64), A); }
APL_EXPORT(f32)
APL_KERNEL(32) void f64(apl_out<double> C, apl_in<double> A) { floats(C, apl_shared_at<double>(0, 64), A); }
APL_EXPORT(f64)
APL_KERNEL(32) void others(apl_out<bool> C, apl_in<bool> A, apl_in<int64_t> I, apl_failure *failure) {
  const apl_shared<bool> a = apl_shared_at<bool>(0, 64);
  APL_UNROLL
  for (int i = 0; i < 2; ++i) a(i) = A(I(apl_thread()));
  apl_barrier();
  C(apl_floor_mod(I(0), I(1)) + apl_ceil_div(7, apl_floor_div(apl_threads(), 3))) = a(0) && a(1);
  if (apl_index_min(apl_block(), 3) > apl_index_max(0, I(2))) apl_fail(failure, 1, 2, 3, 4);
}
APL_EXPORT(others)
)";

std::vector<std::string> texts() {
  std::vector<std::string> all{kOperations};
  for (const std::string* text : kernels::all()) all.push_back(*text);
  return all;
}

// The device of this machine with kernels loaded; says why there is none.
std::optional<Device> device_with(const std::string& text) {
  auto backend = apl::make_cuda_backend({});
  if (!backend) {
    REQUIRE(apl::code_text(backend.error().code) == "unsupported.backend");
    tests::skip(backend.error().message);
    return std::nullopt;
  }
  return Device(std::move(*backend), text);
}

}  // namespace

TEST_CASE("cuda: NVRTC compiles kernels without a device" * doctest::test_suite("nvrtc")) {
  for (const std::string architecture : {"sm_75", "sm_80", "sm_90"})
    for (const std::string& text : texts()) {
      auto cubin = apl::compile_with_nvrtc(text, architecture);
      if (!cubin && cubin.error().code == apl::Code::unsupported_backend) {
        return tests::skip(cubin.error().message);
      }
      CAPTURE(architecture);
      CHECK_MESSAGE(cubin, cubin.error().message);
      if (cubin) CHECK(cubin->substr(1, 3) == "ELF");
    }
}

TEST_CASE("cuda: what NVRTC refuses comes back with its words" * doctest::test_suite("nvrtc")) {
  auto bad = apl::compile_with_nvrtc("#include \"device.h\"\nint x = nothing;\n", "sm_90");
  REQUIRE_FALSE(bad);
  if (bad.error().code == apl::Code::unsupported_backend) {
    return tests::skip(bad.error().message);
  }
  CHECK(bad.error().code == apl::Code::bug_internal);
  CHECK(contains(bad.error().message, "kernels.cu(2)"));
  CHECK(contains(bad.error().message, "nothing"));
}

TEST_CASE("cuda: nvcc compiles the same texts" * doctest::test_suite("nvcc")) {
  if (auto found = apl::run_tool({"nvcc", "--version"}); !found) {
    return tests::skip(found.error().message);
  }
  auto folder = take(apl::TemporaryFolder::make("/tmp"));
  std::ofstream(folder.path() + "/device.h") << apl::device_header_text();
  // One file: nvcc needs seconds for each.
  std::ofstream all(folder.path() + "/kernels.cu");
  for (const std::string& text : texts()) all << text;
  all.close();
  auto compiled = apl::run_tool({"nvcc", "-std=c++17", "-arch=sm_90", "-Werror", "all-warnings", "-c",
                                 folder.path() + "/kernels.cu", "-o", folder.path() + "/kernels.o"});
  CHECK_MESSAGE(compiled, compiled.error().message);
}

TEST_CASE("cuda: a vector sum and a tiled product are right" * doctest::test_suite("device")) {
  auto sum = device_with(kernels::kVectorAdd);
  if (!sum) return;
  constexpr std::int64_t length = 1000;
  const auto x = kernels::numbers(length, 1), y = kernels::numbers(length, 2);
  void* X = sum->array(x, "X");
  void* Y = sum->array(y, "Y");
  void* Z = sum->scratch<float>(length, "Z");
  take(sum->launch("vector_add", (length + 63) / 64, 64, 0, X, Y, Z, length));
  const auto z = sum->read<float>(Z, length);
  for (std::size_t i = 0; i < z.size(); ++i) CHECK(z[i] == x[i] + y[i]);

  auto device = device_with(kernels::kTiledProduct);
  REQUIRE(device);
  constexpr std::int64_t m = 33, n = 70, k = 41;
  const auto a = kernels::numbers(m * k, 1), b = kernels::numbers(k * n, 2);
  void* A = device->array(a, "A");
  void* B = device->array(b, "B");
  void* C = device->scratch<float>(m * n, "C");
  take(device->backend().start_timer());
  take(device->launch("product", (m + 7) / 8 * ((n + 7) / 8), 64, kernels::kProductSharedBytes, A, B, C, m, n, k));
  CHECK(take(device->backend().stop_timer()) > 0);
  CHECK(device->read<float>(C, m * n) == kernels::product(a, b, m, n, k));
  const auto stats = device->backend().kernels();
  REQUIRE(stats.size() == 1);
  CHECK(stats[0].name == "product");
  CHECK(stats[0].registers > 0);
  CHECK(stats[0].local_bytes == 0);
  CHECK(stats[0].dynamic_shared_bytes == kernels::kProductSharedBytes);
}

TEST_CASE("cuda: asynchronous copies arrive" * doctest::test_suite("device")) {
  auto device = device_with(kernels::kAsyncCopy);
  if (!device) return;
  const auto a = kernels::numbers(256, 1);
  void* A = device->array(a, "A");
  void* C = device->scratch<float>(256, "C");
  take(device->launch("async_copy", 2, 32, 100 * 1024, A, C));  // more than a kernel has without asking
  CHECK(device->read<float>(C, 256) == a);
}

TEST_CASE("cuda: a failed check is in the cell, once" * doctest::test_suite("device")) {
  auto device = device_with(kernels::kChecked);
  if (!device) return;
  std::vector<std::int32_t> a(100, 4);
  a[70] = 7;
  void* A = device->array(a, "A");
  void* C = device->scratch<std::int32_t>(100, "C");
  take(device->launch("checked", 4, 32, 0, A, C, std::int64_t{100}, device->backend().failure()));
  const auto cell = take(device->backend().take_failure());
  CHECK(cell.code == APL_ASSERT);
  CHECK(cell.location == 1);
  CHECK(cell.values[0] == 70);
  CHECK(cell.values[1] == 7);
  CHECK(take(device->backend().take_failure()).code == APL_OK);
}

TEST_CASE("cuda: what the device cannot do is an error" * doctest::test_suite("device")) {
  auto device = device_with(kernels::kVectorAdd);
  if (!device) return;
  auto much = device->backend().allocate(std::int64_t{1} << 50, "the moon");
  REQUIRE_FALSE(much);
  CHECK(much.error().code == apl::Code::run_out_of_memory);
  CHECK(contains(much.error().message, "1125899906842624 bytes for the moon"));
  void* block = device->scratch<float>(16, "block");
  take(device->backend().release(block));
  CHECK(device->scratch<float>(16, "again") == block);
  CHECK_FALSE(device->launch("other", 1, 32, 0));
  CHECK_FALSE(device->launch("vector_add", 1, 32, 1 << 20));
  apl::CudaOptions options;
  options.device = 1000;
  auto none = apl::make_cuda_backend(options);
  REQUIRE_FALSE(none);
  CHECK(none.error().code == apl::Code::unsupported_backend);
}
