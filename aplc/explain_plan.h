// The plans of a program's contractions, for `aplc explain` and `aplc tune`: what runs for given sizes, and why.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "aplc/driver.h"
#include "codegen/contraction/planned.h"
#include "codegen/emit/kernel_file.h"
#include "ir/host_value.h"
#include "machine/target/records.h"
#include "passes/pass.h"

namespace aplc {

using apl::find_planned;
using apl::PlannedContraction;

// Numbers for a function's sizes, by name: those given (`--size n=1024`, also of scalar parameters).
using Sizes = std::map<std::string, std::int64_t>;

// The arguments of an entry's first dataset in the program's test blocks; nullopt if there is none that can be read.
std::optional<std::vector<apl::HostValue>> first_inputs(const std::string& file, const std::string& text,
                                                        const apl::Function& entry);
// The sizes of an entry's first dataset in the program's test blocks; empty if there is none that can be read.
Sizes first_dataset(const std::string& file, const std::string& text, const apl::Function& entry);
// What arguments of these shapes make of an entry's sizes.
Sizes sizes_of(const apl::Function& entry, const std::vector<apl::HostValue>& inputs);

// "T_a=16 R_a=8 T_q=16 stages=3", with all names or those other than 1.
std::string numbers_text(const PlannedContraction& planned, const apl::Function& function, const apl_plan& plan);

// What runs of one contraction.
struct ExplainedPlan {
  apl::Remark remark;             // of kind analysis
  std::optional<double> seconds;  // none where sizes are not known
  bool tiled = false;
  std::optional<apl_contraction> contraction;  // that the plan is of: of one part, where the reduction is split
  apl_plan plan{};
  apl_plan_cost cost{};
  std::vector<std::string> operands;  // names
  std::string parameters;             // what the names of its parameters begin with: "mm."
  std::string variant;                // the alternative that runs, where the program has several: "split"
  int dropped = 0;                    // plans that the model prefers, and whose kernels spill
};
// Where `check` is given it is asked what the kernels of chosen plans spill, as a program asks when it loads them.
std::vector<ExplainedPlan> explained_plans(const apl::Module& module, const apl::Function& entry, const Sizes& sizes,
                                           const apl_device& device, const Parameters& given,
                                           const apl::SpillCheck& check = nullptr);
// The remarks of all contractions.
std::vector<apl::Remark> explain_plans(const apl::Module& module, const Sizes& sizes, const std::string& file,
                                       const std::string& text, const apl_device& device, const Parameters& given,
                                       const apl::SpillCheck& check = nullptr);

}  // namespace aplc
