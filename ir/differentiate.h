// Derivatives of functions, computed by rewriting the functions (automatic differentiation): each `Derivative` is
// replaced by statements that compute the function and, beside it, its tangents or cotangents.
//
// Forward mode: each statement is followed by one for the tangents of its results (dual numbers); reductions, scans and
// histograms fold pairs. Reverse mode: the function's statements, and then their transposes in reverse order, as in
// Schenck, Rønning, Henriksen, Oancea, AD for an Array Language with Nested Parallelism (SC 2022): bodies of maps and
// branches are computed once more where their cotangents are, and only loops keep what their parameters were.
#pragma once

#include "ir/module.h"

namespace apl {

bool holds_derivatives(const Module& module);
// The module without any `Derivative`; functions that one calls are inlined there. `remarks` may be empty.
// unsupported.construct: a loop whose arrays change size, or a scalar operation without derivative.
Result<Module> differentiate(const Module& module, const RemarkSink& remarks = {});

}  // namespace apl
