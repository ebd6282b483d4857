// The clock of backends whose kernels run in the host's own threads.
#pragma once

#include <chrono>

namespace apl {

class HostTimer {
 public:
  void start() { start_ = Clock::now(); }
  double microseconds() const { return std::chrono::duration<double, std::micro>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

}  // namespace apl
