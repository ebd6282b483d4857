// What code is generated for, as properties: whoever differs by the target asks for what it needs, never for a name.
// All of it comes from the machine's record (machine/target/records) and from the row of its dialect in target.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/diagnostic.h"

namespace apl {

// The language that kernels are written in.
struct Dialect {
  std::string_view name;   // in records and on the command line: "c", "cuda", "hip"
  std::string_view title;  // "C", "CUDA", "HIP"
  // Kernels are a text of their own over runtime/device/device.h, whose functions are overloaded and whose threads are
  // those of a block. Else they are functions of the host's C file, and threads are loops.
  bool on_device = false;
  bool embeds = false;      // whether libraries, executables and servers can be made
  std::string_view record;  // the machine that is assumed where none is named
  // Of kernel files (codegen/emit/kernel_file.h), where there is a device.
  std::string_view macro;               // that its compilers define
  std::string_view api;                 // what names of the host's functions start with
  std::string_view header;              // of the API,
  std::string_view half_header;         // and of its floats of 16 bits
  std::string_view kernel_as;           // what becomes of a kernel's name as an argument of the API
  std::int64_t usual_shared_bytes = 0;  // of a block, above which a kernel must ask for it
  bool bounds_have_blocks = true;       // whether __launch_bounds__ takes how many blocks a multiprocessor is to hold
};

struct Target {
  std::string device;             // the record's name, or its file
  const Dialect* dialect{};       // never null
  std::int64_t warp = 1;          // threads that take each instruction together; 1 without a device
  std::int64_t block_shared = 0;  // bytes of shared memory at most, a block
  bool has_mainloop = false;      // contractions have the mainloop (codegen/contraction)
  bool has_async_copies = false;  // to shared memory, beside the arithmetic
  bool has_matrix_units = false;

  bool on_device() const { return dialect->on_device; }
};

// "c", "cuda", "hip".
std::vector<std::string_view> dialect_names();
// Null: there is none of this name.
const Dialect* find_dialect(std::string_view name);
// Of host code.
const Dialect& c_dialect();

// By the name of a record or its file, as find_device takes it, or of a dialect, which stands for its usual machine.
Result<Target> find_target(const std::string& name);
// The usual machines of three dialects.
Target c_target();
Target cuda_target();
Target hip_target();

}  // namespace apl
