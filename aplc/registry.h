// The passes that a command knows: those that driver_main was given, and those of --pass-plugin.
#pragma once

#include <CLI/CLI.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ir/diagnostic.h"
#include "passes/pass.h"

namespace aplc {

const apl::PassRegistry& registry();
void set_registry(apl::PassRegistry registry);

// --pass-plugin and --insert, which extend the registry before the command begins.
void add_plugin_options(CLI::App& command);
// What was given with them, as it must be given again to replay the command.
const std::vector<std::string>& plugin_arguments();

// A wrong value of an option, found while the command line is read; driver_main reports it.
class CommandError : public std::runtime_error {
 public:
  explicit CommandError(apl::Diagnostic diagnostic)
      : std::runtime_error(diagnostic.message), diagnostic_(std::move(diagnostic)) {}
  const apl::Diagnostic& diagnostic() const { return diagnostic_; }

 private:
  apl::Diagnostic diagnostic_;
};

}  // namespace aplc
