// Finds and parses the files that a program imports, each once.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "frontend/syntax/ast.h"
#include "ir/diagnostic.h"

namespace apl::frontend {

// The text of a file; nullopt if there is none.
using ReadFile = std::function<std::optional<std::string>(const std::string& name)>;

// `import "lib/sort"` in the file dir/a.fut is dir/lib/sort.fut. Fills Program::files and the imports' `file`; what
// cannot be found, or imports itself, is reported at the import.
void load_imports(Program& program, const std::string& name, const ReadFile& read, const DiagnosticSink& sink);

}  // namespace apl::frontend
