// Reshapes that the sizes of a call make impossible.
//
//   fun as[n, m](xs: [n]f32): [m]f32 = { let c = assert(n == m)  let ys = #{c} reshape(xs, [m])  in {ys} }
// called with an array of 3 elements for one of 2:
//   let c = assert(3 == 2)  let ys = #{c} replicate([2], 0.0f32)
#pragma once

#include "ir/module.h"

namespace apl::inlining {

// `x :> [m]t` is a check that the sizes are the same, and a reshape. Where they are proved to differ, the check fails,
// and no array has both shapes: an array of zeros stands for the reshape's result. The same body, if none is.
BodyPtr without_impossible_reshapes(const BodyPtr& body, const ValueTable& values);

}  // namespace apl::inlining
