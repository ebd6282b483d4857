// Which statements of a body read a value, kept up to date while statements are rewritten.
#pragma once

#include <cstddef>
#include <set>
#include <unordered_map>
#include <vector>

#include "ir/walk.h"

namespace apl {

class Readers {
 public:
  Readers(const std::vector<Stm>& stms, const ValueTable& values) : values_(values), read_(stms.size()) {
    for (std::size_t k = 0; k < stms.size(); ++k) update(k, stms[k]);
  }

  // After a rewrite of statement `k`.
  void update(std::size_t k, const Stm& stm) {
    for (const Value v : read_[k]) of_[v].erase(k);
    read_[k] = free_values(stm.op, values_);
    for (const Value v : read_[k]) of_[v].insert(k);
  }
  // Positions of the statements that read the value, themselves or in bodies inside.
  const std::set<std::size_t>& of(Value v) const {
    static const std::set<std::size_t> none;
    const auto found = of_.find(v);
    return found == of_.end() ? none : found->second;
  }

 private:
  const ValueTable& values_;
  std::vector<std::set<Value>> read_;
  std::unordered_map<Value, std::set<std::size_t>> of_;
};

}  // namespace apl
