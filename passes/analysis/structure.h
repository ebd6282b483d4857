// When two pieces of IR are the same up to the names of what they bind inside: equal keys, equal meaning.
#pragma once

#include <string>

#include "ir/module.h"

namespace apl {

// Free values appear by number, so keys compare only within one function.
std::string structural_key(const Op& op, const ValueTable& values);
std::string structural_key(const Lambda& lambda, const ValueTable& values);

}  // namespace apl
