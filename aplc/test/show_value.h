// Values as a program's source writes them: tuples, records, constructors and arrays of such.
#pragma once

#include <string>
#include <vector>

#include "codegen/emit/library/api_types.h"
#include "ir/host_value.h"

namespace aplc {

// `{a = 1i32, b = [2i32, 3i32]}`, `(1i32, true)`, `#some 3i32`. `values` are those that a value of the type is made of.
std::string show_value(const apl::library::ApiType& type, const std::vector<apl::HostValue>& values);

}  // namespace aplc
