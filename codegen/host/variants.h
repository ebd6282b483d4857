// The variants of a contraction (tile-contraction's `variants`), and the host code that chooses one.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "codegen/contraction/plan_kernels.h"
#include "codegen/kernel/writer.h"

namespace apl::lower {

// One contraction: `if variant == 2 { parts } else if variant == 3 { untiled } else { tiled }`.
struct Variants {
  Value variant, splits;  // what get_size gives; `splits`: none if it is never split
  std::shared_ptr<PlanKernels> tiled, parts;
  int only = 0;                                    // the one that the user asks for
  std::string name;                                // of the set; empty until the choice is made
  std::vector<std::string> kernels[APL_VARIANTS];  // beside those of plans
};

// By the value of `variant`; where there are no plans there is nothing to choose. Their numbers are no constants then.
std::map<Value, std::shared_ptr<Variants>> find_variants(
    Unit& unit, const CodegenOptions& options, const std::map<Value, std::shared_ptr<PlanKernels>>& plan_kernels);

// The choice, before the branches, and the declaration of its set, when all kernels are known.
void write_choice(Variants& variants, Unit& unit, Values& values, Writer& out);
void declare_variants(const Variants& variants, Target target, Writer& declarations);

}  // namespace apl::lower
