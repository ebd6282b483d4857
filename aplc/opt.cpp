// aplc opt FILE: IR (or source) in, a pipeline over it, IR out.
#include <memory>

#include "aplc/driver.h"
#include "ir/print.h"

namespace aplc {

void add_opt(CLI::App& app, int& exit) {
  struct Options : CompileOptions {
    std::string pipeline, output;
    bool locations = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("opt", "run passes over a program and print the textual IR");
  options->add_to(*command);
  command->add_option(
      "-p,--pipeline", options->pipeline,
      "passes, as simplify,fuse (default: none); soac, kernel or memory for the standard pipeline up to that stage");
  command->add_option("-o,--output", options->output, "file to write (default: standard output)");
  command->add_flag("--locations", options->locations, "print source locations");
  command->callback([options, &exit] {
    Session session(*options);
    bool ok = session.read();
    std::string pipeline = options->pipeline;
    for (apl::Stage stage : {apl::Stage::soac, apl::Stage::kernel, apl::Stage::memory})
      if (pipeline == apl::to_text(stage)) pipeline = apl::standard_pipeline(stage);
    if (ok && !pipeline.empty()) ok = session.run(pipeline);
    exit = session.exit_code();
    if (ok) exit = emit(options->output, apl::print(session.module(), {.locations = options->locations}));
  });
}

}  // namespace aplc
