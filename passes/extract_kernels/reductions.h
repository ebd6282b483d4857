// Reductions and scans at the top of a function, in parallel.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/module.h"

namespace apl {

// The statements of a reduction in chunks, the last of which binds the pattern of `stm`; null if it must run in one
// thread: it also maps, or reduces arrays. `parameter` names the number of chunks.
std::optional<std::vector<Stm>> make_chunked_reduction(const Stm& stm, const std::string& parameter,
                                                       ValueTable& values);

// The same for a scan; null if it must run in one thread: it also reduces, or scans arrays.
std::optional<std::vector<Stm>> make_chunked_scan(const Stm& stm, const std::string& parameter, ValueTable& values);

}  // namespace apl
