#include "frontend/frontend.h"

#include <utility>

#include "frontend/consume/consume.h"
#include "frontend/lower/lower.h"
#include "frontend/syntax/parser.h"
#include "frontend/types/causality.h"
#include "frontend/types/checked.h"
#include "frontend/types/warnings.h"

namespace apl {

namespace {

// Declarations that do not parse are left out, and the rest is still checked; names that they would have bound
// are then unknown, which would only repeat the first error.
std::optional<frontend::Checked> front(const SourceFile& source, const DiagnosticSink& sink) {
  bool failed = false;
  const DiagnosticSink counted = [&](const Diagnostic& diagnostic) {
    failed = failed || diagnostic.severity == Severity::error;
    if (sink) sink(diagnostic);
  };
  frontend::Program program = frontend::parse_program(source.text, counted);
  const bool syntax_failed = failed;
  const DiagnosticSink types = [&](const Diagnostic& diagnostic) {
    if (!syntax_failed || diagnostic.code != Code::type_unknown_name) counted(diagnostic);
  };
  std::optional<frontend::Checked> checked = frontend::check_program(std::move(program), types);
  if (failed || !checked) return std::nullopt;
  if (!frontend::check_causality(*checked, counted) || !frontend::check_consumption(*checked, counted))
    return std::nullopt;
  frontend::warn_about(*checked, counted);
  return checked;
}

}  // namespace

bool check(const SourceFile& source, const DiagnosticSink& sink) { return front(source, sink).has_value(); }

std::optional<Module> compile(const SourceFile& source, const DiagnosticSink& sink) {
  std::optional<frontend::Checked> checked = front(source, sink);
  if (!checked) return std::nullopt;
  std::optional<Module> module = frontend::lower_program(*checked, source.parameters, sink);
  if (!module) return std::nullopt;
  module->file = source.name;
  module->source = source.text;
  return module;
}

}  // namespace apl
