// The emulated device's global memory: allocations, each with its shadow.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "runtime/backends/emulate/shadow.h"

namespace apl::emulate {

struct Allocation {
  std::string what;
  Shadow shadow;
  std::unique_ptr<unsigned char, void (*)(void*)> data{nullptr, nullptr};

  std::int64_t offset_of(const void* address) const { return static_cast<const unsigned char*>(address) - data.get(); }
};

class Memory {
 public:
  // Undefined bytes; null if there is no memory.
  void* allocate(std::int64_t bytes, const char* what);
  bool release(void* data);  // false if `data` is no allocation
  // The allocation that holds `address` (its end counts too, for arrays without elements); null if there is none.
  Allocation* find(const void* address);

 private:
  using Key = std::uintptr_t;
  std::map<Key, Allocation> allocations_;
  // Kernels use few arrays, each very often.
  struct Recent {
    const void* base = nullptr;
    Allocation* allocation = nullptr;
  };
  std::array<Recent, 16> recent_;
};

}  // namespace apl::emulate
