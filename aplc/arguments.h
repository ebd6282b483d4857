// Arguments of an entry from the command line: values, @files, and name= either.
#pragma once

#include <string>
#include <vector>

#include "aplc/sparse/arguments.h"
#include "ir/host_value.h"
#include "ir/module.h"

namespace aplc {

// Named arguments go to their parameters, the others fill the rest in order; with none all come from standard
// input. Errors name the parameter and what it expects (run.argument), or the file (command.no-such-file). Matrix files
// for sparse operands, which must be named, go to `matrices`; they have empty matrices instead.
apl::Result<std::vector<apl::HostValue>> read_arguments(const apl::Function& entry,
                                                        const std::vector<std::string>& texts, GivenMatrices& matrices);

// A value of f32 for a parameter that is kept in a narrower float, rounded; others stay.
void round_stored(apl::HostValue& value, apl::ScalarType param);

}  // namespace aplc
