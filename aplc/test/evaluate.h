// Runs the tests of one program; in a child process, since programs may crash or hang.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "aplc/test/children.h"
#include "aplc/test/program.h"

namespace aplc {

// Runs the numbered tests. `send` gets a line when one starts and one with its result, or one with a result for all
// that are left; apply_line understands them.
void evaluate(const TestedProgram& plan, const std::vector<std::size_t>& tests, const TestOptions& options,
              const std::function<void(std::string_view)>& send);

// Notes what a line says.
struct Applied {
  std::size_t started = std::string::npos;  // the number of the test that starts with it
  Clock clock = Clock::unchanged;           // runs: what goes on is a run of the program
};
Applied apply_line(TestedProgram& plan, std::string_view line);

}  // namespace aplc
