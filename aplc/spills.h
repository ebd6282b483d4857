// What kernels of contractions spill, by nvcc's ptxas, before a program is loaded.
#pragma once

#include <string>

#include "codegen/emit/kernel_file.h"

namespace aplc {

// Of an H100 or H200 (nvcc's name).
inline constexpr const char* kUsualArchitecture = "sm_90a";

// Bytes of memory a thread that kernels take where registers do not suffice: what a driver says of them when they are
// loaded, and plans are dropped for.
apl::SpillCheck spill_check(std::string architecture);

}  // namespace aplc
