// Constants of a program: values that depend on no argument of an entry and that cost more than a few scalar
// operations. A function without parameters makes each (EntryInfo::is_constant). Functions that read one have its
// values as their last parameters: entries get them from whoever runs the program, which calls the constant's function
// once for each context, and other functions from their callers.
//
//   constant table () : {"[1000]f32"}
//   fun table [] () : {[1000]f32} = { ... }
//   entry main (i : "i64") : {"f32"} constants (table)
//   fun main [] (i : i64, table : [1000]f32) : {f32} = { ... }
#pragma once

#include <optional>
#include <string>

#include "ir/module.h"

namespace apl {

// Calls of functions that make constants become parameters.
void pass_constants(Module& module);

// The reverse: each function calls what makes its constants, whose functions are ordinary ones then. For programs that
// have no context in which a value outlives a call.
void expand_constants(Module& module);

// What is wrong with the constants that the function reads or makes; nullopt if nothing is.
std::optional<std::string> check_constants(const Module& module, const Function& function);

}  // namespace apl
