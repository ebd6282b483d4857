#include "suite/timing.h"

#include <algorithm>
#include <chrono>
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

namespace {

// One benchmark being measured.
class Measurement {
 public:
  Measurement(double end, const TimedCalls& run, const std::function<double()>& now)
      : end_(end), run_(run), now_(now) {}

  // So many calls, or as many as fit into half a second and into what is left.
  Result<std::size_t> part(std::size_t calls) {
    constexpr double kPartSeconds = 0.5;
    auto times = run_(std::min(calls, kMostTimes), std::clamp(end_ - now_(), 0.0, kPartSeconds));
    if (!times) return std::move(times).error();
    if (times->empty()) return make_error(Code::bug_internal, {}, "a benchmark gave no times");
    times_.insert(times_.end(), times->begin(), times->end());
    return times->size();
  }

  bool is_over() const { return times_.size() >= kMostTimes || now_() >= end_; }
  std::vector<double>& times() { return times_; }

 private:
  static constexpr std::size_t kMostTimes = 1'000'000;  // that are kept

  double end_;
  const TimedCalls& run_;
  const std::function<double()>& now_;
  std::vector<double> times_;
};

}  // namespace

Result<std::vector<double>> measure(const MeasureLimits& limits, const TimedCalls& run,
                                    const std::function<double()>& now,
                                    const std::function<void(const std::vector<double>&)>& progress) {
  const double start = now();
  Measurement measurement(start + limits.most_seconds, run, now);
  const auto more = [&](std::size_t calls) {
    auto made = measurement.part(calls);
    if (made && progress) progress(measurement.times());
    return made;
  };
  const std::size_t least = std::max<std::size_t>(limits.least_runs, 1);
  while (measurement.times().size() < least)
    if (auto made = more(least - measurement.times().size()); !made) return std::move(made).error();
  while (now() - start < limits.least_seconds && !measurement.is_over())
    if (auto made = more(measurement.times().size()); !made) return std::move(made).error();
  while (limits.converge && !measurement.is_over()) {
    std::size_t wanted = more_runs(measurement.times());
    if (wanted == 0) break;
    while (wanted > 0 && !measurement.is_over()) {
      auto made = more(wanted);
      if (!made) return std::move(made).error();
      wanted -= std::min(wanted, *made);
    }
  }
  return std::move(measurement.times());
}

double clock_resolution() {
  using Clock = std::chrono::steady_clock;
  constexpr int kReadings = 1000;
  double least = 1e6;
  auto before = Clock::now();
  for (int k = 0; k < kReadings; ++k) {
    auto after = Clock::now();
    while (after == before) after = Clock::now();
    least = std::min(least, std::chrono::duration<double, std::micro>(after - before).count());
    before = after;
  }
  return least;
}

}  // namespace apl::suite
