// Runs products by plans on this machine's GPU, for searches that choose by measurement.
#pragma once

#include <cstdint>
#include <memory>

#include "ir/diagnostic.h"
#include "ir/scalar.h"
#include "machine/tiles/plan.h"
#include "passes/sparse/matrix.h"
#include "passes/sparse/plan.h"

namespace aplc::sparse {

class OnDevice {
 public:
  // The matrix and the device's record must outlive this. unsupported.backend where there is no device.
  static apl::Result<std::unique_ptr<OnDevice>> make(const apl::sparse::Csr& matrix,
                                                     const apl::sparse::Problem& problem, apl::ScalarType type,
                                                     const apl_device& device);
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

  // Nanoseconds of the runtime's kernels with the plan, all operands zeros; 0 if they cannot be run: of a dense
  // product, without memory.
  double operator()(const apl::sparse::Plan& plan);

 private:
  struct State;
  explicit OnDevice(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace aplc::sparse
