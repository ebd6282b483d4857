// What Screma and Scatter have in common: arrays that stream into a lambda, index by index.
#pragma once

#include <string_view>
#include <vector>

#include "ir/interpret/machine.h"

namespace apl::interpreter {

struct Machine::Streams {
  Machine& machine;
  const std::vector<Value>& indices;
  const std::vector<Value>& inputs;
  const std::vector<Value>& params;
  std::vector<std::int64_t> widths;
  std::vector<Array> arrays;
  std::vector<std::int64_t> at;  // the index that runs

  // Checks that the inputs have the widths. `what` names the operation in messages.
  void start(const std::vector<Poly>& polys, std::string_view what);
  // The lambda's indices and rows become those of row-major position `flat`.
  void bind(std::int64_t flat);
  // Where the row at the running index lies in an array of the widths.
  std::int64_t position_in(const Array& array) const;
};

}  // namespace apl::interpreter
