// cuBLAS, found at run time, for those who ask for it (docs/sparse.md).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/backends/backend.h"

namespace apl::cuda {

class Cublas {
 public:
  // For the context that is current. unsupported.backend where the library is not there, or does not start.
  static Result<std::unique_ptr<Cublas>> open(const std::vector<std::string>& folders);
  ~Cublas();
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;

  // Sums in f32, or f64 for f64; never by tf32. unsupported.backend for other types, and for sizes of more than 31
  // bits.
  Status multiply(const DenseProduct& product, void* stream) const;

 private:
  struct Functions;
  explicit Cublas(std::unique_ptr<Functions> functions);
  std::unique_ptr<Functions> functions_;
};

}  // namespace apl::cuda
