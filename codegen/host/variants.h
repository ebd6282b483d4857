// The variants of a contraction (tile-contraction's `variants`), and the host code that chooses one.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "codegen/contraction/plan_kernels.h"
#include "codegen/kernel/writer.h"

namespace apl::lower {

// One contraction's `choose`.
struct Variants {
  Value splits;                                                  // what get_size gives; none if it is never split
  std::array<std::shared_ptr<PlanKernels>, APL_VARIANTS> plans;  // by enum apl_variant; null: it has none
  int only = 0;                                                  // the one that the user asks for
  std::string name, number;                        // of the set, and the variable; empty until the choice is made
  std::vector<std::string> kernels[APL_VARIANTS];  // beside those of plans

  const PlanKernels& tiled() const { return *plans[APL_VARIANT_TILED]; }
};

// In the order of the program; where there are no plans there is nothing to choose. How often a reduction is split is
// no constant then. Refuses a variant that the model does not know.
std::vector<std::pair<const Choose*, std::shared_ptr<Variants>>> find_variants(
    Unit& unit, const CodegenOptions& options, const std::map<Value, std::shared_ptr<PlanKernels>>& plan_kernels);

// Whether the model of tiles chooses: the alternatives are variants of one contraction, without conditions.
bool is_of_variants(const Choose& choose);
// A variant that is asked for by number, and that the contraction does not have: command.bad-parameter, with those that
// it has.
std::optional<Diagnostic> refuse_variant(const Choose& choose, Location location,
                                         const std::map<std::string, std::int64_t>& parameters);
// enum apl_variant, or 0: the model knows no variant of the alternative's name.
int variant_number(const Choose::Alternative& alternative);

// The choice, before the branches, and the declaration of its set, when all kernels are known.
void write_choice(Variants& variants, Unit& unit, Values& values, Writer& out);
void declare_variants(const Variants& variants, Target target, Writer& declarations);

}  // namespace apl::lower
