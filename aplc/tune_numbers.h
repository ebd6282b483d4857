// The numbers that `aplc tune` tries beside those of tiles: chunks, teams, blocks and thresholds of kernels.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "aplc/tune_log.h"

namespace aplc {

// Of one number: candidates that change it alone. Those of a threshold or of chunks are the default times and over 4
// and 16, as far as they are at least 1; of the threads of a block, powers of two below the default; of the number of
// threads of a CPU, one, and two and four times as many as there are. Tiles of contractions are not among them, nor is
// the number of their parts.
std::vector<std::vector<Parameters>> number_spaces(const apl::Module& lowered, const std::set<std::string>& entries,
                                                   int threads);

}  // namespace aplc
