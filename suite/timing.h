// When a benchmark has been run often enough.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "ir/diagnostic.h"

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

// How long measure goes on.
struct MeasureLimits {
  std::size_t least_runs = 10;
  double least_seconds = 0.5;
  double most_seconds = 60;  // no run is begun after so long, but for the least number of them
  bool converge = true;      // go on as more_runs says
};

// Makes so many calls, begins none after so many seconds but the first, and gives their times in microseconds.
using TimedCalls = std::function<Result<std::vector<double>>(std::size_t calls, double seconds)>;

// Runs a benchmark until its times are reliable or the time is over, whatever the times are like: what counts is the
// time that goes by, since much of it may lie between short calls. `now` is the time in seconds; `progress` (may be
// null) sees the times after each part, of half a second at most if a call is not longer.
Result<std::vector<double>> measure(const MeasureLimits& limits, const TimedCalls& run,
                                    const std::function<double()>& now,
                                    const std::function<void(const std::vector<double>&)>& progress);

// The least difference between two readings of the clock that times calls on the host, in microseconds.
double clock_resolution();

}  // namespace apl::suite
