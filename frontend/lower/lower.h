// A checked program to IR of the soac stage: first-order, monomorphic, arrays of tuples as tuples of arrays.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "frontend/types/checked.h"
#include "ir/module.h"

namespace apl::frontend {

// One function for each entry, and for each instance of a definition that they call with first-order arguments.
// Takes the types apart in place. Errors (`unsupported.*`) go to the sink; nullopt if there was one.
// `parameters`: values of expressions marked #[param(name)]. `safe`: #[unsafe] means nothing.
std::optional<Module> lower_program(Checked& checked, const std::map<std::string, std::int64_t>& parameters, bool safe,
                                    const DiagnosticSink& sink);

}  // namespace apl::frontend
