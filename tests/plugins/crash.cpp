// A plug-in whose pass `crash` ends the process, and whose pass `break` leaves a module that is not well-formed.
#include <cstdlib>

#include "passes/plugin.h"

namespace {

using namespace apl;

Result<Change> forget_results(Module& module, PassContext&) {
  for (FunctionPtr& function : module.functions) {
    Function copy = *function;
    copy.body = make_body(copy.body->stms, {});
    function = std::make_shared<const Function>(std::move(copy));
  }
  return Change::yes;
}

}  // namespace

APL_PASS_PLUGIN("crash", "1", [](PassRegistry& registry) {
  PassInfo crash;
  crash.name = "crash";
  crash.run = [](Module&, PassContext&) -> Result<Change> { std::abort(); };
  registry.add(crash);
  PassInfo broken;
  broken.name = "break";
  broken.run = forget_results;
  registry.add(broken);
})
