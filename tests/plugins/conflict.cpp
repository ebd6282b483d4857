// A plug-in with a pass of a name that exists.
#include "passes/plugin.h"

APL_PASS_PLUGIN("conflict", "1", [](apl::PassRegistry& registry) {
  apl::PassInfo pass;
  pass.name = "simplify";
  pass.run = [](apl::Module&, apl::PassContext&) -> apl::Result<apl::Change> { return apl::Change::no; };
  registry.add(pass);
})
