// The pass as a plug-in: `aplc ... --pass-plugin=libhello_pass.so`. It also runs in the standard pipelines, before
// anything simplifies.
#include <apl/passes/plugin.h>

#include "hello_pass.h"

APL_PASS_PLUGIN("hello", "1.0", [](apl::PassRegistry& registry) {
  registry.add(hello_pass());
  registry.insert(apl::InsertionPoint::start, "hello");
})
