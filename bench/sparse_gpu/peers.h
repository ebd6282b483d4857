// cuSPARSE and cuBLAS, found at run time, for the same products in the same process.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/sparse_gpu/gpu.h"
#include "passes/sparse/matrix.h"

namespace apl::bench {

struct PeerTime {
  std::string name;
  double microseconds = 0, error = 0;
};

// A matrix on the device: 32-bit row starts and columns, values of the type of the Gpu.
struct OnDevice {
  std::int64_t rows, columns, nonzeros;
  void *start, *column, *value;
};

class Peers {
 public:
  // Does without the libraries that are not there. `formats`: those that `formats` below asks for.
  Peers(Gpu& gpu, bool formats);
  ~Peers();

  // All that could run, each checked against `wanted`: SpMM by default, and ALG1, ALG2 and ALG3 after their
  // preprocessing. `c` is scratch.
  std::vector<PeerTime> spmm(const OnDevice& a, const void* b, std::int64_t width, void* c, const void* wanted);
  // Other formats of the same matrix, SpMM: coordinates, and BSR and blocked ELL for every size of blocks from 8 to 64
  // that divides rows and columns, where what they store is not too large.
  std::vector<PeerTime> formats(const sparse::Csr& matrix, const OnDevice& a, const void* b, std::int64_t width,
                                void* c, const void* wanted);
  std::vector<PeerTime> sddmm(const OnDevice& a, const void* x, const void* y, std::int64_t depth, void* result,
                              const void* wanted);
  // cuBLAS with all zeros stored, or with all products made; 0 without it. Its numbers are not looked at.
  double dense(std::int64_t rows, std::int64_t columns, std::int64_t width, const void* a, const void* b, void* c);
  double dense_samples(std::int64_t rows, std::int64_t columns, std::int64_t depth, const void* x, const void* y,
                       void* all);

 private:
  struct Libraries;
  Gpu& gpu_;
  std::unique_ptr<Libraries> libraries_;
};

}  // namespace apl::bench
