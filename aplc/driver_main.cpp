#include "aplc/driver_main.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "aplc/driver.h"
#include "aplc/registry.h"
#include "ir/similar_name.h"
#include "ir/system_error.h"
#include "machine/target/records.h"
#include "machine/target/target.h"

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

// What a report of a bug has to say.
std::string version_text() {
#if defined(__clang__)
  const std::string compiler = "clang " __clang_version__;
#else
  const std::string compiler = "g++ " __VERSION__;
#endif
  return fmt::format("aplc {}\nbuilt with {}\ntargets: {}\nmachines: {}", APL_VERSION, compiler,
                     fmt::join(apl::dialect_names(), ", "), fmt::join(apl::device_names(), ", "));
}

bool runs_passes(const std::string& command) {
  return command != "completion" && command != "manual" && command != "check" && command != "dataset" &&
         command != "sparse" && command != "reduce" && command != "calibrate";
}

// The error for a command or option that does not exist, with the one that was meant; CLI11 knows no similar names.
// Empty if there is none that is similar, or none that is unknown.
std::string unknown_word(const CLI::App& app, const std::vector<std::string>& words) {
  if (words.empty() || words[0].starts_with('-')) return {};
  std::vector<std::string> names;
  const CLI::App* command = nullptr;
  for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(each->get_name());
    if (each->get_name() == words[0]) command = each;
  }
  if (command == nullptr) {
    const auto similar = apl::similar_name(words[0], names);
    return fmt::format("aplc: error: there is no command '{}'{}\nThe commands are: {}.\n", words[0],
                       similar ? fmt::format("; did you mean '{}'?", *similar) : "", fmt::join(names, ", "));
  }
  std::size_t first = 1;
  for (bool nested = true; nested && first < words.size();) {
    nested = false;
    for (const CLI::App* each : command->get_subcommands([](const CLI::App*) { return true; }))
      if (each->get_name() == words[first]) command = each, nested = true;
    if (nested) ++first;
  }
  std::vector<std::string> options{"--help"};
  for (const CLI::Option* option : command->get_options())
    for (const std::string& name : option->get_lnames()) options.push_back("--" + name);
  for (std::size_t k = first; k < words.size(); ++k) {
    if (words[k] == "--") break;
    if (!words[k].starts_with("--")) continue;
    const std::string name = words[k].substr(0, words[k].find('='));
    if (std::find(options.begin(), options.end(), name) != options.end()) continue;
    const auto similar = apl::similar_name(name, options);
    if (!similar) continue;
    return fmt::format("aplc: error: 'aplc {}' has no option '{}'; did you mean '{}'?\n", command->get_name(), name,
                       *similar);
  }
  return {};
}

}  // namespace

int apl::driver_main(int argc, char** argv, PassRegistry registry) {
  aplc::open_standard_files();
  aplc::handle_signals();
  aplc::set_registry(std::move(registry));
  CLI::App app{"aplc: a compiler for array programs (Futhark source or textual IR)", "aplc"};
  app.require_subcommand(1);
  app.set_version_flag("--version", version_text());
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
  aplc::add_calibrate(app, exit);
  aplc::add_explain(app, exit);
  aplc::add_c(app, exit);
  aplc::add_device_dialects(app, exit);
  aplc::add_opt(app, exit);
  aplc::add_passes(app, exit);
  aplc::add_report(app, exit);
  aplc::add_bisect(app, exit);
  aplc::add_reduce(app, exit);
  aplc::add_sections(app, exit);
  aplc::add_sparse(app, exit);
  aplc::add_manual(app, exit);
  for (CLI::App* command : app.get_subcommands({}))
    if (runs_passes(command->get_name())) aplc::add_plugin_options(*command);
  if (const std::string unknown = unknown_word(app, words); !unknown.empty()) {
    aplc::write_error(unknown);
    return aplc::finish_output(aplc::kCommandLine);
  }
  try {
    std::reverse(words.begin(), words.end());  // as CLI11 wants them
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    std::ostringstream out, errors;
    exit = app.exit(error, out, errors) == 0 ? aplc::kFine : aplc::kCommandLine;
    aplc::write_out(out.str());
    aplc::write_error(errors.str());
  } catch (const aplc::CommandError& error) {
    exit = aplc::report(error.diagnostic());
  } catch (const std::exception& error) {
    exit = report_exception(error);
  } catch (...) {
    exit = aplc::report(
        apl::make_error(apl::Code::bug_internal, {}, "internal error: an object that is no std::exception was thrown"));
  }
  return aplc::finish_output(exit);
}
