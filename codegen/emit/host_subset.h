// The part of runtime/backends/scalar.h that a kernel file's host code calls.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace apl {

// Of `header`, whose functions stand alone or in macros that make them for one type each: the functions of these names
// with those that they call, macros expanded, in the header's order. Names of no such function are left out.
std::string host_subset(std::string_view header, const std::set<std::string>& names);

}  // namespace apl
