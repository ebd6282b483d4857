#include "aplc/registry.h"

#include "passes/plugin.h"

namespace aplc {
namespace {

struct Known {
  apl::PassRegistry registry;
  std::vector<std::string> arguments;
};

// One process runs one command.
Known& known() {
  static Known state;
  return state;
}

void take(const apl::Status& status, std::string argument) {
  if (!status) throw CommandError(status.error());
  known().arguments.push_back(std::move(argument));
}

}  // namespace

const apl::PassRegistry& registry() { return known().registry; }
void set_registry(apl::PassRegistry registry) { known() = {std::move(registry), {}}; }
const std::vector<std::string>& plugin_arguments() { return known().arguments; }

void add_plugin_options(CLI::App& command) {
  // Plug-ins are loaded before what names their passes is read, wherever the options stand.
  command
      .add_option_function<std::vector<std::string>>(
          "--pass-plugin",
          [](const std::vector<std::string>& paths) {
            for (const std::string& path : paths)
              take(apl::load_plugin(path, known().registry), "--pass-plugin=" + path);
          },
          "shared library with more passes (docs/adding-a-pass.md)")
      ->allow_extra_args(false)
      ->type_name("FILE");
  command
      .add_option_function<std::vector<std::string>>(
          "--insert",
          [](const std::vector<std::string>& texts) {
            for (const std::string& text : texts)
              take(apl::insert_pipeline(text, known().registry), "--insert=" + text);
          },
          "passes to insert into the standard pipeline, as soac-end:my-pass; `aplc passes` lists the points")
      ->allow_extra_args(false)
      ->type_name("POINT:PIPELINE");
}

}  // namespace aplc
