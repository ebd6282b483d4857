// The work of generated C, counted: basic blocks that run, and words that are copied. No clock has a say in it.
#pragma once

#include <cstdint>

#include "tests/batch/batch.h"

namespace apl::random_tests {

// Compiles C such that its calls are counted in counted_work(). An error where no temporary file can be written.
Result<testing::LoadModule> load_counting(const std::string& compiler);

// Of all calls so far, by all threads.
std::int64_t counted_work();

// What four times the size may cost: for linear work four times as much and what threads and vectors' remainders add.
constexpr std::int64_t most_linear_work(std::int64_t at_quarter) { return 5 * at_quarter + 2000; }

}  // namespace apl::random_tests
