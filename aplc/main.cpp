// aplc: the driver. One file a subcommand; see aplc/driver.h for exit codes.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "aplc/driver.h"

int main(int argc, char** argv) {
  CLI::App app{"aplc: a compiler for array programs (Futhark source or textual IR)", "aplc"};
  app.require_subcommand(1);
  app.set_version_flag("--version", APL_VERSION);
  app.footer(
      "Exit codes: 0 fine; 2 the program is wrong; 3 a limitation of aplc; 64 the command line is wrong; 70 a bug of "
      "aplc.");
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
    int code = app.exit(error);
    return code == 0 ? aplc::kFine : aplc::kCommandLine;
  } catch (const std::exception& error) {
    fmt::print(stderr, "aplc: internal error: {} [bug.internal]\n", error.what());
    return aplc::kBug;
  }
  return exit;
}
