// Which arrays are overwritten in place somewhere: by an update, a tile copy, a loop that updates its parameter, or a
// function that consumes its argument. Rewrites that merge two arrays, or read one instead of the other, ask here.
#pragma once

#include <cstdint>
#include <unordered_set>
#include <vector>

#include "ir/module.h"

namespace apl {

// Values that may share memory form one class; a class is consumed if any of its values is. Conservative: flow of
// control is not looked at, so "consumed" means "maybe, somewhere in the function".
class Consumption {
 public:
  Consumption(const Function& function, const Module* module);

  bool consumed(Value value) const;
  // Whether it may share memory with a parameter or a result of the function.
  bool escapes(Value value) const;
  // Nothing is consumed at all: the usual case, in which every question has a quick answer.
  bool none() const { return consumed_.empty(); }

 private:
  std::uint32_t find(std::uint32_t id) const;
  void alias(Value a, const Operand& b);
  void enter(const Body& body);
  void statement(const Stm& stm);

  const Module* module_;
  const ValueTable* values_;  // only during construction
  mutable std::vector<std::uint32_t> parent_;
  std::vector<Value> consumed_values_;
  std::unordered_set<std::uint32_t> consumed_;
  std::unordered_set<std::uint32_t> escaping_;
};

}  // namespace apl
