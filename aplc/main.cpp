// aplc: the driver. One file a subcommand; see aplc/driver.h for exit codes.
#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "aplc/driver.h"
#include "ir/system_error.h"

namespace {

// What the machine could not do, as far as the library says it by exceptions; everything else is a bug.
int report_exception(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) || dynamic_cast<const std::length_error*>(&error))
    return aplc::report(apl::make_error(apl::Code::machine_resources, {}, "out of memory"));
  if (const auto* system = dynamic_cast<const std::system_error*>(&error)) {
    const apl::Diagnostic diagnostic = apl::system_error(system->code().value(), "the system refuses");
    if (apl::code_fault(diagnostic.code) == apl::Fault::machine) return aplc::report(diagnostic);
  }
  return aplc::report(apl::make_error(apl::Code::bug_internal, {}, fmt::format("internal error: {}", error.what())));
}

}  // namespace

int main(int argc, char** argv) {
  aplc::open_standard_files();
  aplc::handle_signals();
  CLI::App app{"aplc: a compiler for array programs (Futhark source or textual IR)", "aplc"};
  app.require_subcommand(1);
  app.set_version_flag("--version", APL_VERSION);
  app.footer(
      "Exit codes: 0 fine; 2 the program is wrong; 3 a limitation of aplc; 64 the command line is wrong; 70 a bug of "
      "aplc; 71 the machine fails (full disk, no memory, no open files).");
  int exit = aplc::kFine;
  std::vector<std::string> words(argv + 1, argv + argc), values;
  // CLI11 has no place for values after `--` that are no option's.
  const auto end = words.empty() || words[0] != "run" ? words.end() : std::find(words.begin(), words.end(), "--");
  if (end != words.end()) {
    values.assign(end + 1, words.end());
    words.erase(end, words.end());
  }
  aplc::add_run(app, exit, values);
  aplc::add_check(app, exit);
  aplc::add_test(app, exit);
  aplc::add_bench(app, exit);
  aplc::add_tune(app, exit);
  aplc::add_dataset(app, exit);
  aplc::add_explain(app, exit);
  aplc::add_c(app, exit);
  aplc::add_cuda(app, exit);
  aplc::add_opt(app, exit);
  aplc::add_passes(app, exit);
  aplc::add_sparse(app, exit);
  try {
    std::reverse(words.begin(), words.end());  // as CLI11 wants them
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    std::ostringstream out, errors;
    exit = app.exit(error, out, errors) == 0 ? aplc::kFine : aplc::kCommandLine;
    aplc::write_out(out.str());
    aplc::write_error(errors.str());
  } catch (const std::exception& error) {
    exit = report_exception(error);
  }
  return aplc::finish_output(exit);
}
