// Includes what an installation has, by the installed names.
#include <apl/ir/module.h>
#include <apl/passes/plugin.h>

static_assert(sizeof(apl::Module) > 0 && sizeof(apl::PassRegistry) > 0);
