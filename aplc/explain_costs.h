// A rough prediction of kernels that are no contractions: what they read and write, what they compute, and how long one
// thread's chain of steps is.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "aplc/explain_plan.h"

namespace aplc {

struct KernelCost {
  const apl::Stm* statement = nullptr;  // of the function
  apl::Location location;
  std::optional<double> seconds;  // of all its launches; none where a size is not known
  double launches = 0;
  double bytes = 0, operations = 0;     // of one launch
  bool reduces = false, scans = false;  // whether its threads do, one after the other
  bool chunks = false;                  // whether it does a part of a reduction or scan
  bool holds_rows = false;              // whether its teams hold the rows that they work on
  std::string shares = {};              // how its threads share a reduction or scan, if several blocks may
  std::string version = {};             // of those that a choice by sizes has, and why
  std::string kind = {};                // what the version is: "attention", "reduction of pairs"
};

// The kernels that the host of a function launches with these sizes. Branches whose condition the sizes decide are
// followed, of others the dearer one counts; loops of unknown length count once.
std::vector<KernelCost> kernel_costs(const apl::Function& function, const Sizes& sizes, const Parameters& parameters,
                                     const apl_device& device);

}  // namespace aplc
