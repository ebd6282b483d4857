// What a device says of a kernel that has run.
#pragma once

#include <string>

namespace apl {

// Empty where a backend has no such thing.
struct KernelStats {
  std::string name;
  int registers = 0;             // a thread
  int local_bytes = 0;           // a thread: spills, and private arrays that are in memory
  int static_shared_bytes = 0;   // a block
  int dynamic_shared_bytes = 0;  // a block, in the last launch
  int max_threads = 0;           // a block could have
};

}  // namespace apl
