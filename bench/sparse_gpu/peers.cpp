#include "bench/sparse_gpu/peers.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "runtime/backends/cuda/library.h"

namespace apl::bench {

namespace {

// Constants of cusparse.h, cublas_v2.h and library_types.h.
constexpr int kHalf = 2, kFloat = 0;                    // CUDA_R_16F, CUDA_R_32F
constexpr int kIndex32 = 2, kFromZero = 0;              // CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO
constexpr int kByColumn = 1, kByRow = 2;                // CUSPARSE_ORDER_COL, CUSPARSE_ORDER_ROW
constexpr int kAsIs = 0, kTransposed = 1;               // CUSPARSE_OPERATION_NON_TRANSPOSE, CUBLAS_OP_N, _T
constexpr int kDefault = 0, kAlg2 = 6, kAlg3 = 12;      // CUSPARSE_SPMM_ALG_DEFAULT, _CSR_ALG2, _CSR_ALG3
constexpr int kCompute32 = 68, kDefaultTensorOps = 99;  // CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT_TENSOR_OP

}  // namespace

struct Peers::Libraries {
  void *sparse = nullptr, *dense = nullptr;  // handles
  int (*create_csr)(void**, std::int64_t, std::int64_t, std::int64_t, void*, void*, void*, int, int, int,
                    int) = nullptr;
  int (*create_dense)(void**, std::int64_t, std::int64_t, std::int64_t, void*, int, int) = nullptr;
  int (*destroy_sparse)(void*) = nullptr;
  int (*destroy_dense)(void*) = nullptr;
  using Product = int (*)(void*, int, int, const void*, void*, void*, const void*, void*, int, int, void*);
  using Size = int (*)(void*, int, int, const void*, void*, void*, const void*, void*, int, int, std::size_t*);
  Size spmm_size = nullptr, sddmm_size = nullptr;
  Product spmm_prepare = nullptr, spmm = nullptr, sddmm_prepare = nullptr, sddmm = nullptr;
  int (*gemm)(void*, int, int, int, int, int, const void*, const void*, int, int, const void*, int, int, const void*,
              void*, int, int, int, int) = nullptr;
};

Peers::Peers(Gpu& gpu) : gpu_(gpu), libraries_(std::make_unique<Libraries>()) {
  if (gpu.emulated()) return;
  Libraries& l = *libraries_;
  const auto find = [](void* library, const char* name, auto& function) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
    if (!function) give_up(fmt::format("no {}", name));
  };
  int (*create)(void**) = nullptr;
  int (*set_stream)(void*, void*) = nullptr;
  if (auto library = cuda::open_library({"libcusparse.so.12", "libcusparse.so.13", "libcusparse.so"}, {})) {
    find(*library, "cusparseCreate", create);
    find(*library, "cusparseSetStream", set_stream);
    find(*library, "cusparseCreateCsr", l.create_csr);
    find(*library, "cusparseCreateDnMat", l.create_dense);
    find(*library, "cusparseDestroySpMat", l.destroy_sparse);
    find(*library, "cusparseDestroyDnMat", l.destroy_dense);
    find(*library, "cusparseSpMM_bufferSize", l.spmm_size);
    find(*library, "cusparseSpMM_preprocess", l.spmm_prepare);
    find(*library, "cusparseSpMM", l.spmm);
    find(*library, "cusparseSDDMM_bufferSize", l.sddmm_size);
    find(*library, "cusparseSDDMM_preprocess", l.sddmm_prepare);
    find(*library, "cusparseSDDMM", l.sddmm);
    if (create(&l.sparse) != 0) give_up("cuSPARSE does not start");
    set_stream(l.sparse, gpu.stream());
  } else {
    fmt::print("no cuSPARSE: {}\n", library.error().message);
  }
  if (auto library = cuda::open_library({"libcublas.so.13", "libcublas.so.12", "libcublas.so"}, {})) {
    find(*library, "cublasCreate_v2", create);
    find(*library, "cublasSetStream_v2", set_stream);
    find(*library, "cublasGemmEx", l.gemm);
    if (create(&l.dense) != 0) give_up("cuBLAS does not start");
    set_stream(l.dense, gpu.stream());
  } else {
    fmt::print("no cuBLAS: {}\n", library.error().message);
  }
}

Peers::~Peers() = default;

