// When two pieces of IR are the same up to the names of what they bind inside: equal keys, equal meaning.
#pragma once

#include <string>

#include "ir/module.h"
#include "ir/walk.h"

namespace apl {

// Free values appear by number, so keys compare only within one function.
std::string structural_key(const Op& op, const ValueTable& values);
std::string structural_key(const Lambda& lambda, const ValueTable& values);
// The key with free values replaced; what replaces a value is not replaced in turn by anything but itself.
std::string structural_key(const Op& op, const Substitution& same, const ValueTable& values);

}  // namespace apl
