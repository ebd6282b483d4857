// Times of launches on a GPU, without the gaps between them: for searches that choose by running, and benchmarks.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "ir/diagnostic.h"
#include "runtime/backends/backend.h"
#include "runtime/backends/cuda/driver.h"

namespace apl::cuda {

class Clock {
 public:
  // The first device. unsupported.backend where there is no driver or no device.
  static Result<std::unique_ptr<Clock>> open();
  ~Clock();
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;

  const Driver& driver() const { return driver_; }
  // What is timed must run on it; a backend takes it (CudaOptions). Its context is current on the thread that opened
  // the clock, as libraries of the CUDA runtime want it.
  CUstream stream() const { return stream_; }
  // A backend whose launches run on it.
  Result<std::unique_ptr<Backend>> backend() const;

  // Microseconds of one of many launches in a graph, the median of a few replays. What is launched must have been
  // launched before, so that nothing is compiled or allocated for the first time.
  Result<double> time(const std::function<Status()>& launch) const;

 private:
  Clock() = default;
  Status start();
  Result<double> elapsed(const std::function<Status()>& work) const;

  // The driver's functions for graphs.
  struct Graphs {
    int (*begin)(CUstream, int mode) = nullptr;
    int (*end)(CUstream, void** graph) = nullptr;
    int (*make)(void** executable, void* graph, unsigned long long flags) = nullptr;
    int (*launch)(void* executable, CUstream) = nullptr;
    int (*drop)(void* graph) = nullptr;
    int (*drop_executable)(void* executable) = nullptr;
  };

  Driver driver_;
  Graphs graphs_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  CUevent start_ = nullptr, stop_ = nullptr;
};

}  // namespace apl::cuda
