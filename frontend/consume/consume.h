// Whether a program that has types also keeps Futhark's rules of consumption: what was consumed is not used again,
// and what `*` promises is nobody else's.
#pragma once

#include "frontend/types/checked.h"
#include "ir/diagnostic.h"

namespace apl::frontend {

// Errors go to the sink; true if there was none.
bool check_consumption(const Checked& program, const DiagnosticSink& sink);

}  // namespace apl::frontend
