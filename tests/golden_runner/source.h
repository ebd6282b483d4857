// The input of a golden file as a module.
#pragma once

#include "ir/module.h"
#include "tests/golden_runner/file.h"

namespace apl::golden {

// Futhark source goes through the frontend, textual IR through the parser. The error carries the input's path.
Result<Module> input_module(const File& file);

}  // namespace apl::golden
