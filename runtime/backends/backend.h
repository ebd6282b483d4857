// A backend in C++: what stands behind the function table of context.h. A backend owns all of its state; two of them
// in two threads do not meet.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ir/diagnostic.h"
#include "ir/scalar.h"
#include "machine/target/records.h"
#include "runtime/backends/context.h"
#include "runtime/backends/kernel_stats.h"

namespace apl {

// C[rows][columns] = A[rows][depth] B[depth][columns] of arrays on the device, whose rows are so many elements apart.
struct DenseProduct {
  ScalarType type = ScalarType::f32, result = ScalarType::f32;  // of operands, which is added up in f32 at least; of C
  std::int64_t rows = 0, columns = 0, depth = 0;
  const void *a = nullptr, *b = nullptr;
  void* c = nullptr;
  std::int64_t a_row = 0, b_row = 0, c_row = 0;
  bool b_by_columns = false;  // B has a row for each of C's columns
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual const char* name() const = 0;

  // Compiles kernel text (CUDA C++ that includes device.h): once before the first launch, then for each form of a
  // kernel before its first launch.
  virtual Status load(std::string_view kernel_text) = 0;

  // The same of machine code that was compiled elsewhere for this device.
  virtual Status load_code(std::string_view machine_code) {
    (void)machine_code;
    return make_error(Code::unsupported_backend, {}, std::string("backend ") + name() + " loads no machine code");
  }

  // What that is compiled for ("sm_90a"); empty where there is no such thing.
  virtual Result<std::string> architecture() const { return std::string(); }

  // Device memory. `what` is for messages. run.out-of-memory says how much was asked for.
  virtual Result<void*> allocate(std::int64_t bytes, const char* what) = 0;
  virtual Status release(void* data) = 0;
  virtual Status upload(void* data, const void* host, std::int64_t bytes) = 0;
  virtual Status download(void* host, const void* data, std::int64_t bytes) = 0;  // waits for what is under way
  virtual Status copy(void* to, const void* from, std::int64_t bytes) = 0;

  // Memory of its own that is zero, and that kernels leave so: until more is asked for.
  virtual Result<void*> zeros(std::int64_t bytes) {
    (void)bytes;
    return make_error(Code::unsupported_backend, {}, std::string("backend ") + name() + " has no blocks of threads");
  }
  virtual Status launch(const apl_launch& launch) = 0;
  virtual Status synchronise() = 0;

  // By the machine's own library (cuBLAS), in order with launches. unsupported.backend where there is none, or none for
  // these types.
  virtual Status library_product(const DenseProduct& product) {
    (void)product;
    return make_error(Code::unsupported_backend, {}, std::string("backend ") + name() + " has no library of products");
  }
  // The library's name; empty where there is none.
  virtual std::string library_name() const { return {}; }

  // Whether kernels may be given memory that the backend did not allocate: `on_device` asks for the device's, else for
  // the host's.
  virtual bool can_borrow(bool on_device) const {
    (void)on_device;
    return false;
  }
  // All that follows happens on the caller's stream, after what was begun before. unsupported.backend where there are
  // no streams.
  virtual Status set_stream(void* stream) {
    if (!stream) return Unit{};
    return make_error(Code::unsupported_backend, {}, std::string("backend ") + name() + " has no streams");
  }

  // The failure cell in device memory; it lives as long as the backend.
  virtual apl_failure* failure() = 0;
  // What apl_context calls `failed`; null where kernels cannot be started behind a failed check.
  virtual std::int32_t* failed() { return nullptr; }
  // Waits; the cell as kernels left it, which is then cleared.
  virtual Result<apl_failure> take_failure() = 0;

  // Time between the two, in microseconds, on the device's own clock where it has one.
  virtual Status start_timer() = 0;
  virtual Result<double> stop_timer() = 0;

  // From `begin` to `end` each launch happens many times, and its time is what one of them takes by the device's clock:
  // a kernel of some microseconds is not told from the time that a call takes otherwise. `end` gives the sum of the
  // launches' times. For kernels that may run again; unsupported.backend where there is no such clock.
  virtual Status begin_launch_times() {
    return make_error(Code::unsupported_backend, {}, std::string("backend ") + name() + " times no kernels");
  }
  virtual Result<double> end_launch_times() { return 0.0; }

  virtual std::vector<KernelStats> kernels() const { return {}; }

  // For whom plans are chosen.
  virtual apl_device device() const { return host_device(); }
  // Bytes of memory a thread that a loaded kernel spills its registers to; 0 where there is no such thing.
  virtual Result<int> spilled_bytes(const std::string& kernel) {
    (void)kernel;
    return 0;
  }
};

// Host memory; kernels are functions of the program itself.
std::unique_ptr<Backend> make_host_backend();

}  // namespace apl
