// From a module at the memory stage to the text of a program.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/module.h"
#include "machine/target/target.h"

namespace apl {

// Which of L's reductions a proxy has (codegen/sparse/proxy.h).
struct ProxyOptions {
  std::int64_t clusters = 0;  // functions of all sections (5.1.2); 0: each section has its own
  bool truncates = true;      // loops end after min(N_NC, 300 / (1 - sparsity)) loads (5.1.3)
  // A kernel for GPUs has N1 as an argument, and stands for the tiles of all N1 (5.1.1); `columns` is then the largest.
  bool any_columns = false;
  // Blocks that run the same function read other rows of B, as the sections that it stands for do (GPUs): else caches
  // would hold for all what one of them has read.
  bool moves_rows = false;
};

struct CodegenOptions {
  std::map<std::string, std::int64_t> parameters;  // values of get_size; else the default in the node
  // With more than one, a contraction has up to as many kernels, for different tile numbers (12 at most; those that are
  // given stay), and chooses among them when sizes are known. The defaults in the nodes are then not looked at.
  int plans = 1;
  // One kernel for each contraction, and no choice when it runs: the best for these sizes, by the names that the entry
  // gives them; for large ones where one is missing.
  bool one_plan = false;
  std::map<std::string, std::int64_t> sizes;
  // Of one_plan: what kernels of its best plans spill, in bytes a thread, by the contraction's name
  // (KernelFile::Contraction): these are passed over. If no other is left the best one stays.
  std::map<std::string, std::vector<int>> passed_over;
  // Products with known matrices as proxies: programs that are timed, and give wrong results.
  std::optional<ProxyOptions> proxy;
  std::string device;  // for which plans are chosen: a name or file of machine/target/records.h; "": h200, or cpu for c
};

struct KernelInfo {
  std::string name;
  std::int64_t threads = 0;       // a block
  std::int64_t shared_bytes = 0;  // a block
  Location location;
};

// A number by which the user can ask for some of a contraction's plans.
struct ProgramParameter {
  std::string name;  // "mm.T_a"
  std::string kind;  // tile_size, reg_tile_size, stages
};

struct ProgramText {
  std::string host;     // one C11 file; for cuda with the kernels' text in `apl_kernel_text`
  std::string kernels;  // CUDA C++, all of them; empty for c
  std::vector<KernelInfo> kernel_infos;
  std::vector<ProgramParameter> parameters;
  bool has_plans = false;         // some contraction has a kernel for each plan
  bool has_lazy_kernels = false;  // `host` has apl_lazy_kernels
  bool has_constants = false;     // and apl_constants
  bool has_kernels = false;       // and apl_kernel_text is not empty
  bool has_threads = false;       // `host` includes threads.h: loops or products that may run in parallel
};

// `module` is at the memory stage and verified. Same text for the same input every time. What code generation
// cannot do yet is an error of code unsupported.construct with the statement's location.
Result<ProgramText> generate(const Module& module, Target target, const CodegenOptions& options = {});

}  // namespace apl
