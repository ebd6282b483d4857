// What ir/ops.def says of each statement operation.
#pragma once

#include <optional>
#include <string_view>

#include "ir/module.h"

namespace apl {

// How evaluating an operation can be an error.
enum class Failure : std::uint8_t { never, division, bounds, always, bodies };
// What an operation stands for besides its results.
enum class Effect : std::uint8_t { none, memory, update, call };

struct NodeInfo {
  std::string_view text;
  Stage stage;  // the first that holds it
  Failure failure;
  Effect effect;
};

const NodeInfo& node_info(const Op& op);

// The array of which the result is a view or another name, if it is an array: where its elements lie.
std::optional<Value> viewed(const Op& op);

}  // namespace apl
