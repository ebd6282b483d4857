// The tile numbers that `aplc tune` tries for a contraction, and in which order.
#pragma once

#include <cstddef>
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

// What measuring one more candidate is expected to gain: of one contraction the model's predictions beside what was
// measured. The ratio of a measured time to the predicted one is taken to be log-normal, as far as it is known.
class Expectation {
 public:
  void add(double predicted, double measured);
  std::size_t count() const { return logs_.size(); }
  // The mean of what a candidate with that prediction takes less than `best`, as a share of `best`; nothing where it
  // takes more. Times in one unit.
  double improvement(double predicted, double best) const;

 private:
  std::vector<double> logs_;  // of the ratios
};

}  // namespace aplc
