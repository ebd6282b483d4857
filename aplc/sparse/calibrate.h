// Measures a GPU for the models of sparse products: runs kernels of every kind on matrices of many, and fits the
// figures of its record.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "ir/diagnostic.h"
#include "ir/scalar.h"
#include "machine/tiles/plan.h"

namespace aplc::sparse {

struct Calibration {
  apl_device start{};  // whose figures are varied
  apl::ScalarType type = apl::ScalarType::f16;
  double seconds = 120;  // stop measuring after so many
  std::function<void(const std::string&)> progress;
};

// Lines of a record, and comments that say by how much the model errs: on the matrices that it was fitted to, and on
// the others. unsupported.backend where there is no device.
apl::Result<std::string> calibrate(const Calibration& how);

}  // namespace aplc::sparse
