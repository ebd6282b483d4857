// --plan A=M.plan: plans for the sparse operands of programs.
#pragma once

#include <string>
#include <vector>

#include "aplc/sparse/arguments.h"
#include "ir/module.h"
#include "runtime/program/program.h"

namespace aplc::sparse {

extern const char* const kPlanHelp;

// Reads what stands behind --plan. Errors: no `NAME=FILE`, or an operand that no entry of the module says is sparse
// (command.bad-argument), a file that is not there (command.no-such-file).
apl::Result<std::vector<apl::SparsePlan>> read_plans(const std::vector<std::string>& texts, const apl::Module& module);

// The entry without `#[sparse(operand)]`; null if its result has the operand's pattern.
apl::FunctionPtr without_request(const apl::Function& function, const std::string& operand);

// Where all plans for an operand say `form dense` the entry takes it as a dense matrix, so that the program's own dense
// product is compiled. A result with the operand's pattern keeps it sparse: then, and wherever else a plan changes
// nothing, a remark says so. To be called before the passes.
struct PlacedPlans {
  std::vector<apl::SparsePlan> tiles;  // for the program
  std::vector<apl::SparsePlan> dense;  // those that were followed
};
PlacedPlans apply_dense_plans(apl::Module& module, std::vector<apl::SparsePlan> plans, const apl::RemarkSink& remarks);
// Whether plans that were followed are for these arguments, which are those of the function before the passes
// (run.argument).
apl::Status check_dense_plans(const apl::Function& function, const std::vector<apl::SparsePlan>& dense,
                              const std::vector<apl::HostValue>& values, const GivenMatrices& matrices);

// One line on stderr.
void print_plan_remark(const apl::Remark& remark);

}  // namespace aplc::sparse
