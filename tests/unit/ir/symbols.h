// Names for the first values, as polynomials: what tests of sizes and layouts are written in.
#pragma once

#include "ir/poly.h"

namespace apl::testing_symbols {

inline const Poly n = Value{0};
inline const Poly m = Value{1};
inline const Poly b = Value{2};
inline const Poly i = Value{3};
inline const Poly j = Value{4};
inline const Poly k = Value{5};

}  // namespace apl::testing_symbols
