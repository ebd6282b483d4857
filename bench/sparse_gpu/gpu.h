// A GPU as the benchmark of sparse products wants it, for elements of one type: f16, f32: arrays, times of repeated
// launches without the gaps between them, and the kernels that fill, multiply naively and compare. In emulation all but
// the times.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ir/scalar.h"
#include "runtime/backends/cuda/clock.h"
#include "runtime/program/bridge.h"

namespace apl::bench {

// Ends the program: nothing that fails here is worth going on for.
[[noreturn]] void give_up(const std::string& why);

template <class T>
T need(Result<T> result) {
  if (!result) give_up(result.error().message);
  return std::move(*result);
}

class Gpu {
 public:
  // `once`: nothing is timed.
  Gpu(bool emulated, bool once, ScalarType type);
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  bool emulated() const { return clock_ == nullptr; }
  ScalarType type() const { return type_; }
  std::int32_t c_type() const { return static_cast<std::int32_t>(type_); }
  std::int64_t element() const { return byte_size(type_); }  // bytes
  // The error below which results are right: f16 is rounded once, f32 is added in another order.
  double tolerance() const { return type_ == ScalarType::f32 ? 2e-5 : 2e-3; }
  void* stream() const { return clock_->stream(); }
  program::Bridge& bridge() { return *bridge_; }
  apl_context* context() { return bridge_->context(); }
  void check(int status) {
    if (status != APL_SUCCESS) give_up(bridge_->error(status).message);
  }

  void* scratch(std::int64_t bytes, const char* what);
  template <class T>
  void* array(const std::vector<T>& elements, const char* what) {
    const auto bytes = static_cast<std::int64_t>(elements.size() * sizeof(T));
    void* data = scratch(bytes, what);
    need(bridge_->backend().upload(data, elements.data(), bytes));
    return data;
  }

  // Numbers from -1 to 1, which the type has exactly, with all of its digits.
  void fill(void* elements, std::int64_t count, std::int32_t seed);
  void clear(void* data, std::int64_t bytes);
  // to[slot[k]] = values[k]
  void place(const void* values, const void* slot, std::int64_t count, void* to);
  // What no product is.
  void poison(void* data, std::int64_t bytes);
  // f32 results of the plainest kernels, for a matrix of 32-bit row starts and columns.
  void plain_spmm(const void* start, const void* column, const void* value, std::int64_t rows, const void* b,
                  std::int64_t width, void* wanted);
  void plain_sddmm(const void* start, const void* column, std::int64_t rows, const void* x, const void* y,
                   std::int64_t depth, void* wanted);
  // |results - wanted| / |wanted|, elements against f32.
  double error_of(const void* results, const void* wanted, std::int64_t count);

  // Microseconds of one of many launches in a graph, the median of a few replays. 0 where it runs once.
  double time(const std::function<void()>& launch);

 private:
  template <class... Arguments>
  void launch(const char* kernel, std::int64_t blocks, int threads, Arguments... arguments);

  void set_bytes(void* data, int byte, std::int64_t bytes);

  bool once_;
  ScalarType type_;
  std::unique_ptr<cuda::Clock> clock_;  // none in emulation; outlives the bridge
  std::unique_ptr<program::Bridge> bridge_;
  void* sums_ = nullptr;
};

}  // namespace apl::bench
