// Programs to be made smaller.
#pragma once

#include <cstdint>

#include "ir/module.h"

namespace apl::planted {

// One entry with about `size` statements over integers, in maps, reductions, scans, loops and branches: among them is
// at least one of each kind that the plug-in breaks, and every value is used.
Module generate(std::uint64_t seed, std::size_t size);

}  // namespace apl::planted
