// A generated program with Futhark's C API: one C file and its header that need nothing else of ours, or a program.
#pragma once

#include <cstdint>
#include <string>

#include "codegen/codegen.h"

namespace apl {

enum class Artifact : std::uint8_t {
  library,
  executable,  // with a `main` that reads values and writes results, as Futhark's executables
  server,      // with a `main` that obeys Futhark's server protocol
};

struct LibraryOptions {
  Artifact artifact = Artifact::library;
  std::string name = "library";  // of the files, without their endings
  std::string version;           // of the compiler, for the manifest
  bool one_file = false;         // the C file holds its header's text and includes no header of apl
};

struct LibraryText {
  std::string source;    // C11 with GNU extensions, for a C compiler
  std::string header;    // C and C++
  std::string manifest;  // JSON
};

// With `codegen.device` set, plans are chosen for that machine, else for the one that the library runs on.
Result<LibraryText> generate_library(const Module& module, Target target, const CodegenOptions& codegen,
                                     const LibraryOptions& options);

}  // namespace apl
