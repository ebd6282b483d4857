// One entry as a file of plain CUDA or HIP: its kernels and a function that launches them, to paste into another
// project.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "codegen/codegen.h"

namespace apl {

struct KernelFile {
  std::string text;     // all of it: C++ of the target's dialect, on its own or as a part of another file
  std::string kernels;  // what the kernels are in the language of device.h
  std::string host;     // the function, with what it calls, but for kernels
};

// What a compiler says of these kernels (KernelFile::kernels): bytes a thread that each spills, by its name.
// unsupported.backend: there is no compiler to ask.
using SpillCheck = std::function<Result<std::map<std::string, int>>(const std::string& kernels)>;

// The standard pipeline as kernel files want it: they call no functions of the program, so that all are expanded.
std::string with_calls_expanded(std::string pipeline);

// `module` is at the memory stage; `entry` may be empty if there is only one. The function takes the sizes, the
// arguments (arrays in device memory), where results go, and a stream; docs/embedding.md has the details. Scalar
// parameters and results of 16-bit floats are unsupported.construct. Contractions have one plan: see
// CodegenOptions::sizes. Where `check` says that the kernel of a plan spills the next one is taken, if there is one
// that does not; the file's head says so.
Result<KernelFile> generate_kernel_file(const Module& module, std::string_view entry, const CodegenOptions& options,
                                        const Target& target = cuda_target(), const SpillCheck& check = nullptr);

}  // namespace apl
