// How tests call the machine's C compiler: by default with the flags that users get, those of Program::load.
#pragma once

#include <string>
#include <vector>

#include "ir/diagnostic.h"
#include "runtime/program/program.h"
#include "tests/command_line.h"

namespace apl::testing {

struct CompilerOptions {
  std::string compiler = "cc";
  std::string machine = "native";  // of -march=
  std::vector<std::string> flags;  // after those of users, and stronger than them

  // --cc, --march, --c-flags.
  void add_to(CommandLine& line);
  // The same as a text, for the command that repeats a run; empty where all are as users have them.
  std::string text() const;
  ProgramOptions program_options() const;
};

// Whether this processor runs what the compiler makes for the machine. unsupported.backend says what the processor
// lacks, or what the compiler said.
Status check_machine(const CompilerOptions& options);

}  // namespace apl::testing
