// Kernel files in emulation: their kernels and functions, compiled for the host, over the emulated device's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "codegen/emit/kernel_file.h"
#include "ir/host_value.h"
#include "ir/module.h"
#include "runtime/backends/emulate/machine.h"
#include "runtime/backends/toolchain.h"
#include "tests/unit/codegen/kernels.h"

namespace kernel_files {

// One at a time: callbacks of the loaded text are plain functions.
class Emulated {
 public:
  // The files of several entries of one program are loaded together.
  explicit Emulated(const std::vector<apl::KernelFile>& files);
  explicit Emulated(const apl::KernelFile& file) : Emulated(std::vector{file}) {}
  Emulated(const Emulated&) = delete;
  Emulated& operator=(const Emulated&) = delete;
  ~Emulated();

  // Device memory: what is in `bytes`, or so many undefined bytes.
  void* array(const void* bytes, std::size_t count);
  void* array(const std::vector<float>& numbers) { return array(numbers.data(), numbers.size() * sizeof(float)); }
  void* scratch(std::size_t floats);
  // What lies there; a byte that nobody has written is a failed check.
  void read(void* to, const void* from, std::size_t count);

  template <class Function>
  Function function(const std::string& name) {
    auto found = object_.function<Function>(name);
    const bool is_there = found != nullptr;
    REQUIRE_MESSAGE(is_there, name);
    return found;
  }

  // Calls the function of `entry`, of a module at the memory stage, with one value for each of its parameters, as
  // sparsify has them. What it returns is in `status`.
  std::vector<apl::HostValue> call(const apl::Function& entry, const std::vector<apl::HostValue>& arguments);

  int status = 0;     // of the last call
  int allocated = 0;  // blocks that files asked for and have not released
  std::int32_t failure() const { return machine_.failure.code; }

 private:
  struct Runtime;
  static const Runtime kCallbacks;
  static Emulated* now_;
  int launch(std::string kernel, unsigned blocks, unsigned threads, void** args, std::size_t shared_bytes);
  void copy(void* to, const void* from, std::size_t bytes);

  apl::emulate::Machine machine_;
  apl::SharedObject object_;
  std::map<std::string, std::string> signatures_;
};

}  // namespace kernel_files
