// Kernels behind a check that failed in an earlier one: they run before the host learns of it, on arrays in which
// anything may stand.
#pragma once

#include "ir/module.h"

namespace apl {

// Whether what stands in arrays decides where the kernel, a SegOp or a Scatter of the host, reads or writes without a
// check, or how often a loop in it runs: then anything in them may lead it out of bounds, or keep it from ending.
bool may_stray(const Op& kernel, const ValueTable& values);

// The same of some statements of a kernel, beside which `apart` stands.
bool may_stray_beside(const Body& body, const Stm& apart, const ValueTable& values);

}  // namespace apl
