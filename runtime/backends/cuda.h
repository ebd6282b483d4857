// Backend cuda: the driver's API alone, found at run time, and kernels compiled by NVRTC for the device that is there.
// Building needs no CUDA, and programs run on machines without it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/backends/backend.h"
#include "runtime/backends/toolchain.h"

namespace apl {

struct CudaOptions {
  int device = 0;
  // A CUstream of the device's primary context, which stays the caller's; null: a stream of our own.
  void* stream = nullptr;
  // Folders to look for libcuda and libnvrtc in, before the loader's own and a toolkit's usual ones.
  std::vector<std::string> library_folders;
  std::vector<std::string> flags;  // more flags for NVRTC
  Workplace workplace;             // cache and log; keep_folder gets kernels.cu and kernels.cubin
  bool has_lines = true;           // source lines for profilers, in machine code; long for straight-line kernels
};

// unsupported.backend where there is no driver or no device.
Result<std::unique_ptr<Backend>> make_cuda_backend(CudaOptions options);

// NVRTC alone, which needs no device: kernel text to machine code for an architecture ("sm_90"). bug.internal with the
// compiler's log if it refuses, unsupported.backend if NVRTC is not there.
Result<std::string> compile_with_nvrtc(std::string_view kernel_text, const std::string& architecture,
                                       const CudaOptions& options = {});

}  // namespace apl
