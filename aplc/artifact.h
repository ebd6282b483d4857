// Programs made of generated text by the machine's C compiler.
#pragma once

#include <string>

#include "machine/target/target.h"

namespace aplc {

// The shell command that compiles `source` to `program`: the compiler that CC names, with the flags of CFLAGS.
std::string artifact_command(const apl::Target& target, const std::string& program, const std::string& source);

}  // namespace aplc
