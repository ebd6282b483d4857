// What a run costs, by the cost semantics of docs/ir.md ("What a program costs"): counts that are the same on every
// machine, so that a pass that makes a program do more work is seen whatever the machine's clock says.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "ir/module.h"

namespace apl {

struct Work {
  std::int64_t operations = 0;  // of scalars
  std::int64_t read = 0;        // elements of arrays
  std::int64_t written = 0;     // likewise
  std::int64_t allocated = 0;   // elements of arrays that were made

  std::int64_t total() const { return operations + read + written + allocated; }
  Work& operator+=(const Work& other);
};

// What each statement costs itself, without the statements of its bodies. Statements are those of the module that ran,
// which must outlive this.
class WorkCount {
 public:
  Work& of(const Stm& stm) { return by_statement_[&stm]; }  // stays where it is
  const std::unordered_map<const Stm*, Work>& by_statement() const { return by_statement_; }
  Work sum() const;

 private:
  std::unordered_map<const Stm*, Work> by_statement_;
};

}  // namespace apl
