// Processes that compile kernel text beside each other: NVRTC lets the threads of one process wait for each other.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "ir/diagnostic.h"

namespace aplc {

class KernelCompilers {
 public:
  // Before the process has other threads, or has opened a driver: its children are copies of it.
  static apl::Result<KernelCompilers> start(int count);
  KernelCompilers(KernelCompilers&& other) noexcept = default;
  KernelCompilers& operator=(KernelCompilers&&) = delete;
  ~KernelCompilers();

  int count() const { return static_cast<int>(workers_.size()); }

  // Machine code, as of apl::compile_with_nvrtc, which keeps it in the cache. Several threads may call, each with a
  // worker of its own.
  apl::Result<std::string> compile(int worker, const std::string& text, const std::string& architecture);

 private:
  struct Worker {
    pid_t process = -1;
    int socket = -1;
  };
  KernelCompilers() = default;

  std::vector<Worker> workers_;
};

}  // namespace aplc
