#pragma once

#include <apl/passes/pass.h>

// The pass `hello`; see hello_pass.cpp.
apl::PassInfo hello_pass();
