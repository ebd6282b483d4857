#include "machine/target/target.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "machine/target/records.h"

namespace apl {
namespace {

constexpr Dialect kDialects[] = {
    {.name = "c", .title = "C", .embeds = true, .record = "cpu"},
    {.name = "cuda",
     .title = "CUDA",
     .on_device = true,
     .embeds = true,
     .record = "h200",
     .macro = "__CUDACC__",
     .api = "cuda",
     .header = "cuda_runtime.h",
     .half_header = "cuda_fp16.h",
     .kernel_as = "{}",
     .usual_shared_bytes = 49152},
    {.name = "hip",
     .title = "HIP",
     .on_device = true,
     .record = "mi300",
     .macro = "__HIP__",
     .api = "hip",
     .header = "hip/hip_runtime.h",
     .half_header = "hip/hip_fp16.h",
     .kernel_as = "reinterpret_cast<const void *>({})",
     .usual_shared_bytes = 65536,
     .bounds_have_blocks = false},
};

}  // namespace

std::vector<std::string_view> dialect_names() {
  std::vector<std::string_view> names;
  for (const Dialect& dialect : kDialects) names.push_back(dialect.name);
  return names;
}

const Dialect* find_dialect(std::string_view name) {
  for (const Dialect& dialect : kDialects)
    if (dialect.name == name) return &dialect;
  return nullptr;
}

const Dialect& c_dialect() { return kDialects[0]; }

Result<Target> find_target(const std::string& name) {
  const Dialect* named = find_dialect(name);
  auto device = find_device(named != nullptr ? std::string(named->record) : name);
  if (!device) return std::move(device).error();
  Target target;
  target.device = named != nullptr ? std::string(named->record) : name;
  target.dialect = find_dialect(device->dialect);
  if (target.dialect == nullptr)
    return make_error(
        Code::command_bad_argument, {},
        fmt::format("{}: no dialect `{}`; there are {}", name, device->dialect, fmt::join(dialect_names(), ", ")));
  target.block_shared = device->block_shared;
  target.has_mainloop = device->mainloop != 0;
  if (target.on_device()) {
    target.warp = device->warp;
    target.has_async_copies = device->async_copies != 0;
    target.has_matrix_units = device->matrix_units != 0;
  }
  return target;
}

Target c_target() { return *find_target("c"); }
Target cuda_target() { return *find_target("cuda"); }
Target hip_target() { return *find_target("hip"); }

}  // namespace apl
