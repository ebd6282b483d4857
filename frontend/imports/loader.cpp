#include "frontend/imports/loader.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>
#include <vector>

#include "frontend/syntax/parser.h"

namespace apl::frontend {

namespace {

// Longer chains would overflow the stack.
constexpr std::size_t kMaxChain = 200;

class Loader {
 public:
  Loader(Program& program, const ReadFile& read, const DiagnosticSink& sink)
      : program_(program), read_(read), sink_(sink) {}

  void load(std::vector<Declaration>& declarations, const std::string& name) {
    chain_.push_back(name);
    for (Declaration& declaration : declarations) visit(declaration, name);
    chain_.pop_back();
  }

 private:
  void visit(Declaration& declaration, const std::string& name) {
    if (auto* module = std::get_if<ModuleDefinition>(&declaration.node)) visit(*module->body, name);
    if (auto* opened = std::get_if<OpenDeclaration>(&declaration.node)) visit(*opened->module, name);
  }

  void visit(ModuleExpr& module, const std::string& name) {
    if (auto* import = std::get_if<ModuleImport>(&module.node)) {
      import->file = file(import->path, name, module.location);
    } else if (auto* body = std::get_if<ModuleBody>(&module.node)) {
      for (Declaration& declaration : body->declarations) visit(declaration, name);
    } else if (auto* ascribe = std::get_if<ModuleAscribe>(&module.node)) {
      visit(*ascribe->module, name);
    } else if (auto* apply = std::get_if<ModuleApply>(&module.node)) {
      visit(*apply->function, name);
      visit(*apply->argument, name);
    } else if (auto* lambda = std::get_if<ModuleLambda>(&module.node)) {
      visit(*lambda->body, name);
    }
  }

  std::optional<std::uint32_t> file(const std::string& path, const std::string& importer, Location location) {
    const auto beside = std::filesystem::path(importer).parent_path();
    const std::string name = (beside / (path + ".fut")).lexically_normal().generic_string();
    if (const auto found = done_.find(name); found != done_.end()) return found->second;
    if (std::ranges::find(chain_, name) != chain_.end()) {
      report(location, "Import cycle: " + chain_text(name));
      return std::nullopt;
    }
    if (chain_.size() > kMaxChain || program_.sources.size() + 2 >= kMaxFiles) {
      report(location, "Too many imported files", Code::unsupported_construct);
      return std::nullopt;
    }
    const std::optional<std::string> text = read_(name);
    if (!text) {
      report(location, "Could not find import \"" + path + "\" at path " + name);
      done_.emplace(name, std::nullopt);
      return std::nullopt;
    }
    const auto number = static_cast<std::uint32_t>(program_.sources.size() + 1);
    program_.sources.push_back({name, location});
    ImportedFile file{.name = name, .declarations = parse_file(*text, number, program_, sink_)};
    load(file.declarations, name);
    program_.files.push_back(std::move(file));
    const auto index = static_cast<std::uint32_t>(program_.files.size() - 1);
    done_.emplace(name, index);
    return index;
  }

  std::string chain_text(const std::string& name) const {
    std::string text;
    for (auto link = std::ranges::find(chain_, name); link != chain_.end(); ++link) text += *link + " imports ";
    return text + name;
  }

  void report(Location location, std::string message, Code code = Code::type_unknown_name) {
    if (sink_) sink_(make_error(code, location, std::move(message)));
  }

  Program& program_;
  const ReadFile& read_;
  const DiagnosticSink& sink_;
  std::vector<std::string> chain_;  // of the files being loaded
  std::map<std::string, std::optional<std::uint32_t>> done_;
};

}  // namespace

void load_imports(Program& program, const std::string& name, const ReadFile& read, const DiagnosticSink& sink) {
  Loader(program, read, sink)
      .load(program.declarations, std::filesystem::path(name).lexically_normal().generic_string());
}

}  // namespace apl::frontend
