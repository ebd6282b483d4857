#include "ir/call_table.h"

#include <algorithm>

namespace apl {

namespace {

std::size_t hash_of(const Location& location) {
  // Odd numbers without a pattern: those of 64-bit FNV and of the golden ratio.
  constexpr std::uint64_t kFactor = 1099511628211U, kLast = 0x9E3779B97F4A7C15U;
  const std::uint64_t begin = (std::uint64_t{location.line} << 32) + location.column;
  const std::uint64_t end = (std::uint64_t{location.end_line} << 32) + location.end_column;
  const std::uint64_t all = ((begin * kFactor + end) * kFactor + location.call) * kLast;
  return static_cast<std::size_t>(all ^ (all >> 32));
}

}  // namespace

std::uint32_t& CallTable::slot_of(const Location& call) {
  for (std::size_t at = hash_of(call);; ++at) {
    std::uint32_t& slot = slots_[at & (slots_.size() - 1)];
    if (slot == 0 || calls_[slot - 1] == call) return slot;
  }
}

void CallTable::grow() {
  slots_.assign(std::max<std::size_t>(16, 2 * slots_.size()), 0);
  for (std::size_t k = 0; k < calls_.size(); ++k) slot_of(calls_[k]) = static_cast<std::uint32_t>(k + 1);
}

std::uint32_t CallTable::add(const Location& call) {
  if (!call) return call.call;
  if (2 * calls_.size() >= slots_.size()) grow();
  std::uint32_t& slot = slot_of(call);
  if (slot == 0) {
    calls_.push_back(call);
    slot = static_cast<std::uint32_t>(calls_.size());
  }
  return slot;
}

void note_call(Diagnostic& diagnostic, const Location& call, const std::vector<Location>& calls) {
  diagnostic.notes.push_back(called_from(call));
  // The call around one has a smaller number: this ends whatever the table holds.
  for (std::uint32_t number = call.call; number != 0 && number <= calls.size();) {
    const Location& at = calls[number - 1];
    diagnostic.notes.push_back(called_from(at));
    number = at.call < number ? at.call : 0;
  }
}

void note_calls(Diagnostic& diagnostic, const std::vector<Location>& calls) {
  const std::uint32_t number = diagnostic.location.call;
  if (number != 0 && number <= calls.size()) note_call(diagnostic, calls[number - 1], calls);
}

}  // namespace apl
