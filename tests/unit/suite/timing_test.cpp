#include "suite/timing.h"

#include <doctest/doctest.h>

using apl::suite::autocorrelation;
using apl::suite::more_runs;
using apl::suite::relative_standard_error;

TEST_CASE("timing: error and correlation of known series") {
  CHECK(relative_standard_error({10, 10, 10}) == 0);
  CHECK(relative_standard_error({}) == 0);
  // Deviation sqrt(2), two times, mean 10.
  CHECK(relative_standard_error({9, 11}) == doctest::Approx(0.1));
  CHECK(autocorrelation({1, -1, 1, -1}) == doctest::Approx(-0.75));
  CHECK(autocorrelation({5, 5, 5}) == 0);
}

TEST_CASE("timing: equal times have converged, scattered ones have not, drifting ones need a smaller error") {
  CHECK(more_runs(std::vector<double>(10, 100.0)) == 0);
  std::vector<double> scattered, drifting;
  for (int k = 0; k < 10; ++k) scattered.push_back(k % 2 ? 50 : 150);
  for (int k = 0; k < 1000; ++k) drifting.push_back(100 + 0.02 * k);
  CHECK(more_runs(scattered) == 5);
  CHECK(relative_standard_error(drifting) < 0.01);
  CHECK(more_runs(drifting) == 500);
}
