#include "runtime/backends/host_memory.h"

#include <unistd.h>

#include <cstdlib>

namespace apl {

bool fits_host_memory(std::int64_t bytes) {
  const std::int64_t pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
  return bytes >= 0 && (pages <= 0 || page_bytes <= 0 || bytes / page_bytes < pages);
}

void* allocate_host_memory(std::int64_t bytes, std::size_t alignment) {
  if (!fits_host_memory(bytes)) return nullptr;
  return std::aligned_alloc(alignment, (static_cast<std::size_t>(bytes) / alignment + 1) * alignment);
}

}  // namespace apl
