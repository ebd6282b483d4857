// Textual IR in. Inverse of ir/print.h; grammar in docs/ir.md.
#pragma once

#include <string>
#include <string_view>

#include "ir/module.h"

namespace apl {

// `file` is for messages. Errors have code ir.syntax and a location. The result is not yet verified.
Result<Module> parse_module(std::string_view text, std::string file);

}  // namespace apl
