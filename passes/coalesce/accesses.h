// How the threads of a kernel read the arrays that it is given.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "ir/module.h"

namespace apl::coalesce {

// An element that a thread reads: array[at], `count` times over.
struct Access {
  std::vector<Poly> at;
  Poly count;
  bool indirect = false;  // an index depends on what the thread computed
};

// By array, of those that a kernel at thread level reads element by element; what it reads otherwise is left out.
std::map<Value, std::vector<Access>> reads_of(const SegOp& kernel, const ValueTable& values);

}  // namespace apl::coalesce
