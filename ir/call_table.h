// The calls that were inlined: Location::call is a number of this table, Module::calls its contents. An entry is where
// the call stands; its own `call` is the inlined call around it, whose number is smaller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "ir/diagnostic.h"

namespace apl {

// Gives each call one number, so that the table grows with the calls and not with the statements.
class CallTable {
 public:
  // The number of the call that stands at `call`; that of the call around it if the location is not known.
  std::uint32_t add(const Location& call);
  const std::vector<Location>& calls() const { return calls_; }
  std::vector<Location> take() && { return std::move(calls_); }

 private:
  std::uint32_t& slot_of(const Location& call);
  void grow();

  std::vector<Location> calls_;
  std::vector<std::uint32_t> slots_;  // a hash table of numbers, 0 where there is none; its size is a power of 2
};

// A note "called from here" for a call, and one for each inlined call around it, the innermost first.
void note_call(Diagnostic& diagnostic, const Location& call, const std::vector<Location>& calls);
// The same for the inlined calls around the place of the diagnostic itself.
void note_calls(Diagnostic& diagnostic, const std::vector<Location>& calls);

}  // namespace apl
