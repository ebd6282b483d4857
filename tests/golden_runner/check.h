// Runs one golden file and compares.
#pragma once

#include <string>
#include <vector>

#include "passes/pass.h"
#include "tests/golden_runner/file.h"

namespace apl::golden {

struct Outcome {
  std::string recorded;               // what the file should record; empty if the run came to nothing
  std::vector<std::string> failures;  // each a text of one or more lines
};

// All checks but the comparison with what is recorded, which compare() makes.
Outcome run(const File& file, const PassRegistry& registry);
// Empty if the recorded part is the outcome's.
std::string compare(const File& file, const Outcome& outcome);

}  // namespace apl::golden
