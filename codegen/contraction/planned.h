// The contractions of a compiled program, with sizes where they are known: which of its kernels runs, and how long that
// takes by the model of tiles.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "codegen/contraction/plan_data.h"
#include "machine/tiles/plan.h"

namespace apl {

struct PlannedContraction {
  std::string entry;
  PlanData data;
  std::optional<apl_contraction> contraction;  // if its sizes are known
  // Its other variants that are tiled (enum apl_variant), if the program leaves that open: in parts of its reduction,
  // with operands that are transposed before. What is left to tile of each, if sizes are known.
  struct Variant {
    PlanData data;
    std::optional<apl_contraction> contraction;
  };
  std::map<int, Variant> variants;
  bool has_variants = false;
  int only = 0;  // the variant that the user asks for
  apl_forced forced{};
  std::map<std::string, std::int64_t> given;  // by the user
};

// Of all entries, or of one. `module` is at the memory stage; `sizes` are by name, also of scalar parameters, and those
// that are not given are unknown.
std::vector<PlannedContraction> find_planned(const Module& module, const std::string& entry,
                                             const std::map<std::string, std::int64_t>& sizes,
                                             const std::map<std::string, std::int64_t>& given);

// What runs of a contraction whose sizes are known.
struct ChosenKernel {
  PlannedContraction shown;                  // the contraction, one of its parts, or the one of transposed operands
  std::vector<apl_plan> candidates;          // its kernels
  std::optional<apl_variant_choice> choice;  // among variants, where the program leaves one open
  // With joining its parts; operands that are transposed before are kernels of their own. None: no plan works.
  std::optional<double> seconds;
  std::optional<apl_plan> plan;  // none where a thread has a point, or a micro-kernel its panels
};
// `most`: kernels that the program may have of a contraction.
ChosenKernel choose_kernel(const PlannedContraction& planned, const Function& function, const apl_device& device,
                           int most);

}  // namespace apl
