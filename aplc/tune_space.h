// The tile numbers that `aplc tune` tries for a contraction, and in which order.
#pragma once

#include <string>
#include <vector>

#include "aplc/explain_plan.h"

namespace aplc {

struct TuneCandidate {
  Parameters parameters;  // by name, as in a tuning file
  double predicted = 0;   // seconds: geometric mean over the datasets
};

// `datasets`: the same contraction with the sizes of each. The candidates that run with all of them, the one that the
// model likes best first.
//
// The space holds that of T 5.3.5: threads and depths of powers of two, registers of 1, 2, 4, 5, 8, 10 and 16, for the
// innermost M and N dims (dims of each are flattened, so that only products matter), or the two innermost
// of each set of dims where there are no M and N dims. T's rules prune it (shared memory of operands balanced,
// registers along both, whole powers of two of threads), but not by occupancy, which says little of blocks with large
// register tiles: instead what the model finds `kHopeless` times as slow as its best is left out. On a GPU numbers of
// parts come first where the model would split the reduction, or nearly.
std::vector<TuneCandidate> tune_space(const apl::Function& function, const std::vector<PlannedContraction>& datasets,
                                      const apl_device& device);

}  // namespace aplc
