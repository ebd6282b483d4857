// Backend emulate: the same kernel text as cuda's, on the CPU, every access checked. Its promise: a program that passes
// has no race, no access out of bounds and no read of an undefined element for these inputs, in any order of threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/backends/backend.h"
#include "runtime/backends/toolchain.h"

namespace apl {

struct EmulateOptions {
  std::string compiler = "c++";  // for the kernels
  std::uint64_t seed = 1;        // of the order of blocks and threads
  std::string device;  // whose plans are emulated: a name or file of machine/target/records.h; empty: as usual
  Workplace workplace;
};

std::unique_ptr<Backend> make_emulate_backend(EmulateOptions options);

}  // namespace apl
