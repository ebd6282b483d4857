// `aplc tune --cover`: a few plans of each contraction for many sizes, by the model, as numbers that the compiler
// takes.
#pragma once

#include <string>
#include <vector>

#include "aplc/explain_plan.h"

namespace aplc {

struct CoverOptions {
  int most = APL_MAX_PLANS;  // plans of a contraction
  double within = 1.1;       // of each size's best plan, by the model
  int random = 64;           // sizes of every magnitude, beside those of the datasets
};

// "mm.plan1.T_a" and so on for all contractions of the module, at the memory stage. `datasets`: entries with the sizes
// of their datasets. What they reach is printed.
Parameters covering_numbers(const apl::Module& module, const std::vector<std::pair<std::string, Sizes>>& datasets,
                            const apl_device& device, const CoverOptions& options);

}  // namespace aplc
