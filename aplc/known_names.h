// Names that a user may give numbers: tuning parameters, and sizes.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "aplc/parameters.h"
#include "ir/module.h"

namespace aplc {

// A name as it was given: by `--param`, or in a line of a tuning file.
struct GivenName {
  std::string name;
  std::string file;        // empty: on the command line
  apl::Location location;  // of the file
};

// The first name that the program asks for on no machine, with the nearest one that it does: command.bad-parameter.
// `marked` are the names of #[param] in its source, `compiled` is what it was made into; the standard pipelines are run
// for what it would be made into.
apl::Status check_parameters(const std::vector<GivenName>& given, const Parameters& values,
                             const std::set<std::string>& marked, const apl::Module& front,
                             const apl::Module* compiled = nullptr);

// The first name that is no size of the program: command.bad-argument. Sizes are what shapes are made of.
apl::Status check_sizes(const std::map<std::string, std::int64_t>& sizes, const apl::Module& front,
                        const apl::Module& compiled);

}  // namespace aplc
