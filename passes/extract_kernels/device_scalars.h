// Scalars that kernels make and only kernels read.
#pragma once

#include <vector>

#include "ir/module.h"

namespace apl {

// The body, null if nothing changes, and the statements of the host that read elements and are gone.
struct DeviceScalars {
  BodyPtr body;
  std::vector<Stm> gone;
};
DeviceScalars keep_scalars_on_device(const BodyPtr& body, ValueTable& values);

}  // namespace apl
