// The product that a plan means which says `form dense`, as a program: what `aplc run` compiles in its place.
#pragma once

#include <cstdint>

#include "ir/scalar.h"
#include "machine/tiles/plan.h"
#include "passes/sparse/plan.h"
#include "runtime/program/program.h"

namespace apl::sparse {

// One entry, `product`, of A with all of its zeros and B[columns][width], or of A, X[rows][depth] and
// Y[columns][depth]; sums of f16 and bf16 are in f32, results in the elements' type, of bf16 in f32.
Result<Program> dense_product(ScalarType type, Operator op, ProgramOptions options);

// What it takes on a GPU by the model that chooses its tiles; of a library where that has none of the type.
double dense_microseconds(const apl_device& device, ScalarType type, Operator op, std::int64_t rows,
                          std::int64_t columns, std::int64_t width);
double library_microseconds(const apl_device& device, ScalarType type, Operator op, std::int64_t rows,
                            std::int64_t columns, std::int64_t width);

}  // namespace apl::sparse
