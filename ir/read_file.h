// Reading files whole.
#pragma once

#include <string>

#include "ir/diagnostic.h"

namespace apl {

// The bytes of a file, or of standard input ("-"). Code command.no-such-file for folders and devices without an end,
// else that of system_error.
Result<std::string> read_bytes(const std::string& name);

}  // namespace apl
