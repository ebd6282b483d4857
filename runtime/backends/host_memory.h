// Memory of the host, for the backends that have no other.
#pragma once

#include <cstddef>
#include <cstdint>

namespace apl {

// A block of at least `bytes`, and at least one, aligned to a power of two; freed by std::free. Null if there is not so
// much memory: not more than the machine has, for the system would promise that and kill the process when it is used.
void* allocate_host_memory(std::int64_t bytes, std::size_t alignment);

}  // namespace apl
