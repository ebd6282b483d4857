// The meaning of the IR at every stage, checked. Indices of parallel constructs run in a seeded random
// order, and the result must not depend on it: this is the race check of the IR.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ir/host_value.h"
#include "ir/module.h"
#include "ir/sparse_arguments.h"
#include "ir/work.h"

namespace apl {

struct InterpretOptions {
  std::uint64_t seed = 1;
  std::map<std::string, std::int64_t> parameters;  // values of get_size; else the default in the node
  std::function<bool()> stop;  // asked after 65,536 bodies or elements made; true ends with an error
  TileMaker tiles{};           // of dense arguments, for entries that take tiles
  // An element that a scatter gives different values has no one result. The last one in row-major order stays; or, if
  // this is set, it is the error run.scattered-twice.
  bool check_scatters = false;
  // Told of each reduction, scan and histogram of floats, and of loops that carry float scalars, with the number of
  // terms.
  std::function<void(ScalarType, std::int64_t terms)> reduced;
  // Set: what each statement costs is added here. Of a `choose` the last alternative runs. The module has no
  // derivatives: `differentiate` replaces them by statements that would be gone after the run.
  WorkCount* work = nullptr;
  // Told of each line that `trace` writes, without its end.
  std::function<void(const std::string&)> trace = {};
};

// Runs an entry on values for its parameters (not for its sizes: those follow from the shapes, and shapes that
// disagree are run.shape-mismatch). One value for each of the function's results.
Result<std::vector<HostValue>> interpret(const Module& module, std::string_view entry,
                                         const std::vector<HostValue>& arguments, const InterpretOptions& options = {});

}  // namespace apl
