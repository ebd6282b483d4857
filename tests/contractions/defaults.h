// What runs when nothing is given: random contractions of rank up to 10 with sizes of every kind, by the plan and way
// that the model chooses. Every one must launch; what the driver says of its local memory is counted.
#pragma once

#include <functional>

#include "tests/contractions/thesis.h"

namespace apl::contraction_tests {

// The contraction of a seed.
Spec default_spec(std::uint64_t seed, bool small);

// Prints failures, kernels that spill, and a last line; true if all were launched, and none spills in the end.
bool run_defaults(const ThesisOptions& options, const std::function<bool()>& stop);

}  // namespace apl::contraction_tests
