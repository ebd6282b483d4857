// Generated programs: compiled, loaded, called.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ir/host_value.h"
#include "runtime/backends/backend.h"
#include "runtime/backends/toolchain.h"

namespace apl {

// A plan for a sparse operand (docs/sparse.md): the text of `aplc sparse search`.
struct SparsePlan {
  std::string operand;  // the entry's parameter
  std::string source;   // the file, for messages
  std::string text;
};

struct ProgramOptions {
  std::string backend = "c";              // c, emulate, cuda
  std::string c_compiler = "cc";          // for the host file
  std::string cpp_compiler = "c++";       // for kernels in emulation
  std::vector<std::string> c_flags;       // more flags for the host file
  std::uint64_t seed = 1;                 // of emulation's order of blocks and threads
  int device = 0;                         // cuda
  std::string device_record;              // for whom plans are chosen (devices.h); "": the device that is there
  void* stream = nullptr;                 // cuda: the caller's CUstream; null: one of our own
  std::vector<std::string> cuda_folders;  // where to look for CUDA's libraries first
  std::string temporary_folder = "/tmp";
  std::string keep_folder;               // if set, a folder that exists: generated files and objects are copied there
  std::shared_ptr<ObjectCache> cache;    // of compiled files, for callers who load the same text again; may be null
  std::function<void(std::string)> log;  // what was compiled, how, and how long it took; may be null
  // Plans for sparse operands. Of several for one operand that is taken which is for the matrix of the call and for the
  // operator; a call with a matrix that none of them is for fails (run.argument).
  std::vector<SparsePlan> sparse_plans;
  RemarkSink remarks;  // what became of them, each once; may be null
};

// Calls are one at a time; two programs in two threads do not meet. Copies are the same program.
class Program {
 public:
  // `host_text` is a generated C file, which has its kernels as `apl_kernel_text`. bug.internal with the compiler's
  // words if it refuses, unsupported.backend if the machine lacks what the backend needs.
  static Result<Program> load(std::string_view host_text, const ProgramOptions& options = {});
  // The same with other kernels than the file's own.
  static Result<Program> load(std::string_view host_text, std::string_view kernel_text, const ProgramOptions& options);

  // One value for each result. A failed check is the program's error (run.*), with its location in the source. `warm`:
  // after a call that does not count, so that last_microseconds is without what a first call compiles, loads and
  // allocates.
  Result<std::vector<HostValue>> call(std::string_view entry, const std::vector<HostValue>& inputs, bool warm = false);
  // Times of `runs` calls after one that does not count, in microseconds, without copies of inputs and results. After
  // `seconds` no call is begun but the first that counts.
  Result<std::vector<double>> benchmark(std::string_view entry, const std::vector<HostValue>& inputs, int runs,
                                        double seconds = std::numeric_limits<double>::infinity());

  double last_microseconds() const;  // of the last call, likewise
  std::int64_t peak_bytes() const;   // of device memory, as asked for, inputs and results included, in any call so far
  std::vector<KernelStats> kernels() const;

 private:
  struct State;
  explicit Program(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace apl
