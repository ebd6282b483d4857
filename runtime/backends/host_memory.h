// Memory of the host, for the backends that have no other.
#pragma once

#include <cstddef>
#include <cstdint>

namespace apl {

// Whether the machine has so much memory: the system would promise more, and kill the process when it is used.
bool fits_host_memory(std::int64_t bytes);

// A block of at least `bytes`, and at least one, aligned to a power of two; freed by std::free. Null if it does
// not fit, or there is not so much memory.
void* allocate_host_memory(std::int64_t bytes, std::size_t alignment);

}  // namespace apl
