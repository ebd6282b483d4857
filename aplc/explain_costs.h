// The kernels of a function, how often each is launched, and how long that takes: of contractions as their plans say,
// of others a rough prediction from what they read and write, what they compute, and how long one thread's chain of
// steps is.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "aplc/explain_plan.h"

namespace aplc {

struct KernelCost {
  const apl::Function* function = nullptr;  // whose host code launches it: the entry, or what it calls
  const apl::Stm* statement = nullptr;      // of the function
  apl::Location location;
  std::optional<double> seconds;  // of all its launches; none where a size is not known
  double launches = 0;
  // What is not known of them: how often a loop runs that they are in (`launches` is of one iteration then); how long
  // loops of the kernel are, which its elements decide (`seconds` counts one step); whether a branch is taken that they
  // are in, or another side of it that takes longer and counts.
  bool unknown_rounds = false, unknown_work = false, unknown_branch = false, other_side = false;
  std::string contraction = {};         // of a plan: what the names of its parameters begin with
  bool is_sparse = false;               // over the non-zeros of an operand
  double bytes = 0, operations = 0;     // of one launch
  bool reduces = false, scans = false;  // whether its threads do, one after the other
  bool chunks = false;                  // whether it does a part of a reduction or scan
  bool holds_rows = false;              // whether its teams hold the rows that they work on
  std::string shares = {};              // how its threads share a reduction or scan, if several blocks may
  std::string version = {};             // of those that a choice by sizes has, and why
  std::string kind = {};                // what the version is: "attention", "reduction of pairs"
};

// The kernels that the host of a function, and of those that it calls, launches with these sizes, in the order of the
// program. Branches whose condition the sizes decide are followed, of others the dearer side counts. Plans are those of
// the function's contractions.
std::vector<KernelCost> kernel_costs(const apl::Module& module, const apl::Function& function, const Sizes& sizes,
                                     const Parameters& parameters, const apl_device& device,
                                     const std::vector<ExplainedPlan>& plans);

}  // namespace aplc
