// An aplc with one more pass.
#include <apl/driver_main.h>

#include "hello_pass.h"

int main(int argc, char** argv) {
  apl::PassRegistry registry = apl::PassRegistry::builtin();
  registry.add(hello_pass());
  registry.insert(apl::InsertionPoint::start, "hello");
  return apl::driver_main(argc, argv, std::move(registry));
}
