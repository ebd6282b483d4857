// What a command makes for a while: it is gone when the command has ended, by a signal or a crash too.
#pragma once

#include <memory>
#include <string>

#include "runtime/backends/toolchain.h"

namespace aplc {

// While one lives, a signal that ends the process removes the file or folder. It does not remove it itself.
class RemovedBySignals {
 public:
  explicit RemovedBySignals(const std::string& path);
  RemovedBySignals(RemovedBySignals&& other) noexcept = default;
  RemovedBySignals& operator=(RemovedBySignals&&) = delete;
  ~RemovedBySignals();

 private:
  std::unique_ptr<std::string> path_;
};

// While one lives, no such signal comes between the making of something and its RemovedBySignals.
class SignalsWait {
 public:
  SignalsWait();
  SignalsWait(const SignalsWait&) = delete;
  SignalsWait& operator=(const SignalsWait&) = delete;
  ~SignalsWait();

 private:
  struct Mask;
  std::unique_ptr<Mask> before_;
};

// A folder for temporary files in TMPDIR, or /tmp.
class WorkFolder {
 public:
  static apl::Result<WorkFolder> make();
  const std::string& path() const { return folder_.path(); }

 private:
  explicit WorkFolder(apl::TemporaryFolder folder) : folder_(std::move(folder)), removed_(folder_.path()) {}

  apl::TemporaryFolder folder_;
  RemovedBySignals removed_;
};

// A crash from here on is reported as that of the pass; of no pass, if the name is empty.
void name_pass_for_crashes(const std::string& name);

// Signals that end a process remove what there is of the above first, and end it then. Those that are ignored stay so.
void handle_signals();

}  // namespace aplc
