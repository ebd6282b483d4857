// Which values vary with the parameters of the function that is differentiated: only these have tangents.
#pragma once

#include <unordered_set>

#include "ir/module.h"

namespace apl::differentiation {

class Activity {
 public:
  explicit Activity(const ValueTable& values) : values_(values) {}

  bool contains(Value v) const { return active_.contains(v); }
  bool contains(const Operand& x) const { return x.is_value() && contains(x.value()); }
  bool contains(const Poly& poly) const;  // one of its symbols
  // True if that is new.
  bool add(Value v);
  // What varies in a body, whose parameters were added.
  void learn(const Body& body);
  void learn(const Stm& stm);

 private:
  bool any(const std::vector<Operand>& operands) const;
  void mark(const std::vector<Value>& pattern, std::size_t k, bool varies);
  void learn(const Stm& stm, const Loop& op);
  void learn(const Stm& stm, const Screma& op);
  void learn(const Stm& stm, const Scatter& op);
  std::vector<bool> learn(const ReduceOp& op, std::vector<bool> varies);

  const ValueTable& values_;
  std::unordered_set<Value> active_;
};

}  // namespace apl::differentiation
