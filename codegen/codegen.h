// From a module at the memory stage to the text of a program.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/module.h"

namespace apl {

enum class Target : std::uint8_t {
  c,     // C11 with OpenMP, kernels are functions of the file
  cuda,  // C11 host code and CUDA C++ kernels, for the GPU and for emulation
};

struct CodegenOptions {
  std::map<std::string, std::int64_t> parameters;  // values of get_size; else the default in the node
};

struct KernelInfo {
  std::string name;
  std::int64_t threads = 0;       // a block
  std::int64_t shared_bytes = 0;  // a block
  Location location;
};

struct ProgramText {
  std::string host;     // one C11 file; for cuda with the kernels' text in `apl_kernel_text`
  std::string kernels;  // CUDA C++; empty for c
  std::vector<KernelInfo> kernel_infos;
};

// `module` is at the memory stage and verified. Same text for the same input every time. What code generation
// cannot do yet is an error of code unsupported.construct with the statement's place.
Result<ProgramText> generate(const Module& module, Target target, const CodegenOptions& options = {});

}  // namespace apl
