// A record of this machine's CPU for the models (machine/target/records.h), from measurements.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/diagnostic.h"
#include "runtime/backends/toolchain.h"

namespace aplc {

struct HostFigure {
  std::string name;  // a field of the record
  double value = 0;
  std::string how;  // what was measured or asked
};

// Threads, clock, products a clock, bandwidths and caches, by a probe that is compiled for this machine and runs on all
// of its threads for some seconds. Codes as of compile_shared. `progress` is called with the name of each measurement
// before it begins.
apl::Result<std::vector<HostFigure>> measure_host(const std::string& c_compiler, const apl::Workplace& workplace,
                                                  const std::function<void(const std::string&)>& progress);

// The text of a record: the built-in one of any CPU with these figures in the place of its own.
std::string host_record_text(const std::string& machine, const std::vector<HostFigure>& figures);

// What the system calls the processor; "a CPU" where it does not say.
std::string processor_name();

}  // namespace aplc
