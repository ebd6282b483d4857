// Commands of the user that say whether a file shows a failure, for `aplc bisect` and `aplc reduce`.
#pragma once

#include <string>

#include "ir/diagnostic.h"

namespace aplc {

struct CommandOutcome {
  int exit_code = 0;  // of a signal: 128 and its number, as shells say
  bool timed_out = false;
  std::string errors;  // what it wrote to standard error
};

// Runs `/bin/sh -c command` without input and drops its standard output. After `seconds` it is ended with all that it
// started. Codes as of system_error.
apl::Result<CommandOutcome> run_command(const std::string& command, double seconds);

// The command with `{}` replaced by the file's name, quoted for the shell; without `{}` the name comes last.
std::string command_on(const std::string& command, const std::string& file);

}  // namespace aplc
