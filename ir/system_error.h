// Errors of the operating system as diagnostics.
#pragma once

#include <string_view>

#include "ir/diagnostic.h"

namespace apl {

// `WHAT: No space left on device` for a value of errno. machine.io where a disk, a pipe or a device fails,
// machine.resources where the machine has run out of something, command.no-such-file where another name or other rights
// would do.
Diagnostic system_error(int error, std::string_view what);

}  // namespace apl
