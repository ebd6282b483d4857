#include "frontend/frontend.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "frontend/consume/consume.h"
#include "frontend/imports/loader.h"
#include "frontend/lower/lower.h"
#include "frontend/syntax/children.h"
#include "frontend/syntax/parser.h"
#include "frontend/types/causality.h"
#include "frontend/types/checked.h"
#include "frontend/types/warnings.h"
#include "ir/attributes.h"
#include "ir/read_file.h"

namespace apl {

namespace {

// More errors than this are rarely read, and one mistake may cause many.
constexpr int kMaxErrors = 50;

// What the parts of the frontend say one after the other: errors of imported files first, as those of other files may
// follow from them, then the program's own file in the order of its lines, then warnings about imported ones.
class Diagnostics {
 public:
  DiagnosticSink sink() {
    return [this](const Diagnostic& diagnostic) { all_.push_back(diagnostic); };
  }
  // `loaded`: the imported files, each after those that it imports.
  void name_files(std::string main, std::vector<frontend::SourceInfo> sources,
                  const std::vector<frontend::ImportedFile>& loaded) {
    main_ = std::move(main);
    sources_ = std::move(sources);
    for (std::size_t k = 0; k < loaded.size(); ++k) loaded_[loaded[k].name] = k;
  }
  void give(const DiagnosticSink& sink) {
    if (!sink) return;
    std::ranges::stable_sort(all_, {}, [this](const Diagnostic& diagnostic) {
      return std::tuple(order_of(diagnostic), diagnostic.location.line, diagnostic.location.column);
    });
    int errors = 0;
    std::set<std::tuple<std::uint32_t, std::uint32_t, std::string>> said;
    for (const Diagnostic& diagnostic : all_) {
      // Parametric modules are checked once for each application.
      if (!said.emplace(diagnostic.location.line, diagnostic.location.column, diagnostic.message).second) continue;
      if (diagnostic.severity != Severity::error || ++errors <= kMaxErrors) sink(placed(diagnostic));
    }
  }

 private:
  std::size_t order_of(const Diagnostic& diagnostic) const {
    const std::uint32_t file = frontend::file_of(diagnostic.location);
    const auto found = file > 0 && file <= sources_.size() && diagnostic.severity == Severity::error
                           ? loaded_.find(name_of(file))
                           : loaded_.end();
    return found == loaded_.end() ? loaded_.size() : found->second;
  }
  const std::string& name_of(std::uint32_t file) const { return file == 0 ? main_ : sources_[file - 1].name; }

  // With the file in its place, and the imports that lead to it as notes.
  Diagnostic placed(Diagnostic diagnostic) const {
    const std::uint32_t file = frontend::file_of(diagnostic.location);
    if (file > 0 && file <= sources_.size()) diagnostic.file = name_of(file);
    diagnostic.location = frontend::within_file(diagnostic.location);
    for (Note& note : diagnostic.notes) {
      const std::uint32_t other = frontend::file_of(note.location);
      note.location = frontend::within_file(note.location);
      if (other == file) continue;
      if (other <= sources_.size()) note.message += " (" + name_of(other) + ":" + place(note.location) + ")";
      note.location = {};
    }
    for (std::uint32_t at = file; at > 0 && at <= sources_.size();) {
      const Location import = sources_[at - 1].imported_at;
      const std::uint32_t importer = frontend::file_of(import);
      diagnostic.notes.push_back(
          {name_of(at) + " is imported at " + name_of(importer) + ":" + place(frontend::within_file(import)), {}});
      at = importer;
    }
    return diagnostic;
  }
  static std::string place(const Location& location) {
    return std::to_string(location.line) + ":" + std::to_string(location.column);
  }

  std::vector<Diagnostic> all_;
  std::string main_;
  std::vector<frontend::SourceInfo> sources_;
  std::map<std::string, std::size_t> loaded_;
};

std::optional<std::string> read_from_disk(const std::string& name) {
  auto text = read_bytes(name);
  return text ? std::optional(std::move(*text)) : std::nullopt;
}

// Declarations that do not parse are left out, and the rest is still checked; names that they would have bound
// are then unknown, which would only repeat the first error.
std::optional<frontend::Checked> front(const SourceFile& source, Diagnostics& diagnostics) {
  const DiagnosticSink sink = diagnostics.sink();
  bool failed = false;
  const DiagnosticSink counted = [&](const Diagnostic& diagnostic) {
    failed = failed || diagnostic.severity == Severity::error;
    sink(diagnostic);
  };
  frontend::Program program = frontend::parse_program(source.text, counted);
  frontend::load_imports(program, source.name, source.read ? source.read : read_from_disk, counted);
  diagnostics.name_files(source.name, program.sources, program.files);
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

void tell_parameters(const frontend::Expr& expr, const std::function<void(const std::string&)>& tell) {
  if (const auto* attributed = std::get_if<frontend::Attributed>(&expr.node))
    if (const auto name = read_attribute(attributed->attribute, attribute::param)) tell(std::get<0>(*name));
  frontend::for_each_child(expr, [&](const frontend::Expr& child) { tell_parameters(child, tell); });
}

}  // namespace

bool check(const SourceFile& source, const DiagnosticSink& sink) {
  Diagnostics diagnostics;
  const bool right = front(source, diagnostics).has_value();
  diagnostics.give(sink);
  return right;
}

std::optional<Module> compile(const SourceFile& source, const DiagnosticSink& sink) {
  Diagnostics diagnostics;
  std::optional<frontend::Checked> checked = front(source, diagnostics);
  std::optional<Module> module;
  if (checked && source.parameter)
    for (const frontend::Global& global : checked->globals) tell_parameters(*global.definition->body, source.parameter);
  if (checked) module = frontend::lower_program(*checked, source.parameters, source.safe, diagnostics.sink());
  diagnostics.give(sink);
  if (!module) return std::nullopt;
  module->file = source.name;
  module->source = source.text;
  return module;
}

}  // namespace apl
