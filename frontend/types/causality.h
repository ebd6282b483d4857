// Sizes that exist only once something is evaluated, such as the length of what `filter` gives, may not be needed
// before that: by a function that takes arrays of that size, or by an empty array whose rows have it.
#pragma once

#include "frontend/types/checked.h"
#include "ir/diagnostic.h"

namespace apl::frontend {

// Errors go to the sink; true if there was none.
bool check_causality(const Checked& program, const DiagnosticSink& sink);

}  // namespace apl::frontend
