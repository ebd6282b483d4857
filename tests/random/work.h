// The work of generated C, counted: basic blocks that run, and words that are copied. No clock has a say in it.
#pragma once

#include <cstdint>

#include "tests/batch/batch.h"

namespace apl::random_tests {

// Compiles C such that its calls are counted in counted_work(). An error where no temporary file can be written.
Result<testing::LoadModule> load_counting(const std::string& compiler);

// Of all calls so far, by all threads.
std::int64_t counted_work();

// The work that a program may do at a larger size: as many times the work at a smaller size as the source does there,
// twice that for what threads and vectors' remainders add, and a constant.
constexpr std::int64_t most_work(std::int64_t smaller, std::int64_t source_smaller, std::int64_t source_larger) {
  return 2 * smaller * source_larger / source_smaller + 2000;
}

}  // namespace apl::random_tests
