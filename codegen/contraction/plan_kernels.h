// Kernels of one contraction, one for each plan, among which generated host code chooses.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "codegen/contraction/plan_data.h"
#include "codegen/lower/lower.h"
#include "machine/tiles/plan.h"

namespace apl::lower {

struct PlanKernels {
  PlanData data;
  std::vector<apl_plan> plans;
  std::vector<std::int64_t> resident;  // of each plan: blocks a multiprocessor that the model counts on; 0: any number
  std::string name;                    // of the kernel's result: what variables begin with
  bool open = false;                   // the choice is made in the host code that stands before
  // Of one_plan: what its better plans spill, and whether there is one behind it.
  std::vector<int> passed_over;
  bool has_next = false;
};

// Of all contractions of a function that are to have several, by the kernel's first result. Throws Unsupported with
// command.bad-parameter where numbers that the user gave cannot work.
std::map<Value, std::shared_ptr<PlanKernels>> find_plan_kernels(Unit& unit, const CodegenOptions& options);

// Initialiser of a struct apl_contraction.
std::string contraction_text(const PlanData& data, Values& host);
// Initialiser of a struct apl_plan.
std::string plan_text(const PlanData& data, const apl_plan& plan);

// The kernel of one plan for the device, of the contraction that `data` is of, in the language of device.h.
std::string plan_kernel_text(const Module& module, const apl::Function& function, const PlanData& data,
                             const apl_plan& plan, Target target, const apl_device& device);

// The kernel's statement with the plan's numbers: those of the tiles go to the unit, the others to the schedule.
Stm with_plan(const Stm& stm, const PlanData& data, const apl_plan& plan, Unit& unit);

}  // namespace apl::lower
