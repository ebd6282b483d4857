// aplc c FILE and aplc cuda FILE: the generated text.
#include <memory>

#include "aplc/driver.h"
#include "codegen/codegen.h"

namespace aplc {
namespace {

struct EmitOptions : CompileOptions {
  std::string output;
  bool kernels_only = false;
};

void run(const EmitOptions& options, apl::Target target, int& exit) {
  Session session(options);
  bool ok = session.read() && session.run(pipeline_for(target == apl::Target::c ? "c" : "cuda"));
  exit = session.exit_code();
  if (!ok) return;
  apl::CodegenOptions codegen;
  codegen.parameters = session.parameters();
  codegen.plans = plans_for(target == apl::Target::c ? "c" : "cuda");
  codegen.device = options.device;
  auto program = apl::generate(session.module(), target, codegen);
  if (!program) {
    session.report(program.error());
    exit = session.exit_code();
    return;
  }
  exit = emit(options.output, options.kernels_only ? program->kernels : program->host);
}

}  // namespace

void add_c(CLI::App& app, int& exit) {
  auto options = std::make_shared<EmitOptions>();
  CLI::App* command = app.add_subcommand("c", "print the generated C (C11 with OpenMP)");
  options->add_to(*command);
  command->add_option("-o,--output", options->output, "file to write (default: standard output)");
  command->callback([options, &exit] { run(*options, apl::Target::c, exit); });
}

void add_cuda(CLI::App& app, int& exit) {
  auto options = std::make_shared<EmitOptions>();
  CLI::App* command = app.add_subcommand("cuda", "print the generated host C with its CUDA kernels");
  options->add_to(*command);
  command->add_option("-o,--output", options->output, "file to write (default: standard output)");
  command->add_flag("--kernels", options->kernels_only, "the CUDA kernels alone");
  command->callback([options, &exit] { run(*options, apl::Target::cuda, exit); });
}

}  // namespace aplc
