// When host code needs what lies in its blocks.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <vector>

#include "ir/module.h"
#include "ir/reads.h"

namespace apl::lower {

class BlockUse {
 public:
  explicit BlockUse(const apl::Function& function);

  // Whether `stm`, a loop or branch, may yield what one of its bodies leaves in `from` by exchanging that block for
  // `to`: both are allocated with one size, and nobody reads again what lay in `from` before.
  bool may_exchange(const Stm& stm, const Body& body, Value from, Value to) const;

  // Blocks that no statement of the function's body after this one mentions; those of results stay.
  const std::vector<Value>& ends_after(std::size_t statement) const { return ends_.at(statement); }

  // Whether kernels do nothing but write what lies in the block, and the host reads scalars of it.
  bool is_written_for_host(Value block) const { return !otherwise_used_.contains(block); }

 private:
  void enter(const Body& body);
  void statement(const Stm& stm);
  void use(Value v);
  void use_otherwise(Value v);

  const apl::Function& function_;
  bool in_kernel_ = false;
  std::size_t top_ = 0;  // the statement of the function's body
  const Reads reads_;
  std::map<Value, std::vector<Value>> arrays_;  // by block
  std::map<Value, Poly> bytes_;                 // of what is allocated
  std::map<Value, std::size_t> last_mention_;   // blocks: statement of the function's body
  std::vector<std::vector<Value>> ends_;
  std::set<Value> otherwise_used_;  // blocks
};

}  // namespace apl::lower
