// aplc c FILE, aplc cuda FILE and so on, by dialect: the generated text, or a library or program made of it.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "aplc/artifact.h"
#include "aplc/driver.h"
#include "aplc/registry.h"
#include "aplc/sparse/constants.h"
#include "aplc/spills.h"
#include "codegen/codegen.h"
#include "codegen/emit/kernel_file.h"
#include "codegen/emit/library.h"

namespace aplc {
namespace {

// Stands first in text that does not compile alone.
const std::string kPartOfProgram =
    "// One part of a program: `scalar.h` and `main` are aplc's. Options for text that compiles as it is:\n"
    "// --executable -o - (C with a main), --library (C and its header).\n";

struct EmitOptions : CompileOptions {
  std::string output;
  bool kernels_only = false;
  bool library = false, executable = false, server = false;
  std::string form, entry;         // of --emit
  std::vector<std::string> sizes;  // NAME=VALUE
  std::vector<std::string> known;  // OPERAND=@FILE
  std::string ptxas = kUsualArchitecture;
  int plans = 0;  // 0: as many as there are for the target

  void add_emission(CLI::App& command, const apl::Dialect& dialect) {
    add_to(command);
    command.add_option("-o,--output", output,
                       dialect.embeds
                           ? "file to write (default: standard output); of a library or program: its name, without an "
                             "ending (default: the input's), or - for its one C file on standard output"
                           : "file to write (default: standard output)");
    command.add_option("OPERAND", known, "matrices of operands that are sparse and constant, as A=@M.mtx");
    command
        .add_option("--plans", plans,
                    fmt::format("kernels of a contraction, among which it chooses (default: up to {})",
                                plans_for(dialect.on_device ? "cuda" : "c")))
        ->check(CLI::PositiveNumber);
    tiles.add_to(command);
    if (!dialect.embeds) return;
    auto* kind = command.add_option_group("form");
    kind->add_flag("--library", library, "NAME.c, NAME.h and NAME.json: a library with Futhark's C API");
    kind->add_flag("--executable", executable, "NAME and NAME.c: a program that reads values and writes results");
    kind->add_flag("--server", server, "NAME and NAME.c: a program that obeys Futhark's server protocol");
    kind->require_option(0, 1);
  }
};

int emit_library(Session& session, const EmitOptions& options, apl::Target target, const apl::CodegenOptions& codegen) {
  std::string path = options.output;
  const bool to_standard_output = path == "-";
  if (to_standard_output) path = "a";
  if (path.empty()) {
    path = options.file == "-" ? "a" : options.file;
    const std::size_t slash = path.rfind('/'), dot = path.rfind('.');
    if (dot != std::string::npos && dot > 0 && (slash == std::string::npos || dot > slash + 1)) path.resize(dot);
  }
  apl::LibraryOptions library;
  library.artifact = options.executable ? apl::Artifact::executable
                     : options.server   ? apl::Artifact::server
                                        : apl::Artifact::library;
  library.name = path.substr(path.rfind('/') + 1);
  library.version = APL_VERSION;
  library.one_file = to_standard_output;
  auto made = apl::generate_library(session.module(), target, codegen, library);
  if (!made) {
    session.report(made.error());
    return session.exit_code();
  }
  if (to_standard_output) return emit("-", made->source);
  const std::vector<std::string> names =
      options.library ? std::vector{path + ".c", path + ".h", path + ".json"} : std::vector{path + ".c", path};
  for (const std::string& name : names)
    if (auto writable = check_output(name); !writable) return report(writable.error());
  if (const int status = emit(path + ".c", made->source); status != kFine) return status;
  if (options.library) {
    const int status = emit(path + ".h", made->header);
    return status != kFine ? status : emit(path + ".json", made->manifest);
  }
  auto program = OutputFile::open(path);
  if (!program) return report(program.error());
  const std::string command = artifact_command(target, program->path(), path + ".c");
  const auto said = apl::run_tool({"/bin/sh", "-c", command});
  if (said) {
    write_error(*said);
    const auto finished = program->finish(true);
    return finished ? kFine : report(finished.error());
  }
  // The machine's compiler, or the one that CC names, with the flags of CFLAGS.
  apl::Diagnostic error = said.error();
  if (error.code == apl::Code::bug_internal) error.code = apl::Code::unsupported_backend;
  return report(error);
}

// One entry's kernels as a file of their own.
int emit_kernel_file(Session& session, const EmitOptions& options, const apl::Target& target,
                     apl::CodegenOptions codegen) {
  for (const std::string& text : options.sizes) {
    auto size = parse_size(text);
    if (!size) {
      session.report(size.error());
      return session.exit_code();
    }
    codegen.sizes.insert(*size);
  }
  if (const auto known = check_sizes(codegen.sizes, session.front(), session.module()); !known) {
    session.report(known.error());
    return session.exit_code();
  }
  apl::SpillCheck check;
  if (options.ptxas != "none" && target.dialect == apl::find_dialect("cuda")) check = spill_check(options.ptxas);
  auto file = apl::generate_kernel_file(session.module(), options.entry, codegen, target, check);
  if (file) return emit(options.output, file->text);
  session.report(file.error());
  return session.exit_code();
}

void run(const EmitOptions& options, const apl::Dialect& dialect, int& exit) {
  Session session(options);
  auto found = apl::find_target(options.device.empty() ? std::string(dialect.name) : options.device);
  // Plans may be those of any machine; what the text needs of one must be the dialect's.
  if (found && found->dialect != &dialect) found = apl::find_target(std::string(dialect.name));
  if (!found) {
    session.report(found.error());
    exit = session.exit_code();
    return;
  }
  const apl::Target& target = *found;
  bool ok = session.read();
  if (ok)
    if (const auto known = sparse::read_known(session.module(), options.known); !known) {
      session.report(known.error());
      ok = false;
    }
  ok = ok &&
       session.run(options.form == "kernel" ? apl::with_calls_expanded(apl::standard_pipeline(
                                                  apl::Stage::memory, apl::Machine::gpu, false, registry()))
                                            : pipeline_for(target.on_device() ? "cuda" : "c", options.tiles)) &&
       session.check_parameters();
  exit = session.exit_code();
  if (!ok) return;
  apl::CodegenOptions codegen;
  codegen.parameters = session.parameters();
  codegen.plans = plans_for(target.on_device() ? "cuda" : "c");
  if (options.plans > 0) codegen.plans = std::min(codegen.plans, options.plans);
  codegen.device = options.device;
  if (options.library || options.executable || options.server) {
    exit = emit_library(session, options, target, codegen);
    return;
  }
  if (options.form == "kernel") {
    exit = emit_kernel_file(session, options, target, codegen);
    return;
  }
  auto program = apl::generate(session.module(), target, codegen);
  if (!program) {
    session.report(program.error());
    exit = session.exit_code();
    return;
  }
  exit = emit(options.output, options.kernels_only ? program->kernels : kPartOfProgram + program->host);
}

}  // namespace

void add_c(CLI::App& app, int& exit) {
  auto options = std::make_shared<EmitOptions>();
  CLI::App* command = app.add_subcommand("c", "print the generated C (C11 with threads), or make a library or program");
  options->add_emission(*command, apl::c_dialect());
  command->callback([options, &exit] { run(*options, apl::c_dialect(), exit); });
}

void add_device_dialect(CLI::App& app, const apl::Dialect& dialect, int& exit) {
  auto options = std::make_shared<EmitOptions>();
  const std::string title(dialect.title);
  CLI::App* command = app.add_subcommand(std::string(dialect.name),
                                         fmt::format("print the generated host C with its {} kernels{}", title,
                                                     dialect.embeds ? ", or make a library or program" : ""));
  options->add_emission(*command, dialect);
  command->add_flag("--kernels", options->kernels_only, fmt::format("the {} kernels alone", title));
  command
      ->add_option("--emit", options->form,
                   fmt::format("kernel: one entry's kernels and a function that launches them, as plain {} for another "
                               "project",
                               title))
      ->check(CLI::IsMember({"kernel"}));
  command->add_option("-e,--entry", options->entry, "the entry to --emit (default: the only one)");
  command
      ->add_option("--size", options->sizes, "a size of the program for which the plan of --emit is chosen, as n=1024")
      ->type_name("NAME=NUMBER")
      ->allow_extra_args(false);
  if (dialect.embeds)
    command
        ->add_option("--ptxas", options->ptxas,
                     fmt::format("architecture for which nvcc, where there is one, is asked whether kernels of --emit "
                                 "spill, or none (default: {})",
                                 kUsualArchitecture))
        ->type_name("ARCHITECTURE");
  command->callback([options, &dialect, &exit] { run(*options, dialect, exit); });
}

void add_device_dialects(CLI::App& app, int& exit) {
  for (const std::string_view name : apl::dialect_names())
    if (const apl::Dialect& dialect = *apl::find_dialect(name); dialect.on_device)
      add_device_dialect(app, dialect, exit);
}

}  // namespace aplc
