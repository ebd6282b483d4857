// What a machine lacks (a compiler, a device) is a skip with its reason, never a pass.
#pragma once

#include <string>

namespace tests {

// Says that the rest of this case was not run. The program then ends with 77, which CTest shows as skipped, if nothing
// failed. Such cases are in a test suite named after what they need ("nvrtc", "nvcc", "device"), and CTest has one
// entry for each suite.
void skip(const std::string& reason);

}  // namespace tests
