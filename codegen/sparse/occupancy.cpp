#include "codegen/sparse/occupancy.h"

#include <algorithm>

#include "machine/tiles/plan.h"

namespace apl {

std::int64_t active_blocks(const BlockNeeds& needs, const apl_device& device) {
  const std::int64_t warp = std::max(1, device.warp);
  const std::int64_t warps = (needs.threads + warp - 1) / warp;
  const std::int64_t multiprocessors = std::max(1, device.multiprocessors);
  // Registers are given to a warp by 256.
  constexpr std::int64_t kRegisterUnit = 256;
  const std::int64_t registers =
      (std::max<std::int64_t>(1, needs.registers) * warp + kRegisterUnit - 1) / kRegisterUnit * kRegisterUnit * warps;
  const std::int64_t shared = needs.shared_bytes + device.reserved_shared;
  std::int64_t active = (needs.blocks + multiprocessors - 1) / multiprocessors;
  const auto limit = [&](std::int64_t capacity, std::int64_t use) {
    if (capacity > 0 && use > 0) active = std::min(active, capacity / use);
  };
  limit(device.registers, registers);
  limit(device.multiprocessor_threads, warps * warp);
  limit(device.multiprocessor_blocks, 1);
  limit(device.multiprocessor_shared, shared);
  return std::max<std::int64_t>(1, active);
}

std::int64_t proxy_shared_bytes(const BlockNeeds& proxy, std::int64_t active, const apl_device& device) {
  if (active_blocks(proxy, device) <= active) return proxy.shared_bytes;
  constexpr std::int64_t kUnit = 128;
  const std::int64_t bytes = (device.multiprocessor_shared / active - device.reserved_shared) / kUnit * kUnit;
  return std::max(proxy.shared_bytes, std::min<std::int64_t>(bytes, device.block_shared));
}

}  // namespace apl
