// Copies of syntax trees whose expressions and patterns have ids of their own, so that what is found out about one copy
// does not overwrite what was found out about another.
#pragma once

#include "frontend/syntax/ast.h"

namespace apl::frontend {

// `program` says which ids are taken.
ModuleLambda clone(const ModuleLambda& lambda, Program& program);

}  // namespace apl::frontend
