// A matrix whose values are known when a program is compiled, for Module::known.
#pragma once

#include <string>

#include "ir/module.h"
#include "ir/sparse_arguments.h"

namespace apl {

// With the key by which a running program knows it again. Its values have the type of the entry's operand.
KnownMatrix known_matrix(const std::string& entry, const std::string& operand, HostCsr matrix);

}  // namespace apl
