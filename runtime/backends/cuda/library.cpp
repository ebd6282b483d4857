#include "runtime/backends/cuda/library.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace apl::cuda {

namespace {

constexpr const char* kUsualFolders[] = {
    "/usr/local/cuda/lib64",
    "/usr/local/cuda/targets/x86_64-linux/lib",
    "/usr/local/cuda/targets/sbsa-linux/lib",
    "/opt/cuda/lib64",
    "/usr/lib/cuda/lib64",
    "/usr/local/nvidia/lib64",
    "/usr/lib/wsl/lib",
};

}  // namespace

Result<void*> open_library(const std::vector<std::string>& names, const std::vector<std::string>& folders) {
  constexpr int kFlags = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;
  for (const std::string& folder : folders)
    for (const std::string& name : names)
      if (void* handle = dlopen(fmt::format("{}/{}", folder, name).c_str(), kFlags)) return handle;
  for (const std::string& name : names)
    if (void* handle = dlopen(name.c_str(), kFlags)) return handle;
  for (const char* folder : kUsualFolders)
    for (const std::string& name : names)
      if (void* handle = dlopen(fmt::format("{}/{}", folder, name).c_str(), kFlags)) return handle;
  return make_error(
      Code::unsupported_backend, {},
      fmt::format("{} is not on this machine; backends c, emulate and interp do without it", names.front()));
}

}  // namespace apl::cuda
