// The command line of aplc as a library: a program of one's own that knows more passes.
//
//   #include <apl/driver_main.h>
//   int main(int argc, char** argv) {
//     apl::PassRegistry registry = apl::PassRegistry::builtin();
//     registry.add(my_pass());
//     registry.insert(apl::InsertionPoint::soac_end, "my-pass");
//     return apl::driver_main(argc, argv, std::move(registry));
//   }
#pragma once

#include "passes/pass.h"

namespace apl {

// Runs one command of aplc and returns its exit code. It is called once, by `main`: it handles the signals that end a
// process, and writes to its standard output and standard error.
int driver_main(int argc, char** argv, PassRegistry registry);

}  // namespace apl
