// A plan's groups as the kernels for GPUs run them, so that a plan says what will run.
#pragma once

#include <vector>

#include "passes/sparse/cost.h"
#include "passes/sparse/plan.h"

namespace apl::sparse {

// SpMM: of every 32 rows in which something is selected all rows and columns are windows, of the one height that has
// most of the selected rows, and the profile's costs say that there is; the others are gathered, or nnz segments as
// before. SDDMM: windows of 8 rows if half of the groups have selections, else nnz segments, all alike.
std::vector<GroupPlan> as_run(const std::vector<GroupPlan>& groups, Operator op, const CostModel& model);

}  // namespace apl::sparse
