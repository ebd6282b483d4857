// aplc check FILE: parse and type-check only.
#include <memory>

#include "aplc/driver.h"

namespace aplc {

void add_check(CLI::App& app, int& exit) {
  auto options = std::make_shared<CompileOptions>();
  CLI::App* command = app.add_subcommand("check", "parse and type-check a program");
  command->add_option("FILE", options->file, "program: .fut or .aplir")->required();
  options->front.add_to(*command);
  command->callback([options, &exit] {
    Session session(*options);
    session.read();
    exit = session.exit_code();
  });
}

}  // namespace aplc
