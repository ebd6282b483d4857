#include "tests/golden_runner/source.h"

#include "frontend/frontend.h"
#include "ir/parse.h"

namespace apl::golden {

Result<Module> input_module(const File& file) {
  if (!file.is_source()) {
    Result<Module> module = parse_module(file.head, file.path);
    if (module) module->known = file.matrices;
    return module;
  }
  std::optional<Diagnostic> first;
  const SourceFile source{file.path, file.head};
  const std::optional<Module> module = compile(source, [&](const Diagnostic& diagnostic) {
    if (!first && diagnostic.severity == Severity::error) first = diagnostic;
  });
  if (module) return *module;
  if (!first) first = make_error(Code::bug_internal, {}, "the frontend gave no module and no error");
  if (first->file.empty()) first->file = file.path;
  return *first;
}

}  // namespace apl::golden
