// Kernels written by hand, as code generation writes them, and a way to run one on a backend without host code.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/backends/backend.h"

namespace kernels {

// C = A + B, one thread an element, the last block partial.
inline const std::string kVectorAdd = R"(#include "device.h"
APL_KERNEL(64) void vector_add(apl_in<float> A, apl_in<float> B, apl_out<float> C, int64_t n) {
  const int64_t i = apl_block() * apl_threads() + apl_thread();
  if (i < n) C(i) = A(i) + B(i);
}
APL_EXPORT(vector_add)
)";

// C[m][n] = A[m][k] * B[k][n] in tiles of 8 by 8 through shared memory, with prologue-free padding of partial tiles.
inline const std::string kTiledProduct = R"(#include "device.h"
APL_KERNEL(64) void product(apl_in<float> A, apl_in<float> B, apl_out<float> C, int64_t m, int64_t n, int64_t k) {
  const apl_shared<float> a_s = apl_shared_at<float>(0, 64);
  const apl_shared<float> b_s = apl_shared_at<float>(256, 64);
  const int64_t columns = apl_ceil_div(n, int64_t(8));
  const int t_i = apl_thread() / 8;
  const int t_j = apl_thread() % 8;
  const int64_t i = apl_block() / columns * 8 + t_i;
  const int64_t j = apl_block() % columns * 8 + t_j;
  float sum = 0.0f;
  for (int64_t q = 0; q < k; q += 8) {
    a_s(t_i * 8 + t_j) = (i < m && q + t_j < k) ? A(i * k + q + t_j) : 0.0f;
    b_s(t_i * 8 + t_j) = (q + t_i < k && j < n) ? B((q + t_i) * n + j) : 0.0f;
    apl_barrier();  // tiles are there
    for (int r = 0; r < 8; ++r) sum += a_s(t_i * 8 + r) * b_s(r * 8 + t_j);
    apl_barrier();  // tiles are used
  }
  if (i < m && j < n) C(i * n + j) = sum;
}
APL_EXPORT(product)
)";
inline constexpr std::int32_t kProductSharedBytes = 512;

// A check that fails for odd numbers.
inline const std::string kChecked = R"(#include "device.h"
APL_KERNEL(32) void checked(apl_in<int32_t> A, apl_out<int32_t> C, int64_t n, apl_failure *failure) {
  const int64_t i = apl_block() * 32 + apl_thread();
  if (i >= n) return;
  if (A(i) % 2 != 0) {
    apl_fail(failure, 2, 1, i, A(i));
    return;
  }
  C(i) = A(i) / 2;
}
APL_EXPORT(checked)
)";

// Copies through shared memory by asynchronous copies of 16 bytes.
inline const std::string kAsyncCopy = R"(#include "device.h"
APL_KERNEL(32) void async_copy(apl_in<float> A, apl_out<float> C) {
  const apl_shared<float> a_s = apl_shared_at<float>(0, 128);
  const int t = apl_thread();
  apl_cp_async16(a_s, 4 * t, A, apl_block() * 128 + 4 * t);
  apl_cp_async_commit();
  apl_cp_async_wait<0>();
  apl_barrier();
  for (int r = 0; r < 4; ++r) C(apl_block() * 128 + r * 32 + t) = a_s(r * 32 + t);
}
APL_EXPORT(async_copy)
)";

inline std::vector<const std::string*> all() { return {&kVectorAdd, &kTiledProduct, &kChecked, &kAsyncCopy}; }

// `text` without the only occurrence of `part`, or with `other` there; fails the test if it is not there.
inline std::string replace(std::string text, const std::string& part, const std::string& other = "") {
  const std::size_t at = text.find(part);
  REQUIRE(at != std::string::npos);
  REQUIRE(text.find(part, at + 1) == std::string::npos);
  return text.replace(at, part.size(), other);
}

// The number of the line that holds `part`.
inline int line_of(const std::string& text, const std::string& part) {
  const std::size_t at = text.find(part);
  REQUIRE(at != std::string::npos);
  int line = 1;
  for (char c : text.substr(0, at)) line += c == '\n';
  return line;
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

template <class T>
T take(apl::Result<T> result) {
  if (!result) FAIL(std::string(apl::code_text(result.error().code)) << ": " << result.error().message);
  return std::move(*result);
}

// A backend with kernels loaded.
class Device {
 public:
  Device(std::unique_ptr<apl::Backend> backend, const std::string& text) : backend_(std::move(backend)) {
    take(backend_->load(text));
  }

  apl::Backend& backend() { return *backend_; }

  template <class T>
  void* array(const std::vector<T>& elements, const char* what) {
    void* data = scratch<T>(elements.size(), what);
    take(backend_->upload(data, elements.data(), static_cast<std::int64_t>(elements.size() * sizeof(T))));
    return data;
  }
  template <class T>
  void* scratch(std::size_t count, const char* what) {
    return take(backend_->allocate(static_cast<std::int64_t>(count * sizeof(T)), what));
  }
  template <class T>
  std::vector<T> read(const void* data, std::size_t count) {
    std::vector<T> elements(count);
    take(backend_->download(elements.data(), data, static_cast<std::int64_t>(count * sizeof(T))));
    return elements;
  }

  // Pointers and numbers of 64 bits, in the kernel's order.
  template <class... Arguments>
  apl::Status launch(const char* kernel, std::int64_t blocks, std::int32_t threads, std::int32_t shared_bytes,
                     Arguments... arguments) {
    void* pointers[] = {static_cast<void*>(&arguments)..., nullptr};
    return backend_->launch({kernel, blocks, threads, shared_bytes, sizeof...(arguments), pointers});
  }

 private:
  std::unique_ptr<apl::Backend> backend_;
};

// Whole numbers from -8 to 8, so that sums are exact in any order.
inline std::vector<float> numbers(std::int64_t count, std::uint32_t seed) {
  std::vector<float> result;
  for (std::int64_t i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    result.push_back(static_cast<float>(static_cast<int>(seed >> 16) % 9));
  }
  return result;
}

inline std::vector<float> product(const std::vector<float>& a, const std::vector<float>& b, std::int64_t m,
                                  std::int64_t n, std::int64_t k) {
  std::vector<float> c(static_cast<std::size_t>(m * n));
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t q = 0; q < k; ++q)
        c[static_cast<std::size_t>(i * n + j)] +=
            a[static_cast<std::size_t>(i * k + q)] * b[static_cast<std::size_t>(q * n + j)];
  return c;
}

}  // namespace kernels
