// Generated programs: compiled, loaded, called.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/host_value.h"
#include "ir/sparse_arguments.h"
#include "runtime/backends/kernel_stats.h"
#include "runtime/backends/toolchain.h"

namespace apl {

// A plan for a sparse operand (docs/sparse.md): the text of `aplc sparse search`.
struct SparsePlan {
  std::string operand;  // the entry's parameter
  std::string source;   // the file, for messages
  std::string text;
};

// What an entry takes and gives, value by value: a record or tuple is several, a sparse operand one.
struct ValueType {
  ScalarType element = ScalarType::unit;
  std::size_t rank = 0;
  bool sparse = false;                 // a matrix that may be given by its non-zeros
  std::optional<std::size_t> pattern;  // of a result: its values are those of the non-zeros of this argument
  std::string name;                    // in the IR, of an argument
  std::vector<std::string> shape;      // in terms of sizes, and of arguments that are numbers; by their names in the IR
};
struct EntryType {
  struct Param {
    std::string name, type;  // of the source
    std::size_t values = 1;
  };
  std::string name;
  std::vector<Param> params;
  std::vector<std::string> result_types;  // of the source
  std::vector<ValueType> inputs, outputs;
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
  // A plan that says `form dense` then runs the dense product of cuBLAS, which is looked for at run time, on a copy of
  // the operand with all of its zeros (cuda; in emulation plain loops stand in its place). Else such a plan is not used
  // where others are given for the operand, and refused where none is (run.argument).
  bool use_cublas = false;
  RemarkSink remarks;  // what became of them, each once; may be null
  // Of the program's entries, where they are known: Program::call_in_place checks its arguments by them.
  std::vector<EntryType> entries;
};

// A sparse operand of one program that was made once, for many calls. Copies are the same operand; it goes with the
// last of them. What the runtime packs of it is kept from call to call.
class ProgramMatrix {
 public:
  const HostCsr& matrix() const;

 private:
  friend class Program;
  struct State;
  explicit ProgramMatrix(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

// An argument that stays where it is: row-major elements without gaps, which nobody may change during the call.
struct BorrowedValue {
  ScalarType type = ScalarType::unit;
  std::vector<std::int64_t> shape;      // empty: a scalar, which lies on the host
  const void* data = nullptr;           // its alignment is that of the element
  bool on_device = false;               // in memory of the program's CUDA device; else on the host
  std::optional<ProgramMatrix> matrix;  // a sparse operand instead of all of the above
};

// What a call gave. An array lies in the program's memory, as a call left it, and goes back when the last copy of this
// goes; the program lives as long. Scalars lie on the host.
class OwnedValue {
 public:
  ScalarType type() const;
  const std::vector<std::int64_t>& shape() const;
  void* data() const;
  bool on_device() const;
  // A sparse result: the argument whose non-zeros `data` has the values of.
  const std::optional<ProgramMatrix>& pattern() const;
  // A copy on the host; waits for what is under way.
  Result<HostValue> fetch() const;

 private:
  friend class Program;
  struct State;
  explicit OwnedValue(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

// Calls of a program from several threads take turns; two programs in two threads do not meet. Copies are the same
// program.
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

  // The same without copies: host memory is borrowed by backend c, device memory by cuda; anything else is copied, as
  // by `call`. With `wait` false a call of backend cuda returns when its kernels are launched; what they find wrong is
  // then the error of the next call that waits, or of `wait`. Codes as of `call`; run.argument where an argument is
  // not what the entry takes, if that is known (entries()).
  Result<std::vector<OwnedValue>> call_in_place(std::string_view entry, const std::vector<BorrowedValue>& inputs,
                                                bool wait = true);
  // Whether a call would read the argument where it is.
  bool reads_in_place(const BorrowedValue& value) const;
  // The operand of an entry, by its name in the source. run.argument where it is not sparse, or the matrix is malformed
  // or of another type.
  Result<ProgramMatrix> make_matrix(std::string_view entry, std::string_view operand, HostCsr matrix);
  // Plans for sparse operands, instead of those so far; matrices that were made before keep theirs.
  Status set_sparse_plans(const std::vector<SparsePlan>& plans);
  // A CUstream of the device's primary context, on which everything happens from now on; null: one of its own. It waits
  // for what is under way on the stream before.
  Status set_stream(void* stream);
  Status wait();
  // Copies a result's elements to memory of the program's device, or of the host where it is on the host; in order with
  // calls.
  Status copy_to(const OwnedValue& value, void* to);
  const std::vector<EntryType>& entries() const;

  // Times of `runs` calls after one that does not count, in microseconds, without copies of inputs and results. After
  // `seconds` no call is begun but the first that counts.
  Result<std::vector<double>> benchmark(std::string_view entry, const std::vector<HostValue>& inputs, int runs,
                                        double seconds = std::numeric_limits<double>::infinity());

  // Microseconds that the kernels of a call take by the device's clock, each launched many times; after a call that
  // does not count. unsupported.backend where there is no such clock.
  Result<double> kernel_time(std::string_view entry, const std::vector<HostValue>& inputs);

  double last_microseconds() const;  // of the last call, likewise
  std::int64_t peak_bytes() const;   // of device memory, as asked for, inputs and results included, in any call so far
  std::int64_t launches() const;     // of kernels, in all calls so far; 0 for backend c, which has loops in their place
  std::vector<KernelStats> kernels() const;

 private:
  friend class ProgramMatrix;
  friend class OwnedValue;
  struct State;
  explicit Program(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace apl
