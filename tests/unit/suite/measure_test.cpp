#include <doctest/doctest.h>

#include <cstddef>
#include <random>
#include <vector>

#include "suite/timing.h"

namespace apl::suite {
namespace {

// Calls of a program that takes `call` microseconds, with `between` more of them between two calls.
struct Fake {
  double call, between, noise;
  double clock = 100;  // seconds
  std::mt19937_64 random{1};

  Result<std::vector<double>> run(std::size_t calls, double seconds) {
    std::vector<double> times;
    const double end = clock + seconds;
    for (std::size_t k = 0; k < calls && (k == 0 || clock <= end); ++k) {
      const double factor = 1 + noise * static_cast<double>(random() % 1000);
      times.push_back(call * factor);
      clock += (call * factor + between) * 1e-6;
    }
    return times;
  }
};

std::vector<double> measured(Fake& fake, const MeasureLimits& limits) {
  auto times = measure(
      limits, [&](std::size_t calls, double seconds) { return fake.run(calls, seconds); }, [&] { return fake.clock; },
      nullptr);
  REQUIRE(times);
  return *times;
}

TEST_CASE("measuring ends within its time, whatever the times are like") {
  for (const double call : {0.0, 0.01, 1.0, 1e3, 1e6})
    for (const double between : {0.0, 0.5, 20.0, 1e4})
      for (const double noise : {0.0, 1.0, 100.0}) {
        if (call * noise > 1e7) continue;
        Fake fake{call, between, noise};
        const MeasureLimits limits{.most_seconds = 5};
        const std::size_t runs = measured(fake, limits).size();
        INFO(call, " us, ", between, " us between, noise ", noise, ": ", runs, " runs");
        CHECK(runs >= limits.least_runs);
        // A call that has begun is waited for, and the least number of them is made.
        const double least = 11 * (call * (1 + noise * 1000) + between) * 1e-6;
        CHECK(fake.clock - 100 <= 5 + 1e-6 + least);
      }
}

TEST_CASE("measuring goes on until times are reliable, and no longer") {
  Fake steady{1000, 0, 0};
  CHECK(measured(steady, {.most_seconds = 60}).size() >= 490);
  CHECK(steady.clock - 100 < 1);
  Fake noisy{1000, 0, 0.1};
  const auto times = measured(noisy, {.most_seconds = 600});
  CHECK(more_runs(times) == 0);
  Fake short_of_time{1000, 0, 0.1};
  CHECK(measured(short_of_time, {.most_seconds = 600, .converge = false}).size() < times.size());
}

TEST_CASE("measuring: an error ends it, and progress is seen") {
  std::size_t seen = 0, calls = 0;
  double clock = 0;
  const auto result = measure(
      {},
      [&](std::size_t n, double) -> Result<std::vector<double>> {
        if (++calls == 3) return make_error(Code::run_assertion, {}, "no more");
        clock += 0.01 * static_cast<double>(n);
        return std::vector<double>(n, 1e4);
      },
      [&] { return clock; }, [&](const std::vector<double>& times) { seen = times.size(); });
  REQUIRE_FALSE(result);
  CHECK(result.error().message == "no more");
  CHECK(seen > 0);
}

TEST_CASE("the clock's resolution is a small time") {
  CHECK(clock_resolution() > 0);
  CHECK(clock_resolution() < 100);
}

}  // namespace
}  // namespace apl::suite
