#pragma once

#include <apl/passes/pass.h>

// The pass `double-to-add`; see double_to_add.cpp.
apl::PassInfo double_to_add_pass();
