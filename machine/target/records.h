// Records of machines for the model of tiles: built in by name, or read from a file of the same kind.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/diagnostic.h"
#include "machine/tiles/plan.h"

namespace apl {

// "a100", "cpu", ...
std::vector<std::string_view> device_names();

// A record by name, or from the file of that name (anything with a dot or a slash). command.bad-argument.
Result<apl_device> find_device(const std::string& name);

// The text of that record.
Result<std::string> device_record_text(const std::string& name);

// What a driver says of a GPU, for whose sake a record is looked for or adapted: a record that names it, else the one
// of any GPU with these numbers.
struct DeviceFacts {
  std::string name;  // "NVIDIA H200"
  int multiprocessors = 0, block_shared = 0, multiprocessor_shared = 0, multiprocessor_threads = 0, registers = 0;
  double clock_ghz = 0, memory_gbs = 0;  // 0: not known
};
apl_device device_from(const DeviceFacts& facts);

// The record of the machine that this runs on: any CPU with as many cores.
apl_device host_device();

}  // namespace apl
