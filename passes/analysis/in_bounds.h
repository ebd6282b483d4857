// Whether reads are in bounds for all indices of the dims around them.
#pragma once

#include "ir/module.h"

namespace apl {

// An index that exists says that its dim's size is positive.
void know_index(SizeFacts& facts, Value index, const Poly& size);

bool surely_in_bounds(const Index& index, const ValueTable& values, const SizeFacts& facts);

// Whether the statement can be done where it is not asked for, under what is known of the indices around it: it cannot
// fail, ends, relies on no check, reads in bounds, and makes no arrays but views.
bool is_harmless(const Stm& stm, const ValueTable& values, SizeFacts facts);

}  // namespace apl
