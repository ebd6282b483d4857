// Owners of what the runtime makes.
#pragma once

#include <memory>

#include "runtime/sparse/sparse.h"

namespace apl::sparse {

struct PlanDeleter {
  void operator()(apl_sparse_plan* plan) const { apl_sparse_plan_free(plan); }
};
struct TilesDeleter {
  void operator()(apl_sparse_tiles* tiles) const { apl_sparse_tiles_free(tiles); }
};
using PlanPointer = std::unique_ptr<apl_sparse_plan, PlanDeleter>;
using TilesPointer = std::unique_ptr<apl_sparse_tiles, TilesDeleter>;

}  // namespace apl::sparse
