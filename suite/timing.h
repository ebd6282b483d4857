// When a benchmark has been run often enough.
#pragma once

#include <cstddef>
#include <vector>

namespace apl::suite {

double mean(const std::vector<double>& times);
// Standard error of the mean as a fraction of the mean; 0 for fewer than two times.
double relative_standard_error(const std::vector<double>& times);
// Correlation of each time with the next one, in [-1, 1].
double autocorrelation(const std::vector<double>& times);

// How many more runs are needed, 0 if the times have converged: the more they depend on each other, the smaller the
// error must be (Futhark's rule: 0.95/0.0010, 0.75/0.0015, 0.65/0.0025, 0.45/0.0050, 0/0.0100); else half as many as
// there are.
std::size_t more_runs(const std::vector<double>& times);

}  // namespace apl::suite
