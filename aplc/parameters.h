// Tuning parameters as users give them: --param NAME=VALUE, and files with a line of that form each.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "ir/diagnostic.h"

namespace aplc {

using Parameters = std::map<std::string, std::int64_t>;

// `NAME=VALUE` of --param. A number is at least 1, and a tile number no more than any machine could hold: what one
// command refuses, all do. Code command.bad-parameter.
apl::Result<std::pair<std::string, std::int64_t>> parse_parameter(const std::string& text);

// Lines NAME=VALUE, as of Futhark's tuning files: 0 is the default, and of two lines for one name the last counts.
// Blanks around names, numbers and lines mean nothing, nor does a carriage return. Errors have their line.
// `lines`, where it is given, receives the line of each name.
apl::Result<Parameters> parse_tuning(const std::string& text, std::map<std::string, std::uint32_t>* lines = nullptr);

// `NAME=NUMBER` of --size, at least 1. Code command.bad-argument.
apl::Result<std::pair<std::string, std::int64_t>> parse_size(const std::string& text);

}  // namespace aplc
