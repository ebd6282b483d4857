#include "bench/sparse_gpu/peers.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "runtime/backends/cuda/library.h"

namespace apl::bench {

namespace {

// Constants of cusparse.h, cublas_v2.h and library_types.h.
constexpr int kHalf = 2, kFloat = 0;                    // CUDA_R_16F, CUDA_R_32F
constexpr int kIndex32 = 2, kFromZero = 0;              // CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO
constexpr int kByColumn = 1, kByRow = 2;                // CUSPARSE_ORDER_COL, CUSPARSE_ORDER_ROW
constexpr int kAsIs = 0, kTransposed = 1;               // CUSPARSE_OPERATION_NON_TRANSPOSE, CUBLAS_OP_N, _T
constexpr int kDefault = 0;                             // CUSPARSE_SPMM_ALG_DEFAULT
constexpr int kAlg1 = 4, kAlg2 = 6, kAlg3 = 12;         // CUSPARSE_SPMM_CSR_ALG1, _ALG2, _ALG3
constexpr int kCooAlg1 = 1, kCooAlg4 = 5;               // CUSPARSE_SPMM_COO_ALG1, _ALG4
constexpr int kCompute32 = 68, kDefaultTensorOps = 99;  // CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT_TENSOR_OP

int type_of(const Gpu& gpu) { return gpu.type() == ScalarType::f32 ? kFloat : kHalf; }

// A matrix as blocks of `size` by `size`: which there are in each row of blocks, and where each non-zero stands in
// those, row by row within a block.
struct Blocks {
  std::int64_t size = 0, most = 0;  // blocks in a row of blocks
  std::vector<std::int32_t> start, column, bsr_slot, ell_column, ell_slot;
};

Blocks blocks_of(const sparse::Csr& m, std::int64_t size) {
  Blocks made{size, 0, {0}, {}, {}, {}, {}};
  const std::int64_t rows = m.rows / size;
  std::vector<std::int32_t> number(static_cast<std::size_t>(m.columns / size));
  made.bsr_slot.resize(m.column.size());
  for (std::int64_t i = 0; i < rows; ++i) {
    std::vector<std::int32_t> here;
    for (std::int64_t k = m.row_start[static_cast<std::size_t>(i * size)];
         k < m.row_start[static_cast<std::size_t>((i + 1) * size)]; ++k)
      here.push_back(static_cast<std::int32_t>(m.column[static_cast<std::size_t>(k)] / size));
    std::sort(here.begin(), here.end());
    here.erase(std::unique(here.begin(), here.end()), here.end());
    for (std::size_t k = 0; k < here.size(); ++k)
      number[static_cast<std::size_t>(here[k])] = made.start.back() + static_cast<std::int32_t>(k);
    for (std::int64_t row = i * size; row < (i + 1) * size; ++row)
      for (std::int64_t k = m.row_start[static_cast<std::size_t>(row)];
           k < m.row_start[static_cast<std::size_t>(row) + 1]; ++k) {
        const std::int64_t column = m.column[static_cast<std::size_t>(k)];
        made.bsr_slot[static_cast<std::size_t>(k)] = static_cast<std::int32_t>(
            number[static_cast<std::size_t>(column / size)] * size * size + row % size * size + column % size);
      }
    made.column.insert(made.column.end(), here.begin(), here.end());
    made.start.push_back(static_cast<std::int32_t>(made.column.size()));
    made.most = std::max<std::int64_t>(made.most, static_cast<std::int64_t>(here.size()));
  }
  return made;
}

// The same where every row of blocks has as many; values are those of a dense array of rows, each as long.
void add_blocked_ell(const sparse::Csr& m, Blocks& blocks) {
  const std::int64_t size = blocks.size, pitch = blocks.most * size;
  blocks.ell_slot.resize(m.column.size());
  blocks.ell_column.assign(static_cast<std::size_t>(m.rows / size * blocks.most), -1);
  for (std::size_t i = 0; i + 1 < blocks.start.size(); ++i)
    std::copy(blocks.column.begin() + blocks.start[i], blocks.column.begin() + blocks.start[i + 1],
              blocks.ell_column.begin() + static_cast<std::ptrdiff_t>(i) * blocks.most);
  for (std::int64_t row = 0; row < m.rows; ++row)
    for (std::int64_t k = m.row_start[static_cast<std::size_t>(row)];
         k < m.row_start[static_cast<std::size_t>(row) + 1]; ++k) {
      const std::int64_t block = blocks.bsr_slot[static_cast<std::size_t>(k)] / (size * size) -
                                 blocks.start[static_cast<std::size_t>(row / size)];
      blocks.ell_slot[static_cast<std::size_t>(k)] =
          static_cast<std::int32_t>(row * pitch + block * size + m.column[static_cast<std::size_t>(k)] % size);
    }
}

}  // namespace

struct Peers::Libraries {
  void *sparse = nullptr, *dense = nullptr;  // handles
  int (*create_csr)(void**, std::int64_t, std::int64_t, std::int64_t, void*, void*, void*, int, int, int,
                    int) = nullptr;
  int (*create_coo)(void**, std::int64_t, std::int64_t, std::int64_t, void*, void*, void*, int, int, int) = nullptr;
  int (*create_bsr)(void**, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, void*, void*, void*,
                    int, int, int, int, int) = nullptr;
  int (*create_blocked_ell)(void**, std::int64_t, std::int64_t, std::int64_t, std::int64_t, void*, void*, int, int,
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

Peers::Peers(Gpu& gpu, bool formats) : gpu_(gpu), libraries_(std::make_unique<Libraries>()) {
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
    if (formats) {
      find(*library, "cusparseCreateCoo", l.create_coo);
      find(*library, "cusparseCreateBsr", l.create_bsr);
      find(*library, "cusparseCreateBlockedEll", l.create_blocked_ell);
    }
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
  } algorithms[] = {{"default", kDefault, false}, {"alg1", kAlg1, true}, {"alg2", kAlg2, true}, {"alg3", kAlg3, true}};
  for (const auto& algorithm : algorithms) {
    void *matrix = nullptr, *from = nullptr, *to = nullptr;
    const float one = 1, zero = 0;
    std::size_t bytes = 0;
    int failed = l.create_csr(&matrix, a.rows, a.columns, a.nonzeros, a.start, a.column, a.value, kIndex32, kIndex32,
                              kFromZero, type_of(gpu_));
    failed |= l.create_dense(&from, a.columns, width, width, const_cast<void*>(b), type_of(gpu_), kByRow);
    failed |= l.create_dense(&to, a.rows, width, width, c, type_of(gpu_), kByRow);
    failed |= l.spmm_size(l.sparse, kAsIs, kAsIs, &one, matrix, from, &zero, to, kFloat, algorithm.algorithm, &bytes);
    if (failed) continue;
    void* buffer = gpu_.scratch(static_cast<std::int64_t>(bytes), "cuSPARSE's buffer");
    if (algorithm.is_prepared)
      failed |=
          l.spmm_prepare(l.sparse, kAsIs, kAsIs, &one, matrix, from, &zero, to, kFloat, algorithm.algorithm, buffer);
    gpu_.poison(c, a.rows * width * gpu_.element());
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

std::vector<PeerTime> Peers::formats(const sparse::Csr& m, const OnDevice& a, const void* b, std::int64_t width,
                                     void* c, const void* wanted) {
  constexpr std::int64_t kMostStored = std::int64_t{1} << 28;  // elements
  std::vector<PeerTime> times;
  const Libraries& l = *libraries_;
  if (!l.sparse || !l.create_coo) return times;
  const int type = type_of(gpu_);
  const auto run = [&](const std::string& name, int algorithm, const std::function<int(void**)>& create) {
    void *matrix = nullptr, *from = nullptr, *to = nullptr;
    const float one = 1, zero = 0;
    std::size_t bytes = 0;
    if (create(&matrix) != 0) return;
    int failed = l.create_dense(&from, a.columns, width, width, const_cast<void*>(b), type, kByRow);
    failed |= l.create_dense(&to, a.rows, width, width, c, type, kByRow);
    failed |= l.spmm_size(l.sparse, kAsIs, kAsIs, &one, matrix, from, &zero, to, kFloat, algorithm, &bytes);
    if (failed == 0) {
      void* buffer = gpu_.scratch(static_cast<std::int64_t>(bytes), "cuSPARSE's buffer");
      // Not every format has something to prepare.
      l.spmm_prepare(l.sparse, kAsIs, kAsIs, &one, matrix, from, &zero, to, kFloat, algorithm, buffer);
      gpu_.poison(c, a.rows * width * gpu_.element());
      failed = l.spmm(l.sparse, kAsIs, kAsIs, &one, matrix, from, &zero, to, kFloat, algorithm, buffer);
      const double time = failed ? 0 : gpu_.time([&] {
        failed |= l.spmm(l.sparse, kAsIs, kAsIs, &one, matrix, from, &zero, to, kFloat, algorithm, buffer);
      });
      if (!failed) times.push_back({name, time, gpu_.error_of(c, wanted, a.rows * width)});
      need(gpu_.bridge().release(buffer));
    }
    l.destroy_sparse(matrix);
    if (from) l.destroy_dense(from);
    if (to) l.destroy_dense(to);
  };
  const std::uint64_t mark = gpu_.bridge().mark();
  std::vector<std::int32_t> row(m.column.size());
  for (std::int64_t i = 0; i < m.rows; ++i)
    std::fill(row.begin() + m.row_start[static_cast<std::size_t>(i)],
              row.begin() + m.row_start[static_cast<std::size_t>(i) + 1], static_cast<std::int32_t>(i));
  void* rows = gpu_.array(row, "rows");
  for (const int algorithm : {kCooAlg1, kCooAlg4})
    run(algorithm == kCooAlg1 ? "coo alg1" : "coo alg4", algorithm, [&](void** matrix) {
      return l.create_coo(matrix, a.rows, a.columns, a.nonzeros, rows, a.column, a.value, kIndex32, kFromZero, type);
    });
  for (const std::int64_t size : {8, 16, 32, 64}) {
    if (a.rows % size != 0 || a.columns % size != 0) continue;
    Blocks blocks = blocks_of(m, size);
    const auto stored = static_cast<std::int64_t>(blocks.column.size()) * size * size;
    const std::uint64_t here = gpu_.bridge().mark();
    if (stored <= kMostStored) {
      void* values = gpu_.scratch(stored * gpu_.element(), "values of blocks");
      void *start = gpu_.array(blocks.start, "starts of blocks"), *column = gpu_.array(blocks.column, "blocks");
      gpu_.clear(values, stored * gpu_.element());
      gpu_.place(a.value, gpu_.array(blocks.bsr_slot, "places in blocks"), a.nonzeros, values);
      run(fmt::format("bsr {}", size), kDefault, [&](void** matrix) {
        return l.create_bsr(matrix, a.rows / size, a.columns / size, static_cast<std::int64_t>(blocks.column.size()),
                            size, size, start, column, values, kIndex32, kIndex32, kFromZero, type, kByRow);
      });
      need(gpu_.bridge().release_since(here));
    }
    const std::int64_t pitch = blocks.most * size;
    if (a.rows * pitch > kMostStored || pitch > a.columns) continue;
    add_blocked_ell(m, blocks);
    void* values = gpu_.scratch(a.rows * pitch * gpu_.element(), "values of blocks");
    void* column = gpu_.array(blocks.ell_column, "blocks");
    gpu_.clear(values, a.rows * pitch * gpu_.element());
    gpu_.place(a.value, gpu_.array(blocks.ell_slot, "places in blocks"), a.nonzeros, values);
    run(fmt::format("blocked-ell {}", size), kDefault, [&](void** matrix) {
      return l.create_blocked_ell(matrix, a.rows, a.columns, size, pitch, column, values, kIndex32, kFromZero, type);
    });
    need(gpu_.bridge().release_since(here));
  }
  need(gpu_.bridge().release_since(mark));
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
                              kFromZero, type_of(gpu_));
    failed |= l.create_dense(&left, a.rows, depth, depth, const_cast<void*>(x), type_of(gpu_), kByRow);
    failed |= l.create_dense(&right, depth, a.columns, depth, const_cast<void*>(y), type_of(gpu_), kByColumn);
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
    failed |= l.gemm(l.dense, kAsIs, kAsIs, m, n, k, &one, b, type_of(gpu_), m, a, type_of(gpu_), k, &zero, c,
                     type_of(gpu_), m, kCompute32, kDefaultTensorOps);
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
    failed |= l.gemm(l.dense, kTransposed, kAsIs, m, n, k, &one, y, type_of(gpu_), k, x, type_of(gpu_), k, &zero, all,
                     type_of(gpu_), m, kCompute32, kDefaultTensorOps);
  });
  return failed ? 0 : time;
}

}  // namespace apl::bench
