// aplc check FILE: parse and type-check, and with sparse operands say which of them become dense.
#include <memory>

#include "aplc/driver.h"
#include "aplc/sparse/arguments.h"

namespace aplc {

void add_check(CLI::App& app, int& exit) {
  auto options = std::make_shared<CompileOptions>();
  CLI::App* command = app.add_subcommand("check", "parse and type-check a program");
  command->add_option("FILE", options->file, "program: .fut or .aplir")->required();
  options->front.add_to(*command);
  command->callback([options, &exit] {
    Session session(*options);
    // Only passes know which sparse operands become dense.
    if (session.read() && sparse::has_operands(session.module())) session.run(pipeline_for("interp", {}));
    exit = session.exit_code();
  });
}

}  // namespace aplc
