// A device profile of this machine, from measurements (STile, algorithm 1).
#pragma once

#include "passes/sparse/profile.h"

namespace apl::sparse {

// One worker is one core running the reference executor. Takes some seconds.
Profile calibrate(const std::string& name);

}  // namespace apl::sparse
