// Folds of what contractions give, with an array between the two.
#pragma once

#include <optional>

#include "ir/module.h"

namespace apl {

struct PairArrays {
  Stm map;        // the same map, in which the contractions are maps of their own
  Poly elements;  // of the largest array between, in all
};

// `flat`, a map, with each fold over a sum apart from the sums; nullopt: there is none.
std::optional<PairArrays> make_pair_arrays(const Stm& flat, ValueTable& values);

}  // namespace apl
