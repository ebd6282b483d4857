// The arrays of one kernel by block, for the question which of its results can be written over which of its inputs.
// Kernels may have thousands of both: everything is looked up, and the kernel's body is walked once.
#pragma once

#include <list>
#include <map>
#include <set>
#include <unordered_set>
#include <vector>

#include "ir/module.h"

namespace apl::memory {

class KernelArrays {
 public:
  // `arrays`: all that the statement mentions, inside too.
  KernelArrays(const Stm& stm, const std::set<Value>& arrays, const ValueTable& values);

  // The only result in the block, if each thread writes one element of it; none otherwise.
  Value only_result(Value block) const;
  // Inputs that lie in the block, and inputs of an element type that may still be overwritten: who asks drops others.
  const std::vector<Value>& inputs_on(Value block) const;
  std::list<Value>& candidates(ScalarType element) { return candidates_[element]; }
  // Whether each thread reads of the array's block only the element that it writes.
  bool reads_own_index(Value array) const;
  // All that lies in `from` lies in `to`.
  void merge(Value from, Value to);

 private:
  const MemoryBinding* binding(Value v) const { return values_.type(v).memory.get(); }

  const Stm& stm_;
  const ValueTable& values_;
  std::map<Value, std::size_t> mentioned_;  // how many arrays on each block
  std::map<Value, std::vector<std::size_t>> results_;
  std::map<Value, std::vector<Value>> inputs_;
  std::map<ScalarType, std::list<Value>> candidates_;
  std::unordered_set<Value> elsewhere_;  // arrays that are read otherwise than at the own index
};

}  // namespace apl::memory
