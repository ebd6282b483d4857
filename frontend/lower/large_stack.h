// Work that recurses deeper than the caller's stack may allow.
#pragma once

#include <cstddef>
#include <functional>

namespace apl::frontend {

// Runs `work` on a stack of that many bytes, and returns when it is done; what it throws is thrown here. Without having
// run it, false: there is no such stack to be had.
bool run_on_stack(std::size_t bytes, const std::function<void()>& work);

}  // namespace apl::frontend
