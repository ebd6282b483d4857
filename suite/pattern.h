// Regular expressions of test blocks: POSIX extended ones, found anywhere; `.` matches a newline too.
#pragma once

#include <string>

#include "ir/diagnostic.h"

namespace apl::suite {

// Whether `pattern` is found in `text`; the empty pattern always is. Code syntax.error if it is no pattern.
Result<bool> matches(const std::string& pattern, const std::string& text);

}  // namespace apl::suite
