// Random plans, and arguments of entries that take tiles.
#pragma once

#include <map>
#include <string>

#include "ir/sparse_arguments.h"
#include "tests/sparse/generate.h"

namespace apl::sparse_tests {

// Selections, widths, orders of rows and lengths as they come; for sums, or for samples.
std::string random_plan(const HostCsr& matrix, bool sddmm, Random& random);

// Of either operator, without tiles.
std::string dense_plan(const HostCsr& matrix, bool sddmm);

// Makes tiles by a random plan, or by the built-in one; counts for each kind of tiles how often there were some.
TileMaker plan_tiles(bool builtin, std::uint64_t seed, std::map<std::string, int>& kinds);

}  // namespace apl::sparse_tests
