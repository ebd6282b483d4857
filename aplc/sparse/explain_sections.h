// What `aplc explain` says of matrices that are compiled into the program: their sections, how much code that is, and
// what the search for tiles measured (docs/constant.md).
#pragma once

#include <string>
#include <vector>

#include "ir/module.h"
#include "machine/target/records.h"

namespace aplc::sparse {

// A remark of kind analysis for each product that has code of its own, in a module at the memory stage. `log`: a log of
// `aplc sections`, or empty.
std::vector<apl::Remark> explain_sections(const apl::Module& module, bool gpu, const apl_device& device,
                                          const std::string& log);

}  // namespace aplc::sparse
