// The C backend's memory: plain host memory. Kernels are functions of the program itself.
#include <fmt/format.h>

#include <cstring>

#include "runtime/backends/backend.h"
#include "runtime/backends/host_blocks.h"
#include "runtime/backends/host_memory.h"
#include "runtime/backends/host_timer.h"

namespace apl {
namespace {

class HostBackend : public Backend {
 public:
  HostBackend() = default;
  HostBackend(const HostBackend&) = delete;
  HostBackend& operator=(const HostBackend&) = delete;
  ~HostBackend() override { apl_host_drop_all(&blocks_); }
  const char* name() const override { return "c"; }
  Status load(std::string_view) override { return Unit{}; }

  Result<void*> allocate(std::int64_t bytes, const char* what) override {
    void* data = fits_host_memory(bytes) ? apl_host_take(&blocks_, bytes) : nullptr;
    if (!data)
      return make_error(Code::run_out_of_memory, {},
                        fmt::format("out of memory: {} bytes for {}", bytes, what ? what : "?"));
    return data;
  }
  Status release(void* data) override {
    apl_host_give(&blocks_, data);
    return Unit{};
  }
  Status upload(void* data, const void* host, std::int64_t bytes) override { return copy(data, host, bytes); }
  Status download(void* host, const void* data, std::int64_t bytes) override { return copy(host, data, bytes); }
  Status copy(void* to, const void* from, std::int64_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
    return Unit{};
  }

  Status launch(const apl_launch& launch) override {
    return make_error(Code::bug_internal, {},
                      fmt::format("kernel {} is launched by a program for the host", launch.kernel));
  }
  Status synchronise() override { return Unit{}; }
  bool can_borrow(bool on_device) const override { return !on_device; }
  apl_failure* failure() override { return &failure_; }
  Result<apl_failure> take_failure() override {
    const apl_failure taken = failure_;
    failure_ = {};
    return taken;
  }

  Status start_timer() override {
    timer_.start();
    return Unit{};
  }
  Result<double> stop_timer() override { return timer_.microseconds(); }

 private:
  HostTimer timer_;
  apl_failure failure_{};
  apl_host_blocks blocks_{};
};

}  // namespace

std::unique_ptr<Backend> make_host_backend() { return std::make_unique<HostBackend>(); }

}  // namespace apl
