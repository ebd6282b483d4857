// What `aplc explain` says of sparse operands: the products over their non-zeros, by which kernels and plans, and how
// long they take by the models.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "aplc/explain_plan.h"
#include "passes/pass.h"
#include "passes/sparse/matrix.h"
#include "passes/sparse/profile.h"
#include "runtime/program/program.h"

namespace aplc::sparse {

struct ExplainedMatrix {
  std::string file;
  apl::sparse::Csr matrix;
};
// OPERAND=@FILE; errors as for arguments of `aplc run`.
apl::Result<std::map<std::string, ExplainedMatrix>> read_explained(const std::vector<std::string>& texts);

struct ComparedPlans {
  std::string title, operand;  // "SpMM over the non-zeros of `A`"
  bool is_given = false;
  std::string plan;                                   // as text
  std::vector<std::pair<std::string, double>> times;  // nanoseconds of all that were compared, the fastest first
};

struct ExplainRequest {
  const std::map<std::string, ExplainedMatrix>& matrices;
  const std::vector<apl::SparsePlan>& plans;
  std::function<Sizes(const apl::Function&)> sizes;  // by name
  const apl::sparse::Profile& profile;
  std::string device;    // the one that was asked for; empty: the profile's
  bool gpu = true;       // the module was compiled for one
  bool measure = false;  // on this machine's CPU
  bool use_cublas = false;
  // May be empty: called for each product whose matrix is known, with the plan that was given for it or that a short
  // search finds.
  std::function<void(const ComparedPlans&)> compared{};
};
// A remark of "kind analysis" for each product of a module at the memory stage. Error run.argument: a plan that is not
// for its matrix.
apl::Result<std::vector<apl::Remark>> explain_products(const apl::Module& module, const ExplainRequest& request);

}  // namespace aplc::sparse