std::vector<PeerTime> Peers::spmm(const OnDevice& a, const void* b, std::int64_t width, void* c, const void* wanted) {
  std::vector<PeerTime> times;
  const Libraries& l = *libraries_;
  if (!l.sparse) return times;
  const struct {
    const char* name;
    int algorithm;
    bool is_prepared;
  } algorithms[] = {{"default", kDefault, false}, {"alg2", kAlg2, true}, {"alg3", kAlg3, true}};
  for (const auto& algorithm : algorithms) {
    void *matrix = nullptr, *from = nullptr, *to = nullptr;
    const float one = 1, zero = 0;
    std::size_t bytes = 0;
    int failed = l.create_csr(&matrix, a.rows, a.columns, a.nonzeros, a.start, a.column, a.value, kIndex32, kIndex32,
                              kFromZero, kHalf);
    failed |= l.create_dense(&from, a.columns, width, width, const_cast<void*>(b), kHalf, kByRow);
    failed |= l.create_dense(&to, a.rows, width, width, c, kHalf, kByRow);
    failed |= l.spmm_size(l.sparse, kAsIs, kAsIs, &one, matrix, from, &zero, to, kFloat, algorithm.algorithm, &bytes);
    if (failed) continue;
    void* buffer = gpu_.scratch(static_cast<std::int64_t>(bytes), "cuSPARSE's buffer");
    if (algorithm.is_prepared)
      failed |=
          l.spmm_prepare(l.sparse, kAsIs, kAsIs, &one, matrix, from, &zero, to, kFloat, algorithm.algorithm, buffer);
    gpu_.poison(c, a.rows * width * 2);
    const double time = failed ? 0 : gpu_.time([&] {
      failed |= l.spmm(l.sparse, kAsIs, kAsIs, &one, matrix, from, &zero, to, kFloat, algorithm.algorithm, buffer);
    });
    if (!failed) times.push_back({algorithm.name, time, gpu_.error_of(c, wanted, a.rows * width)});
    need(gpu_.bridge().release(buffer));
    l.destroy_sparse(matrix);
    l.destroy_dense(from);
    l.destroy_dense(to);
  }
  return times;
}

std::vector<PeerTime> Peers::sddmm(const OnDevice& a, const void* x, const void* y, std::int64_t depth, void* result,
                                   const void* wanted) {
  std::vector<PeerTime> times;
  const Libraries& l = *libraries_;
  if (!l.sparse) return times;
  for (const bool is_prepared : {false, true}) {
    void *matrix = nullptr, *left = nullptr, *right = nullptr;
    const float one = 1, zero = 0;
    std::size_t bytes = 0;
    int failed = l.create_csr(&matrix, a.rows, a.columns, a.nonzeros, a.start, a.column, result, kIndex32, kIndex32,
                              kFromZero, kHalf);
    failed |= l.create_dense(&left, a.rows, depth, depth, const_cast<void*>(x), kHalf, kByRow);
    failed |= l.create_dense(&right, depth, a.columns, depth, const_cast<void*>(y), kHalf, kByColumn);
    failed |= l.sddmm_size(l.sparse, kAsIs, kAsIs, &one, left, right, &zero, matrix, kFloat, kDefault, &bytes);
    if (failed) continue;
    void* buffer = gpu_.scratch(static_cast<std::int64_t>(bytes), "cuSPARSE's buffer");
    if (is_prepared)
      failed |= l.sddmm_prepare(l.sparse, kAsIs, kAsIs, &one, left, right, &zero, matrix, kFloat, kDefault, buffer);
    // It may multiply by 0 what is there, which must be a number.
    gpu_.fill(result, a.nonzeros, 5);
    const double time = failed ? 0 : gpu_.time([&] {
      failed |= l.sddmm(l.sparse, kAsIs, kAsIs, &one, left, right, &zero, matrix, kFloat, kDefault, buffer);
    });
    if (!failed)
      times.push_back({is_prepared ? "prepared" : "default", time, gpu_.error_of(result, wanted, a.nonzeros)});
    need(gpu_.bridge().release(buffer));
    l.destroy_sparse(matrix);
    l.destroy_dense(left);
    l.destroy_dense(right);
  }
  return times;
}

double Peers::dense(std::int64_t rows, std::int64_t columns, std::int64_t width, const void* a, const void* b,
                    void* c) {
  const Libraries& l = *libraries_;
  if (!l.dense) return 0;
  const float one = 1, zero = 0;
  const int m = static_cast<int>(width), n = static_cast<int>(rows), k = static_cast<int>(columns);
  int failed = 0;
  const double time = gpu_.time([&] {
    failed |= l.gemm(l.dense, kAsIs, kAsIs, m, n, k, &one, b, kHalf, m, a, kHalf, k, &zero, c, kHalf, m, kCompute32,
                     kDefaultTensorOps);
  });
  return failed ? 0 : time;
}

double Peers::dense_samples(std::int64_t rows, std::int64_t columns, std::int64_t depth, const void* x, const void* y,
                            void* all) {
  const Libraries& l = *libraries_;
  if (!l.dense) return 0;
  const float one = 1, zero = 0;
  const int m = static_cast<int>(columns), n = static_cast<int>(rows), k = static_cast<int>(depth);
  int failed = 0;
  const double time = gpu_.time([&] {
    failed |= l.gemm(l.dense, kTransposed, kAsIs, m, n, k, &one, y, kHalf, k, x, kHalf, k, &zero, all, kHalf, m,
                     kCompute32, kDefaultTensorOps);
  });
  return failed ? 0 : time;
}

}  // namespace apl::bench
