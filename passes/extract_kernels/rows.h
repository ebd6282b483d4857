// What is done with each row of an array, in teams of threads that hold the row.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/module.h"
#include "passes/extract_kernels/segment_order.h"

namespace apl {

// A map in one kernel, and when that may run and pays.
struct RowsTogether {
  std::vector<Stm> before;  // of the host: the condition and what it needs
  Value fits;
  std::vector<Stm> kernel;
  std::vector<Value> results;
  std::size_t operations = 0;  // maps, reductions and scans in it
  Poly width;
};

// `flat`: a map without inputs (flatten). nullopt: there are no two operations over the same rows in its lambda, a team
// could not share them (ir/team.h), or the elements of a row lie apart in memory. `prefix` begins the names of tuning
// parameters.
std::optional<RowsTogether> rows_together(const Stm& flat, const HostViews& views, const std::string& prefix,
                                          ValueTable& values);

}  // namespace apl
