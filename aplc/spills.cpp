#include "aplc/spills.h"

#include <memory>
#include <utility>

#include "aplc/cleanup.h"
#include "runtime/backends/cuda/ptxas.h"

namespace aplc {

apl::SpillCheck spill_check(std::string architecture) {
  using Spilled = apl::Result<std::map<std::string, int>>;
  auto known = std::make_shared<std::map<std::string, Spilled>>();
  return [known, architecture = std::move(architecture)](const std::string& kernels) -> Spilled {
    if (const auto found = known->find(kernels); found != known->end()) return found->second;
    const auto folder = WorkFolder::make();
    if (!folder) return folder.error();
    const auto asked = apl::ask_ptxas(kernels, architecture, folder->path());
    std::map<std::string, int> spilled;
    if (asked)
      for (const auto& [kernel, resources] : *asked) spilled[kernel] = resources.stack;
    return known->emplace(kernels, asked ? Spilled(std::move(spilled)) : Spilled(asked.error())).first->second;
  };
}

}  // namespace aplc
