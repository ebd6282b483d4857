// How many blocks of a kernel a multiprocessor holds, and what its proxy needs for the same number (L section 5.2).
#pragma once

#include <cstdint>

struct apl_device;

namespace apl {

// A launch, as far as it decides that.
struct BlockNeeds {
  std::int64_t blocks = 0;  // of the launch
  std::int64_t threads = 0;
  std::int64_t registers = 0;     // a thread
  std::int64_t shared_bytes = 0;  // of a block
};

// L's NUM_ATB (equation 5), with the limits that it leaves out: threads, blocks and shared memory of a multiprocessor.
// At least one.
std::int64_t active_blocks(const BlockNeeds& needs, const apl_device& device);

// Shared memory of a proxy's block, of which a multiprocessor then holds no more than `active` (equation 6): what it
// has itself where that is enough. L's constant is what the device takes for each block.
std::int64_t proxy_shared_bytes(const BlockNeeds& proxy, std::int64_t active, const apl_device& device);

// Registers a thread of kernels whose pieces are functions. A kernel's number is not known before it is compiled, but
// ptxas of CUDA 13.0 gave all of them 32.
inline constexpr std::int64_t kCalledRegisters = 32;

}  // namespace apl
