// Printed names: the hint of each value made unique in its function, in order of first binding in the text.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/module.h"

namespace apl {

class Names {
 public:
  explicit Names(const Function& function);

  // `?17` for a value that the function does not have.
  std::string of(Value value) const;
  // The polynomial's text. Its terms are in the order in which the text binds their names, not in the order of
  // value ids: so a module that was parsed, whose ids differ, prints the same.
  std::string of(const Poly& poly) const;

 private:
  void bind(Value value);
  void bind(const std::vector<Value>& values);
  void visit(const BodyPtr& body);
  std::string unique(const std::string& hint);

  const ValueTable& values_;
  std::vector<std::string> names_;    // by value id; empty: not bound yet
  std::vector<std::uint32_t> ranks_;  // by value id: how many were bound before it
  std::vector<Value> order_;          // the inverse of ranks_
  std::unordered_map<std::string, std::uint32_t> last_suffix_;
  std::unordered_set<std::string> taken_;
};

}  // namespace apl
