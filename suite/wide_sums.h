// Reductions in f64: the program that a result with long sums of f16 or f32 is compared with.
#pragma once

#include "ir/module.h"

namespace apl::suite {

// The module (of the soac stage) with all that is reduced, scanned or put into histograms as f16 or f32 converted to
// f64 before, reduced in f64, and converted back; so are loops that add scalars up. An operator that asks for bits, or
// does what is no arithmetic, stays as it is. The same module, with the same functions, if there is nothing to widen.
Module with_wide_sums(const Module& module);

}  // namespace apl::suite
