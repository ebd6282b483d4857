// A module as a program in this process: generated, compiled and loaded.
#pragma once

#include <vector>

#include "codegen/codegen.h"
#include "runtime/program/program.h"

namespace apl {

// What the entries of a module take and give. At any stage: those that sparsify made structs of arrays are one value.
std::vector<EntryType> entry_types(const Module& module);

// `module` is at the memory stage, of the pipeline for the backend's machine. The program's entries() are the module's.
// Codes as of generate and Program::load.
Result<Program> load_program(const Module& module, ProgramOptions options = {}, CodegenOptions codegen = {});

}  // namespace apl
