// Plans that a program's caller gives for sparse operands: read once, held against the matrices of each call.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/sparse_arguments.h"
#include "runtime/program/program.h"
#include "runtime/sparse/sparse.h"

namespace apl::program {

struct GivenPlan {
  std::string operand, source;
  std::shared_ptr<const apl_sparse_plan> plan;
};
// Code syntax.error, with the source's name.
Result<std::vector<GivenPlan>> read_plans(const std::vector<SparsePlan>& texts);

// Error run.argument: all plans of an operand say `form dense`, which a program that was compiled for a sparse operand
// cannot follow without a library of products.
Status check_followed(const std::vector<GivenPlan>& plans);

// Those of an operand that are for this matrix; more than one if some are for other operators. Error run.argument where
// there are plans, but none for it: it says what differs.
Result<std::vector<const GivenPlan*>> plans_for(const std::vector<GivenPlan>& plans, const std::string& operand,
                                                const apl_sparse_csr& matrix);

// The rows of a sparse operand that an entry is called with, as far as its fields say them.
std::optional<CsrPattern> rows_of_soa(const SparseSoa& soa, const std::vector<HostValue>& values);

// What became of a plan in a call.
struct PlanUse {
  const GivenPlan* plan = nullptr;
  bool used = false;
  std::string why;  // it was not used, or what of it was
};
// `otherwise` stands for an empty reason.
Remark plan_remark(const PlanUse& use, std::string_view entry, const std::string& otherwise);

}  // namespace apl::program
