#include "frontend/frontend.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "frontend/consume/consume.h"
#include "frontend/lower/lower.h"
#include "frontend/syntax/parser.h"
#include "frontend/types/causality.h"
#include "frontend/types/checked.h"
#include "frontend/types/warnings.h"

namespace apl {

namespace {

// More errors than this are rarely read, and one mistake may cause many.
constexpr int kMaxErrors = 50;

// What the parts of the frontend say one after the other, in the order of the program's lines.
class Diagnostics {
 public:
  DiagnosticSink sink() {
    return [this](const Diagnostic& diagnostic) { all_.push_back(diagnostic); };
  }
  void give(const DiagnosticSink& sink) {
    if (!sink) return;
    std::ranges::stable_sort(all_, {}, [](const Diagnostic& diagnostic) {
      return std::pair(diagnostic.location.line, diagnostic.location.column);
    });
    int errors = 0;
    for (const Diagnostic& diagnostic : all_)
      if (diagnostic.severity != Severity::error || ++errors <= kMaxErrors) sink(diagnostic);
  }

 private:
  std::vector<Diagnostic> all_;
};

// Declarations that do not parse are left out, and the rest is still checked; names that they would have bound
// are then unknown, which would only repeat the first error.
std::optional<frontend::Checked> front(const SourceFile& source, const DiagnosticSink& sink) {
  bool failed = false;
  const DiagnosticSink counted = [&](const Diagnostic& diagnostic) {
    failed = failed || diagnostic.severity == Severity::error;
    sink(diagnostic);
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

bool check(const SourceFile& source, const DiagnosticSink& sink) {
  Diagnostics diagnostics;
  const bool right = front(source, diagnostics.sink()).has_value();
  diagnostics.give(sink);
  return right;
}

std::optional<Module> compile(const SourceFile& source, const DiagnosticSink& sink) {
  Diagnostics diagnostics;
  std::optional<frontend::Checked> checked = front(source, diagnostics.sink());
  std::optional<Module> module;
  if (checked) module = frontend::lower_program(*checked, source.parameters, diagnostics.sink());
  diagnostics.give(sink);
  if (!module) return std::nullopt;
  module->file = source.name;
  module->source = source.text;
  return module;
}

}  // namespace apl
