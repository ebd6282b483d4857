// Whether two modules give the same results: what the passes must keep, tried by the interpreter on random inputs.
#pragma once

#include "aplc/parameters.h"
#include "ir/module.h"

namespace aplc {

// Every entry of `before` on sizes 0, 1, primes and random ones. Codes: bug.internal with a counterexample;
// where nothing could be compared command.bad-argument, or what keeps the interpreter from running `before`.
apl::Status compare_results(const apl::Module& before, const apl::Module& after, const Parameters& parameters);

}  // namespace aplc
