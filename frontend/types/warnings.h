// What is worth saying about a program that has types.
#pragma once

#include "frontend/types/checked.h"
#include "ir/diagnostic.h"

namespace apl::frontend {

// `#[warn(safety_checks)]` on what is checked when the program runs, `#[unroll]` on loops of unknown length, ranges
// that cannot have elements, and attributes that are unknown or have no effect.
void warn_about(const Checked& program, const DiagnosticSink& sink);

}  // namespace apl::frontend
