// apl_golden [--update] [--pass-plugin=LIBRARY]... FILE...: runs golden files (tests/golden_runner/file.h says what
// stands in one). Exit code 0 if all hold, 1 if one does not, 64 for a wrong command line.
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "passes/plugin.h"
#include "tests/golden_runner/check.h"

namespace {

using namespace apl;

constexpr std::string_view kUsage =
    "usage: apl_golden [--update] [--pass-plugin=LIBRARY]... FILE...\n"
    "Runs the pipeline that each file names and checks its output. --update records the output in the file;\n"
    "--pass-plugin adds the passes of a shared library.\n";

bool report(const std::string& path, const std::vector<std::string>& failures) {
  for (const std::string& failure : failures) fmt::print(stderr, "{}: {}\n", path, failure);
  return failures.empty();
}

bool check_file(const std::string& path, const PassRegistry& registry, bool update) {
  const auto file = golden::read_file(path);
  if (!file) return report(path, {render(file.error(), path, {})});
  golden::Outcome outcome = golden::run(*file, registry);
  // Without an outcome there is nothing to compare or record; the failures say why.
  const std::string difference = outcome.recorded.empty() ? "" : golden::compare(*file, outcome);
  if (!difference.empty() && !update) outcome.failures.push_back(difference);
  if (!difference.empty() && update) {
    const Status written = golden::write_recorded(*file, outcome.recorded);
    if (!written) outcome.failures.push_back(written.error().message);
  }
  const bool good = report(path, outcome.failures);
  if (good) fmt::print("{}: {}\n", path, difference.empty() ? "ok" : "updated");
  return good;
}

}  // namespace

int main(int argc, char** argv) {
  bool update = false;
  std::vector<std::string> paths;
  PassRegistry registry = PassRegistry::builtin();
  constexpr std::string_view kPlugin = "--pass-plugin=";
  for (int k = 1; k < argc; ++k) {
    const std::string_view argument = argv[k];
    if (argument == "--help" || argument == "-h") {
      fmt::print("{}", kUsage);
      return 0;
    }
    if (argument == "--update")
      update = true;
    else if (argument.starts_with(kPlugin)) {
      const std::string library(argument.substr(kPlugin.size()));
      if (const Status loaded = load_plugin(library, registry); !loaded)
        return fmt::print(stderr, "{}", render(loaded.error(), library, {})), 64;
    } else if (argument.starts_with("-"))
      return fmt::print(stderr, "apl_golden: there is no option {}\n{}", argument, kUsage), 64;
    else
      paths.emplace_back(argument);
  }
  if (paths.empty()) return fmt::print(stderr, "apl_golden: no file is given\n{}", kUsage), 64;
  bool good = true;
  for (const std::string& path : paths) good = check_file(path, registry, update) && good;
  return good ? 0 : 1;
}
