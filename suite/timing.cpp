#include "suite/timing.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace apl::suite {
namespace {

double squares(const std::vector<double>& times, double average) {
  double sum = 0;
  for (double time : times) sum += (time - average) * (time - average);
  return sum;
}

}  // namespace

double mean(const std::vector<double>& times) {
  if (times.empty()) return 0;
  return std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
}

double relative_standard_error(const std::vector<double>& times) {
  const double average = mean(times);
  if (times.size() < 2 || average == 0) return 0;
  const auto count = static_cast<double>(times.size());
  return std::sqrt(squares(times, average) / (count - 1) / count) / average;
}

double autocorrelation(const std::vector<double>& times) {
  const double average = mean(times);
  const double all = squares(times, average);
  if (times.size() < 2 || all == 0) return 0;
  double sum = 0;
  for (std::size_t k = 0; k + 1 < times.size(); ++k) sum += (times[k] - average) * (times[k + 1] - average);
  return sum / all;
}

std::size_t more_runs(const std::vector<double>& times) {
  struct Criterion {
    double correlation, error;
  };
  constexpr Criterion kCriteria[] = {{0.95, 0.0010}, {0.75, 0.0015}, {0.65, 0.0025}, {0.45, 0.0050}, {0, 0.0100}};
  const double error = relative_standard_error(times);
  // A correlation below 0 asks no more than one of 0.
  const double correlation = std::max(autocorrelation(times), 0.0);
  for (const Criterion& criterion : kCriteria)
    if (correlation >= criterion.correlation && error > criterion.error)
      return std::max<std::size_t>(times.size() / 2, 1);
  return 0;
}

}  // namespace apl::suite
