#include "runtime/backends/emulate/memory.h"

#include <cstdlib>
#include <cstring>
#include <utility>

#include "runtime/backends/host_memory.h"

namespace apl::emulate {

namespace {
constexpr std::size_t kAlignment = 256;  // as cuMemAlloc's
constexpr int kPoison = 0xa5;            // so that what an undefined byte holds is the same in every run
}  // namespace

void* Memory::allocate(std::int64_t bytes, const char* what) {
  // One byte more than needed: no two allocations touch, so an address belongs to one of them.
  void* data = bytes < 0 ? nullptr : allocate_host_memory(bytes + 1, kAlignment);
  if (!data) return nullptr;
  std::memset(data, kPoison, static_cast<std::size_t>(bytes));
  Allocation allocation;
  allocation.what = what ? what : "";
  allocation.shadow.reset(bytes, false);
  allocation.data = {static_cast<unsigned char*>(data), std::free};
  allocations_[reinterpret_cast<Key>(data)] = std::move(allocation);
  return data;
}

bool Memory::release(void* data) {
  recent_ = {};
  return allocations_.erase(reinterpret_cast<Key>(data)) != 0;
}

Allocation* Memory::find(const void* address) {
  Recent& recent = recent_[reinterpret_cast<Key>(address) / kAlignment % recent_.size()];
  if (recent.base == address && recent.allocation) return recent.allocation;
  auto after = allocations_.upper_bound(reinterpret_cast<Key>(address));
  if (after == allocations_.begin()) return nullptr;
  Allocation& allocation = std::prev(after)->second;
  if (allocation.offset_of(address) > allocation.shadow.bytes()) return nullptr;
  recent = {address, &allocation};
  return &allocation;
}

}  // namespace apl::emulate
