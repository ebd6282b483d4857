// aplc: the driver with the passes of the tree. One file a subcommand; see aplc/driver.h for exit codes.
#include "aplc/driver_main.h"

int main(int argc, char** argv) { return apl::driver_main(argc, argv, apl::PassRegistry::builtin()); }
