// Runs products by plans on this machine's GPU, for searches that choose by measurement.
#pragma once

#include <cstdint>
#include <memory>

#include "ir/diagnostic.h"
#include "ir/scalar.h"
#include "passes/sparse/matrix.h"
#include "passes/sparse/plan.h"

namespace aplc::sparse {

class OnDevice {
 public:
  // The matrix must outlive this. unsupported.backend where there is no device.
  static apl::Result<std::unique_ptr<OnDevice>> make(const apl::sparse::Csr& matrix,
                                                     const apl::sparse::Problem& problem, apl::ScalarType type);
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

  // Nanoseconds of the runtime's kernels with the plan, all operands zeros, or of the dense product as `aplc run`
  // compiles it; 0 if they cannot be run: without memory, of a very large dense product.
  double operator()(const apl::sparse::Plan& plan);

 private:
  struct State;
  explicit OnDevice(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace aplc::sparse
