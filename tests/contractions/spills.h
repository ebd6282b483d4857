// Whether default plans spill, without a GPU: of random contractions of rank up to 10 (those of defaults.h) the kernels
// that the model chooses are compiled by nvcc for an H200, 50 a translation unit, and ptxas says what each takes.
#pragma once

#include <functional>

#include "tests/contractions/suite.h"
#include "tests/contractions/thesis.h"

namespace apl::contraction_tests {

// Prints each kernel that spills with its plan, and a last line; true if no chosen kernel does in the end: what spills
// is replaced by the next plan, as in a running program. With `every_plan` all kernels are compiled that a program
// could choose, and each is printed beside the registers that the model predicts.
bool run_spills(const ThesisOptions& options, bool every_plan, const std::function<bool()>& stop);

// The same of the contractions that are measured, or every so manieth of them, and of the `first_plans` plans that a
// program would try; true if none of these kernels spills.
bool run_suite_spills(const std::vector<Measured>& suite, std::size_t every, std::size_t batch, bool print,
                      std::size_t first_plans, const std::function<bool()>& stop);

}  // namespace apl::contraction_tests
