// Who makes and who reads the values of a body, found once for all of them.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "ir/module.h"

namespace apl {

class BodyUses {
 public:
  BodyUses(const Body& body, const ValueTable& values);

  // Positions of the statements that read the value, themselves or in bodies inside, in ascending order.
  const std::vector<std::size_t>& readers(Value v) const;
  std::set<std::size_t> readers(const std::vector<Value>& some) const;
  // Where in the body it is made; nullopt: elsewhere.
  std::optional<std::size_t> definer(Value v) const;
  bool is_result(Value v) const { return results_.contains(v); }
  // Whether statements from `first` on and before `last` may overwrite what others read, other than arrays that hold
  // nothing yet.
  bool may_overwrite(std::size_t first, std::size_t last) const { return overwrites_[first] != overwrites_[last]; }

 private:
  bool may_overwrite(const Stm& stm, const Body& body) const;

  std::unordered_map<Value, std::vector<std::size_t>> readers_;
  std::unordered_map<Value, std::size_t> definers_;
  std::set<Value> results_;
  std::vector<std::size_t> overwrites_;  // how many of the first k statements may
};

}  // namespace apl
