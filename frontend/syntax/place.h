// Places in programs of several files. A Location has no room for a file, so inside the frontend its lines carry the
// file's number; what leaves the frontend is split again.
#pragma once

#include <cstdint>

#include "ir/diagnostic.h"

namespace apl::frontend {

// File 0 is the one being compiled; file k is Program::sources[k - 1].
constexpr std::uint32_t kFileShift = 22;
constexpr std::uint32_t kMaxLine = (1U << kFileShift) - 1;
constexpr std::uint32_t kMaxFiles = 1U << (32 - kFileShift);
constexpr std::uint32_t kPreludeFile = kMaxFiles - 1;

constexpr std::uint32_t file_of(const Location& location) { return location.line >> kFileShift; }

// The location as it is within its file.
constexpr Location within_file(Location location) {
  location.line &= kMaxLine;
  location.end_line &= kMaxLine;
  return location;
}
constexpr Location in_file(Location location, std::uint32_t file) {
  location.line |= file << kFileShift;
  location.end_line |= file << kFileShift;
  return location;
}

}  // namespace apl::frontend
