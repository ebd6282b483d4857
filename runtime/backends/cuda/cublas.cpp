#include "runtime/backends/cuda/cublas.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "runtime/backends/cuda/library.h"

namespace apl::cuda {
namespace {

// Constants of cublas_v2.h and library_types.h.
constexpr int kAsIs = 0, kTransposed = 1;        // CUBLAS_OP_N, _T
constexpr int kCompute32 = 68, kCompute64 = 70;  // CUBLAS_COMPUTE_32F, _64F
constexpr int kDefault = -1;                     // CUBLAS_GEMM_DEFAULT

// CUDA_R_32F and so on.
std::optional<int> data_type(ScalarType type) {
  switch (type) {
    case ScalarType::f32: return 0;
    case ScalarType::f64: return 1;
    case ScalarType::f16: return 2;
    case ScalarType::bf16: return 14;
    default: return std::nullopt;
  }
}

Status failed(const char* what, int status) {
  return make_error(Code::unsupported_backend, {}, fmt::format("cuBLAS: {} ended with status {}", what, status));
}

}  // namespace

struct Cublas::Functions {
  void* handle = nullptr;
  int (*create)(void**) = nullptr;
  int (*destroy)(void*) = nullptr;
  int (*set_stream)(void*, void*) = nullptr;
  int (*multiply)(void*, int, int, int, int, int, const void*, const void*, int, int, const void*, int, int,
                  const void*, void*, int, int, int, int) = nullptr;
};

Cublas::Cublas(std::unique_ptr<Functions> functions) : functions_(std::move(functions)) {}

Cublas::~Cublas() { functions_->destroy(functions_->handle); }

Result<std::unique_ptr<Cublas>> Cublas::open(const std::vector<std::string>& folders) {
  auto library = open_library({"libcublas.so.13", "libcublas.so.12", "libcublas.so"}, folders);
  if (!library) return std::move(library).error();
  auto functions = std::make_unique<Functions>();
  const char* missing = nullptr;
  const auto find = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(*library, name));
    if (!function) missing = name;
  };
  find("cublasCreate_v2", functions->create);
  find("cublasDestroy_v2", functions->destroy);
  find("cublasSetStream_v2", functions->set_stream);
  find("cublasGemmEx", functions->multiply);
  if (missing) return make_error(Code::unsupported_backend, {}, fmt::format("cuBLAS has no {}", missing));
  if (const int status = functions->create(&functions->handle)) return failed("starting it", status).error();
  return std::unique_ptr<Cublas>(new Cublas(std::move(functions)));
}

Status Cublas::multiply(const DenseProduct& p, void* stream) const {
  const auto type = data_type(p.type), result = data_type(p.result);
  if (!type || !result)
    return make_error(
        Code::unsupported_backend, {},
        fmt::format("cuBLAS has no product of {} with results in {}", to_text(p.type), to_text(p.result)));
  for (const std::int64_t size : {p.rows, p.columns, p.depth, p.a_row, p.b_row, p.c_row})
    if (size > INT32_MAX)
      return make_error(Code::unsupported_backend, {}, fmt::format("cuBLAS takes no size of {}", size));
  const auto size = [](std::int64_t number) { return static_cast<int>(number); };
  const float one = 1, zero = 0;
  const double long_one = 1, long_zero = 0;
  const bool is_long = p.type == ScalarType::f64;
  if (const int status = functions_->set_stream(functions_->handle, stream)) return failed("taking a stream", status);
  // It has arrays by columns: what it takes for B is A, and C is transposed.
  const int status = functions_->multiply(
      functions_->handle, p.b_by_columns ? kTransposed : kAsIs, kAsIs, size(p.columns), size(p.rows), size(p.depth),
      is_long ? static_cast<const void*>(&long_one) : &one, p.b, *type, size(p.b_row), p.a, *type, size(p.a_row),
      is_long ? static_cast<const void*>(&long_zero) : &zero, p.c, *result, size(p.c_row),
      is_long ? kCompute64 : kCompute32, kDefault);
  return status ? failed("a product", status) : Unit{};
}

}  // namespace apl::cuda
