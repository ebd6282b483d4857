// Arguments of an entry from the command line: values, @files, and name= either.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "aplc/sparse/arguments.h"
#include "ir/host_value.h"
#include "ir/module.h"

namespace aplc {

// What arrays become that no argument is given for: random values, in the sizes that these and the other arguments say.
struct RandomArguments {
  std::map<std::string, std::int64_t> sizes;  // by name
  std::uint64_t seed = 1;
};

// Named arguments go to their parameters, the others fill the rest in order; with none all come from standard
// input, or if `random` is there, from it, as all that are missing. Errors name the parameter and what it expects
// (run.argument), or the file (command.no-such-file). Matrix files for sparse operands, which must be named, go to
// `matrices`; they have empty matrices instead.
apl::Result<std::vector<apl::HostValue>> read_arguments(const apl::Function& entry,
                                                        const std::vector<std::string>& texts, GivenMatrices& matrices,
                                                        const RandomArguments* random = nullptr);

// A value of f32 for a parameter that is kept in a narrower float, rounded; others stay.
void round_stored(apl::HostValue& value, apl::ScalarType param);

}  // namespace aplc
