// --plan A=M.plan: plans for the sparse operands of programs.
#pragma once

#include <optional>
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

// --use-cublas.
extern const char* const kCublasHelp;

// The entry without `#[sparse(operand)]`.
apl::FunctionPtr without_request(const apl::Function& function, const std::string& operand);
// Whether it is asked that the result has the operand's pattern, `#[sparse(operand, result)]`.
bool has_its_result(const apl::Function& function, const std::string& operand);
// The elements of a dense result at a pattern's non-zeros; nothing if there is another that is not 0.
std::optional<apl::HostCsr> at_nonzeros(const apl::HostValue& dense, const apl::HostCsr& pattern);

// Where all plans for an operand say `form dense` the entry takes it as a dense matrix, so that the program's own dense
// product is compiled, and its result is dense, too; a remark says so. To be called before the passes.
struct PlacedPlans {
  std::vector<apl::SparsePlan> tiles;  // for the program
  std::vector<apl::SparsePlan> dense;  // those that were followed
};
PlacedPlans apply_dense_plans(apl::Module& module, std::vector<apl::SparsePlan> plans, const apl::RemarkSink& remarks);
// The same for a program that is to run on `backend`. With --use-cublas the program stays sparse, and the runtime runs
// cuBLAS for such plans. command.bad-argument where it cannot, and where no plan says `form dense`.
apl::Result<PlacedPlans> place_plans(apl::Module& module, std::vector<apl::SparsePlan> plans, bool use_cublas,
                                     const std::string& backend, const apl::RemarkSink& remarks);
// Those for the matrices of a call, whose arguments are those of the function before the passes; for operands that are
// not among these all. run.argument where there are plans for an operand, but none for its matrix.
apl::Result<std::vector<apl::SparsePlan>> plans_of_call(const apl::Function& function,
                                                        const std::vector<apl::SparsePlan>& texts,
                                                        const std::vector<apl::HostValue>& values,
                                                        const GivenMatrices& matrices);
// Whether plans that were followed are for these arguments, which are those of the function before the passes
// (run.argument).
apl::Status check_dense_plans(const apl::Function& function, const std::vector<apl::SparsePlan>& dense,
                              const std::vector<apl::HostValue>& values, const GivenMatrices& matrices);

// One line on stderr.
void print_plan_remark(const apl::Remark& remark);

}  // namespace aplc::sparse
