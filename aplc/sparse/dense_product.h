// The product that a plan means which says `form dense`, as a program: what `aplc run` compiles in its place.
#pragma once

#include <cstdint>

#include "ir/scalar.h"
#include "passes/sparse/plan.h"
#include "runtime/program/program.h"

namespace aplc::sparse {

// One entry, `product`, of A with all of its zeros and B[columns][width], or of A, X[rows][depth] and
// Y[columns][depth]; sums of f16 and bf16 are in f32, results in the elements' type, of bf16 in f32.
apl::Result<apl::Program> dense_product(apl::ScalarType type, apl::sparse::Operator op, apl::ProgramOptions options);

// What it takes on the usual GPU by the model that chooses its tiles; of a library where it has none of the type.
double dense_microseconds(apl::ScalarType type, bool sddmm, std::int64_t rows, std::int64_t columns,
                          std::int64_t width);

}  // namespace aplc::sparse
