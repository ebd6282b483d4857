// A plug-in that cannot add its passes.
#include <stdexcept>

#include "passes/plugin.h"

APL_PASS_PLUGIN("throws-early", "1", [](apl::PassRegistry&) { throw std::runtime_error("no passes today"); })
