// Several programs as one module: one run of the pipeline and of the C compiler serves for all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ir/module.h"

namespace apl::suite {

// What a name of program `number` is called in the joined module.
std::string joined_name(std::size_t number, std::string_view name);

// The modules' functions in one module, each function and entry under its joined name, so that programs whose entries
// have the same name do not meet. All modules have the same stage, which the result has, too. Places in the source
// stay, without the name of a file.
Module join(const std::vector<const Module*>& modules);

// Tuning parameters of program `number` by the names that they have in the joined module: `main.T_a` is an entry's and
// is renamed with it, a name without an entry of the module stays.
std::map<std::string, std::int64_t> joined_parameters(std::size_t number, const Module& module,
                                                      const std::map<std::string, std::int64_t>& parameters);

}  // namespace apl::suite
