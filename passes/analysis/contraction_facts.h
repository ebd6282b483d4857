// What is said of a contraction to its author: einsum, classes, layouts, merged dims, and each condition with its
// outcome. Keys are stable.
#pragma once

#include "passes/analysis/contractions.h"

namespace apl {

using RemarkFacts = std::vector<std::pair<std::string, std::string>>;

// Groups of dims that are one: neighbours in the space, or in the reduction, that are adjacent in the memory of every
// operand and of the result where they occur. Each dim is in one group.
std::vector<std::vector<std::size_t>> merged_dims(const Contraction& contraction);

// Space dims along which the operand varies, outermost in its memory first: T's variance indices (eqs 25-26).
std::vector<std::size_t> variance_indices(const Contraction& contraction, const ContractionOperand& operand);

// einsum, dims, merged, operands, operator, and what stands before and after.
RemarkFacts contraction_facts(const Contraction& contraction, const Function& function);

// "condition.NAME": "holds: why" or "fails: why", for the firing conditions of a complete match.
RemarkFacts firing_facts(const Contraction& contraction, const ValueTable& values);

// The same for what is refused: as much as is known.
RemarkFacts refusal_facts(const Refusal& refusal, const Function& function);

}  // namespace apl
