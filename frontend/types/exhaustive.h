// Whether patterns match every value of a type, and which value they do not: the algorithm of Maranget, Warnings for
// pattern matching (JFP 2007), on patterns whose types are known.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "frontend/syntax/ast.h"
#include "frontend/types/types.h"

namespace apl::frontend {

struct Coverage {
  std::optional<std::string> missing;     // a value that none matches, as a pattern
  std::vector<const Pattern*> redundant;  // those that match nothing new
};

Coverage cover(const TypeStore& store, const std::vector<const Pattern*>& patterns, Ty type);

}  // namespace apl::frontend
