// The CUDA driver's API, as much as is used of it, found at run time.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ir/diagnostic.h"

namespace apl::cuda {

#include "runtime/backends/cuda/functions.h"

typedef struct CUgraph_st* CUgraph;
typedef struct CUgraphExec_st* CUgraphExec;

// What measuring uses, and generated libraries do not; null where a driver lacks it.
#define APL_CUDA_GRAPH_FUNCTIONS(X)                                                                \
  X(capture_begin, "cuStreamBeginCapture_v2", (CUstream, int))                                     \
  X(capture_end, "cuStreamEndCapture", (CUstream, CUgraph*))                                       \
  X(graph_instantiate, "cuGraphInstantiateWithFlags", (CUgraphExec*, CUgraph, unsigned long long)) \
  X(graph_launch, "cuGraphLaunch", (CUgraphExec, CUstream))                                        \
  X(graph_exec_destroy, "cuGraphExecDestroy", (CUgraphExec))                                       \
  X(graph_destroy, "cuGraphDestroy", (CUgraph))

struct Driver {
#define APL_CUDA_DECLARE(member, symbol, parameters) int(*member) parameters = nullptr;
  APL_CUDA_FUNCTIONS(APL_CUDA_DECLARE)
  APL_CUDA_GRAPH_FUNCTIONS(APL_CUDA_DECLARE)
#undef APL_CUDA_DECLARE

  bool has_graphs() const {
    return capture_begin && capture_end && graph_instantiate && graph_launch && graph_exec_destroy && graph_destroy;
  }

  // Found and started. unsupported.backend if there is none.
  static Result<Driver> open(const std::vector<std::string>& folders);

  // "CUDA: WHAT: cudaErrorName (text)"; run.out-of-memory or bug.internal.
  Status check(int result, const std::string& what) const;
  Diagnostic error(int result, const std::string& what) const;
};

// Makes a context current on this thread, and what was current before again at the end.
class CurrentContext {
 public:
  CurrentContext(const Driver& driver, CUcontext context) : driver_(driver) {
    is_pushed_ = driver.context_push(context) == 0;
  }
  ~CurrentContext() {
    CUcontext ignored = nullptr;
    if (is_pushed_) driver_.context_pop(&ignored);
  }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

 private:
  const Driver& driver_;
  bool is_pushed_ = false;
};

}  // namespace apl::cuda
