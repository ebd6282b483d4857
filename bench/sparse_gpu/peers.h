// cuSPARSE and cuBLAS, found at run time, for the same products in the same process.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/sparse_gpu/gpu.h"

namespace apl::bench {

struct PeerTime {
  std::string name;
  double microseconds = 0, error = 0;
};

// A matrix on the device: 32-bit row starts and columns, f16 values.
struct OnDevice {
  std::int64_t rows, columns, nonzeros;
  void *start, *column, *value;
};

class Peers {
 public:
  explicit Peers(Gpu& gpu);  // does without the libraries that are not there
  ~Peers();

  // All that could run, each checked against `wanted`: SpMM by default, ALG2 and ALG3, the latter two after their
  // preprocessing. `c` is scratch.
  std::vector<PeerTime> spmm(const OnDevice& a, const void* b, std::int64_t width, void* c, const void* wanted);
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
