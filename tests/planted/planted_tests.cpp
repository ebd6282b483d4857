// Plants miscompiles, one of the plug-in's passes at a time, in programs of 200 statements: `aplc reduce` has to make
// each program small enough to be looked at, and `aplc bisect` has to name the pass.
//   apl_planted_tests --aplc=PROGRAM --plugin=LIBRARY --folder=SCRATCH [--every=N] [--size=200] [--most=15] [PASS...]
// The times are printed and judged by nobody but --seconds.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "ir/parse.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "ir/walk.h"
#include "passes/plugin.h"
#include "tests/command_line.h"
#include "tests/planted/generate.h"

namespace {

using namespace apl;

struct Options {
  std::string aplc, plugin, folder;
  std::size_t every = 1, size = 200, most = 15;
  std::uint64_t seed = 1;
  double seconds = 0;
  std::vector<std::string> passes;
};

std::string read(const std::string& name) {
  std::ifstream stream(name);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

std::size_t count_statements(const Module& module) {
  std::size_t count = 0;
  for (const FunctionPtr& function : module.functions) for_each_stm(*function->body, [&](const Stm&) { ++count; });
  return count;
}

class Case {
 public:
  Case(const Options& options, std::string pass, std::size_t number)
      : options_(options),
        pass_(std::move(pass)),
        number_(number),
        base_(fmt::format("{}/{}", options.folder, pass_)),
        pipeline_(fmt::format("simplify,cse,{},fuse,simplify", pass_)) {}

  // Why not, or nothing.
  std::string run() {
    if (const std::string why = make_program(); !why.empty()) return why;
    const auto start = std::chrono::steady_clock::now();
    const std::string compare = fmt::format("'{}' opt --pass-plugin='{}' -p {} --compare-results -o /dev/null",
                                            options_.aplc, options_.plugin, pipeline_);
    if (!aplc(fmt::format("reduce --exit-code=70 \"{}\" '{}.aplir' -o '{}.small.aplir'", compare, base_, base_)))
      return "reduce fails: " + read(base_ + ".log");
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const auto small = parse_module(read(base_ + ".small.aplir"), "small");
    if (!small) return "what reduce writes does not parse";
    const std::size_t statements = count_statements(*small);
    // Both ways to bisect, in turn.
    const bool by_limit = number_ % 2 == 0;
    const std::string search =
        by_limit ? fmt::format(
                       "bisect \"'{}' opt --pass-plugin='{}' -p {} --opt-limit={{limit}} --compare-results -o "
                       "/dev/null '{}.aplir'\"",
                       options_.aplc, options_.plugin, pipeline_, base_)
                 : fmt::format(
                       "bisect \"'{}' opt --compare-with='{}.aplir' -o /dev/null\" --pass-plugin='{}' -p {} "
                       "'{}.aplir'",
                       options_.aplc, base_, options_.plugin, pipeline_, base_);
    if (!aplc(search)) return "bisect fails: " + read(base_ + ".log");
    const std::string said = read(base_ + ".log");
    fmt::print("{:<26} {:>3} -> {:>2} statements in {:>5.1f} s, {}", pass_, options_.size, statements, seconds,
               read(base_ + ".log").substr(said.rfind("the command fails from")));
    if (said.find("on: " + pass_ + "\n") == std::string::npos) return "bisect names another pass: " + said;
    if (statements > options_.most) return fmt::format("{} statements are left: {}.small.aplir", statements, base_);
    if (options_.seconds > 0 && seconds > options_.seconds) return fmt::format("it took {:.1f} s", seconds);
    return {};
  }

 private:
  std::string make_program() const {
    const Module module = planted::generate(options_.seed + number_, options_.size);
    if (const auto errors = verify(module); !errors.empty())
      return "the generator makes what is not well-formed: " + errors.front().message + print(module);
    std::ofstream(base_ + ".aplir") << print(module);
    return {};
  }

  bool aplc(const std::string& arguments) const {
    const std::string command = fmt::format("'{}' {} > '{}.log' 2>&1", options_.aplc, arguments, base_);
    return std::system(command.c_str()) == 0;
  }

  const Options& options_;
  std::string pass_;
  std::size_t number_;
  std::string base_, pipeline_;
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  apl::CommandLine line("planted miscompiles for aplc reduce and aplc bisect");
  line.required("--aplc", options.aplc);
  line.required("--plugin", options.plugin);
  line.required("--folder", options.folder);
  line.option("--every", options.every, "only every N-th pass");
  line.option("--size", options.size, "statements of a program");
  line.option("--most", options.most, "statements that may be left");
  line.option("--seconds", options.seconds, "that a reduction may take (default: any)");
  line.option("--seed", options.seed);
  line.arguments("PASS", options.passes);
  if (const auto code = line.parse(argc, argv)) return *code;
  std::filesystem::create_directories(options.folder);
  PassRegistry registry;
  if (const auto loaded = load_plugin(options.plugin, registry); !loaded)
    return fmt::print(stderr, "{}", render(loaded.error(), options.plugin, "")), 1;
  std::size_t failed = 0, run = 0;
  for (std::size_t k = 0; k < registry.passes().size(); ++k) {
    const std::string& name = registry.passes()[k].name;
    const bool wanted = options.passes.empty() ? k % options.every == 0 : std::ranges::count(options.passes, name) != 0;
    if (!wanted) continue;
    ++run;
    const std::string why = Case(options, name, k).run();
    std::fflush(stdout);
    if (why.empty()) continue;
    ++failed;
    fmt::print("FAILED {}: {}\n", name, why);
  }
  fmt::print("{} planted miscompiles, {} failed\n", run, failed);
  return run == 0 || failed != 0 ? 1 : 0;
}
