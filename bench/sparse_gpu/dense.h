// What a plan runs that says `form dense`: this compiler's own product, of a program without #[sparse].
#pragma once

#include <memory>

#include "ir/scalar.h"
#include "passes/sparse/matrix.h"

namespace apl::bench {

class DenseProducts {
 public:
  DenseProducts(ScalarType type, bool emulated);
  ~DenseProducts();
  DenseProducts(const DenseProducts&) = delete;
  DenseProducts& operator=(const DenseProducts&) = delete;

  struct Ran {
    double microseconds = 0;  // of the kernels by the device's clock; 0 in emulation
    double error = 0;         // |results - wanted| / |wanted| of some rows
  };
  Ran spmm(const sparse::Csr& matrix, std::int64_t width);
  Ran sddmm(const sparse::Csr& matrix, std::int64_t depth);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace apl::bench
