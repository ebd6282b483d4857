// What ptxas makes of kernels, without a GPU: nvcc compiles them.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "ir/diagnostic.h"

namespace apl {

struct KernelResources {
  int registers = 0;  // a thread
  int spilled = 0;    // bytes a thread: the more of what is stored and loaded
  int stack = 0;      // bytes a thread in memory: what spills, and arrays
};

// Of the kernels of a text in the language of device.h, by name. `architecture` is one of nvcc's, as "sm_90a".
// unsupported.backend: there is no nvcc; bug.internal, with its words: it refuses the text.
Result<std::map<std::string, KernelResources>> ask_ptxas(std::string_view kernels, const std::string& architecture,
                                                         const std::string& temporary_folder);

}  // namespace apl
