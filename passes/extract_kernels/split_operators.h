// Operators of an operation that has others beside, as statements of their own.
#pragma once

#include <vector>

#include "ir/module.h"

namespace apl {

// Some of an operation's operators and mapped rows: which results of its lambda they have, by position.
struct PartOfScrema {
  std::vector<std::size_t> operands;
  std::vector<std::size_t> rows;
  std::vector<ReduceOp> reduces;

  bool empty() const { return operands.empty() && rows.empty(); }
};

// The operator, without mapped rows.
PartOfScrema operator_alone(const Screma& screma, std::size_t which);

// The statement `stm` with this part of `source`, its operation or one with the same results, and only what it needs.
Stm part_of(const Stm& stm, const Screma& source, const PartOfScrema& part, ValueTable& values);

// A reduction beside scans or mapped rows becomes one of its own; anything else stays one statement. What their lambda
// computes is computed by each if it is cheap, else by a map before them.
std::vector<Stm> split_operators(const Stm& stm, ValueTable& values);

}  // namespace apl
