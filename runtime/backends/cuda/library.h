// CUDA's libraries, found at run time.
#pragma once

#include <string>
#include <vector>

#include "ir/diagnostic.h"

namespace apl::cuda {

// The first of `names` in the caller's folders, else where the loader looks, else in the folders where toolkits and
// drivers usually are. It stays open for the life of the process: CUDA's libraries do not bear being closed.
// unsupported.backend if it is nowhere.
Result<void*> open_library(const std::vector<std::string>& names, const std::vector<std::string>& folders);

}  // namespace apl::cuda
