// Operators on rows become operators on elements, inside maps over the rows' dims.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "ir/module.h"

namespace apl {

// Arrays that repeat one scalar.
using Replicated = std::map<Value, Operand>;
Replicated find_replicated(const Body& body, const ValueTable& values);

// The statements of a reduction, scan, histogram or scatter whose rows are taken apart, the last of which binds the
// pattern of `stm`; null if it works on scalars, or its operator is not a map over the rows.
std::optional<std::vector<Stm>> take_rows_apart(const Stm& stm, const Replicated& replicated, ValueTable& values);

}  // namespace apl
