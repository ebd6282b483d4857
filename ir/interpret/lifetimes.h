// What is worked out once for a function before it runs: where the interpreter lets go of arrays.
// An array that is let go in time has one owner when it is updated, and is updated in place: otherwise a loop
// that updates an array would copy it in every iteration.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/module.h"

namespace apl::interpreter {

struct StmLifetimes {
  std::vector<Value> dead_after;  // arrays of this body that nothing after the statement reads
  std::vector<Value> movable;     // those of them that the statement reads once, itself
  // Memory stage: an array that the host's statement writes, and one in the same block that is read again later.
  std::vector<std::pair<Value, Value>> kept;
};

struct BodyLifetimes {
  std::vector<Value> dead_at_start;  // parameters of the body that it does not read
  std::vector<StmLifetimes> stms;
  std::vector<bool> take_result;  // the result is bound in this body, and no later result is the same value
};

struct FunctionLifetimes {
  std::unordered_map<const Body*, BodyLifetimes> bodies;
  std::vector<bool> is_scalar;  // by value id
};

void find_overwrites(const Function& function, FunctionLifetimes& lifetimes);  // fills `kept`
FunctionLifetimes find_lifetimes(const Function& function);

}  // namespace apl::interpreter
