// Operators that work on rows element by element, and the maps that make such rows.
#pragma once

#include <optional>
#include <vector>

#include "ir/module.h"

namespace apl {

// The map that an operator consists of: it streams both rows, and its results are the operator's. Null if the operator
// does anything else.
const Screma* row_map(const ReduceOp& reduce, const ValueTable& values);

// The statements of a lambda's body that make rows whose elements can be made one by one, and all others. Rows are made
// by maps of the rows' width, by what repeats a scalar or row, and by branches between such.
struct RowMakers {
  std::vector<const Stm*> makers;
  Body others;
  // Values of the others that the elements need; all are scalars if it costs more than reading them to compute the
  // others again (is_cheap).
  std::vector<Value> shared;
  bool cheap = true;
};

// nullopt: the elements of a row cannot be made one by one, or what they share would cost more than it does once.
// `width` is that of the rows.
std::optional<RowMakers> row_makers(const Body& body, const std::vector<Poly>& width, const ValueTable& values);

// The same for the body of a reduction's lambda; `rows` is the operator's row_map.
std::optional<RowMakers> row_makers(const Screma& reduction, const Screma& rows, const ValueTable& values);

// Whether the reduction, of one operator and no mapped arrays, can be done column by column, all columns at once.
bool reduces_by_columns(const Screma& reduction, const ValueTable& values);

}  // namespace apl
