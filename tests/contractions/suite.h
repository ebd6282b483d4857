// The contractions that are measured on GPUs (bench/contractions_gpu.py): products of matrices, those of the thesis of
// rank 6, and TCCG's, in f32, f64 and f16 with sums in f32.
#pragma once

#include <string>
#include <vector>

#include "ir/diagnostic.h"
#include "tests/testing.h"

namespace apl::contraction_tests {

// A program of one entry, and the sizes that its plan is chosen for.
struct Measured {
  std::string entry, source;
  testing::Sizes sizes;
};

// Types of factors and sums, as f16 and h16 (sums in f32, and in f16), and forms of the code after the reduction, as
// added (alpha*s + beta*C).
std::vector<std::string> suite_kinds();
std::vector<std::string> suite_forms();

// `tccg`: bench/tccg48.txt.
Result<std::vector<Measured>> measured_suite(const std::string& tccg, const std::vector<std::string>& kinds,
                                             const std::vector<std::string>& forms);

}  // namespace apl::contraction_tests
