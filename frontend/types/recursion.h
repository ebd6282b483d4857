// What the language forbids of recursive functions.
#pragma once

#include <optional>
#include <string>

#include "frontend/syntax/ast.h"

namespace apl::frontend {

struct Broken {
  Location location;
  std::string message;
};
std::optional<Broken> broken_rule_of_recursion(const Definition& definition);

}  // namespace apl::frontend
