#include "runtime/backends/cuda/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "runtime/backends/cuda/library.h"

namespace apl::cuda {

Result<Driver> Driver::open(const std::vector<std::string>& folders) {
  auto library = open_library({"libcuda.so.1", "libcuda.so"}, folders);
  if (!library) return std::move(library).error();
  Driver driver;
  const char* missing = nullptr;
#define APL_CUDA_BIND(member, symbol, parameters)                                     \
  driver.member = reinterpret_cast<decltype(driver.member)>(dlsym(*library, symbol)); \
  if (!driver.member) missing = symbol;
  APL_CUDA_FUNCTIONS(APL_CUDA_BIND)
#undef APL_CUDA_BIND
#define APL_CUDA_BIND(member, symbol, parameters) \
  driver.member = reinterpret_cast<decltype(driver.member)>(dlsym(*library, symbol));
  APL_CUDA_GRAPH_FUNCTIONS(APL_CUDA_BIND)
#undef APL_CUDA_BIND
  if (missing)
    return make_error(Code::unsupported_backend, {}, fmt::format("the CUDA driver of this machine has no {}", missing));
  if (const int result = driver.init(0); result != 0) {
    Diagnostic error = driver.error(result, "the driver does not start");
    error.code = Code::unsupported_backend;
    return error;
  }
  return driver;
}

Diagnostic Driver::error(int result, const std::string& what) const {
  const char *name = nullptr, *text = nullptr;
  error_name(result, &name);
  error_string(result, &text);
  return make_error(result == kOutOfMemory ? Code::run_out_of_memory : Code::bug_internal, {},
                    fmt::format("CUDA: {}: {} ({})", what, name ? name : "unknown error", text ? text : ""));
}

Status Driver::check(int result, const std::string& what) const {
  if (result == 0) return Unit{};
  return error(result, what);
}

}  // namespace apl::cuda
