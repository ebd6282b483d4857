#include "runtime/backends/cuda/clock.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "runtime/backends/cuda.h"
#include "runtime/backends/cuda/library.h"

namespace apl::cuda {

Result<std::unique_ptr<Clock>> Clock::open() {
  std::unique_ptr<Clock> clock(new Clock);
  if (auto started = clock->start(); !started) return std::move(started).error();
  return clock;
}

Result<std::unique_ptr<Backend>> Clock::backend() const {
  CudaOptions options;
  options.stream = stream_;
  return make_cuda_backend(options);
}

Status Clock::start() {
  auto driver = Driver::open({});
  if (!driver) return std::move(driver).error();
  driver_ = *std::move(driver);
  auto library = open_library({"libcuda.so.1", "libcuda.so"}, {});
  if (!library) return std::move(library).error();
  std::string missing;
  const auto bind = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(*library, name));
    if (!function) missing = name;
  };
  bind("cuStreamBeginCapture_v2", graphs_.begin);
  bind("cuStreamEndCapture", graphs_.end);
  bind("cuGraphInstantiateWithFlags", graphs_.make);
  bind("cuGraphLaunch", graphs_.launch);
  bind("cuGraphDestroy", graphs_.drop);
  bind("cuGraphExecDestroy", graphs_.drop_executable);
  if (!missing.empty())
    return make_error(Code::unsupported_backend, {}, fmt::format("the CUDA driver has no {}", missing));
  if (auto status = driver_.check(driver_.device_get(&device_, 0), "opening the device"); !status) return status;
  if (auto status = driver_.check(driver_.primary_retain(&context_, device_), "making a context"); !status)
    return status;
  if (auto status = driver_.check(driver_.context_push(context_), "making it current"); !status) return status;
  if (auto status = driver_.check(driver_.stream_create(&stream_, kNonBlocking), "making a stream"); !status)
    return status;
  if (auto status = driver_.check(driver_.event_create(&start_, 0), "making an event"); !status) return status;
  return driver_.check(driver_.event_create(&stop_, 0), "making an event");
}

Clock::~Clock() {
  if (start_) driver_.event_destroy(start_);
  if (stop_) driver_.event_destroy(stop_);
  if (stream_) driver_.stream_destroy(stream_);
  if (context_) driver_.primary_release(device_);
}

Result<double> Clock::elapsed(const std::function<Status()>& work) const {
  if (auto status = driver_.check(driver_.event_record(start_, stream_), "starting the clock"); !status)
    return std::move(status).error();
  if (auto status = work(); !status) return std::move(status).error();
  if (auto status = driver_.check(driver_.event_record(stop_, stream_), "stopping the clock"); !status)
    return std::move(status).error();
  if (auto status = driver_.check(driver_.event_synchronise(stop_), "stopping the clock"); !status)
    return std::move(status).error();
  float milliseconds = 0;
  if (auto status = driver_.check(driver_.event_elapsed(&milliseconds, start_, stop_), "reading the clock"); !status)
    return std::move(status).error();
  return double{milliseconds} * 1000;
}

Result<double> Clock::time(const std::function<Status()>& launch) const {
  constexpr double kGraphMicroseconds = 600, kLongMicroseconds = 5000;
  constexpr int kThreadLocal = 1;
  const auto once = elapsed(launch);
  if (!once) return once;
  const int count = static_cast<int>(std::clamp(kGraphMicroseconds / *once, 1.0, 20.0));
  void *graph = nullptr, *executable = nullptr;
  if (auto status = driver_.check(graphs_.begin(stream_, kThreadLocal), "recording launches"); !status)
    return std::move(status).error();
  Status launched = Unit{};
  for (int k = 0; k < count && launched; ++k) launched = launch();
  // The recording ends whatever became of it.
  auto recorded = driver_.check(graphs_.end(stream_, &graph), "recording launches");
  if (!launched) return std::move(launched).error();
  if (!recorded) return std::move(recorded).error();
  auto made = driver_.check(graphs_.make(&executable, graph, 0), "making a graph");
  Result<double> result = 0.0;
  if (!made) {
    result = std::move(made).error();
  } else {
    const auto replay = [&] { return driver_.check(graphs_.launch(executable, stream_), "launching a graph"); };
    std::vector<double> times;
    if (auto warm = replay(); !warm) result = std::move(warm).error();
    for (int k = 0; result && k < (*once > kLongMicroseconds ? 3 : 7); ++k) {
      const auto time = elapsed(replay);
      if (time) {
        times.push_back(*time / count);
      } else {
        result = time.error();
      }
    }
    if (result) {
      std::sort(times.begin(), times.end());
      result = times[times.size() / 2];
    }
    graphs_.drop_executable(executable);
  }
  graphs_.drop(graph);
  return result;
}

}  // namespace apl::cuda
