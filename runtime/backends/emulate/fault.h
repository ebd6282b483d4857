// What a kernel did wrong, and how to say it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ir/diagnostic.h"
#include "runtime/backends/emulate/shadow.h"

namespace apl::emulate {

// Who, and in which line of the kernel text.
struct Actor {
  std::int64_t block = 0;
  int thread = 0;
  int line = 0;
};

struct Fault {
  FaultKind kind{};
  Actor actor;
  bool is_write = false;
  std::string array;       // "`C`", "the shared array at byte 256"
  std::int64_t index = 0;  // of the element, or the byte for a copy's alignment
  std::int64_t count = 0;  // out_of_bounds: elements that there are
  // race: the other access. divergence: the other thread, which waits in another line, or has ended (line 0).
  Actor other;
  bool other_writes = false;
};

// run.race, run.undefined-read or run.index-out-of-bounds, with the lines of the text that it is about.
Diagnostic describe(const Fault& fault, std::string_view kernel, std::string_view kernel_text);

}  // namespace apl::emulate
