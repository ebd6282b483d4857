// What code is generated for.
#pragma once

#include <cstdint>

namespace apl {

enum class Target : std::uint8_t {
  c,     // C11 with OpenMP, kernels are functions of the file
  cuda,  // C11 host code and CUDA C++ kernels, for the GPU and for emulation
};

}  // namespace apl
