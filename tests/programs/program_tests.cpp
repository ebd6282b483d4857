// Runs every entry of a program on every backend asked for and compares with the interpreter on the program as the
// front end gave it. Inputs are small integers stored in the element type, so equality is exact; sizes are 0, 1,
// primes and tile multiples in every dim; tile numbers are the defaults and small ones that leave partial tiles.
//   apl_program_tests --backends=interp,c,emulate[,cuda] FILE...
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "codegen/codegen.h"
#include "frontend/frontend.h"
#include "ir/interpret.h"
#include "ir/walk.h"
#include "passes/pipeline.h"
#include "runtime/program/program.h"
#include "tests/command_line.h"
#include "tests/testing.h"

namespace {

using Values = std::vector<apl::HostValue>;
using Sizes = std::map<std::string, std::int64_t>;

struct Options {
  std::vector<std::string> backends{"interp", "c", "emulate"};
  std::vector<std::string> files;
  bool large = false;
};

// A set of tile numbers: for each parameter of the program a value.
struct Tiles {
  std::string name;
  std::map<std::string, std::int64_t> numbers;
};

struct Counts {
  int passed = 0;
  int failed = 0;
};

class Tester {
 public:
  Tester(const Options& options, std::string file) : options_(options), file_(std::move(file)) {}

  Counts run() {
    std::ifstream in(file_);
    std::string text(std::istreambuf_iterator<char>(in), {});
    auto module =
        apl::compile({file_, text}, [&](const apl::Diagnostic& d) { fmt::print("{}", apl::render(d, file_, text)); });
    if (!module) {
      fail("does not compile");
      return counts_;
    }
    source_ = std::move(*module);
    for (const Tiles& tiles : tile_sets()) with_tiles(tiles);
    return counts_;
  }

 private:
  static bool reads_parameters(const apl::Module& module) {
    bool found = false;
    for (const apl::FunctionPtr& function : module.functions)
      apl::for_each_stm(*function->body, [&](const apl::Stm& stm) {
        found = found || apl::get_if<apl::GetSize>(stm) || apl::get_if<apl::Choose>(stm);
      });
    return found;
  }

  void fail(const std::string& what) {
    ++counts_.failed;
    fmt::print("FAILED {}: {}\n", file_, what);
  }

  // Small numbers, unequal, so that no dim is like another and tiles are partial; and the defaults.
  std::vector<Tiles> tile_sets() {
    Tiles small{"small tiles", apl::testing::small_tiles(source_)}, one{"unit tiles", {}};
    for (const auto& [name, number] : small.numbers) one.numbers[name] = 1;
    return {{"defaults", {}}, small, one};
  }

  // Every dim takes every value while the others stay small; and all dims together.
  static std::vector<Sizes> size_sets(const apl::Function& entry, bool large) {
    std::vector<std::string> names;
    for (apl::Value size : entry.sizes) names.push_back(entry.values.name(size));
    std::vector<std::int64_t> values{0, 1, 2, 4, 5};
    if (names.size() <= 3) values = {0, 1, 3, 4, 7, 16, 17};
    if (large)
      values =
          names.size() <= 3 ? std::vector<std::int64_t>{0, 1, 31, 128, 257} : std::vector<std::int64_t>{0, 1, 4, 7, 16};
    std::vector<Sizes> sets;
    for (std::int64_t all : values) {
      if (names.size() > 3 && all > 4) continue;
      Sizes sizes;
      for (const std::string& name : names) sizes[name] = all;
      sets.push_back(sizes);
    }
    for (const std::string& changed : names)
      for (std::int64_t value : values) {
        Sizes sizes;
        std::int64_t other = 2;
        for (const std::string& name : names) sizes[name] = name == changed ? value : (other = 5 - other);
        sets.push_back(sizes);
      }
    return sets;
  }

  void with_tiles(const Tiles& tiles) {
    apl::Module memory = source_;
    std::vector<std::pair<std::string, apl::Module>> stages{{"front end", source_}};
    auto pipeline = apl::parse_pipeline(apl::standard_pipeline(apl::Stage::memory, apl::Machine::gpu),
                                        apl::PassRegistry::builtin());
    apl::PipelineOptions options;
    options.parameters = tiles.numbers;
    options.after_pass = [&](const apl::PassReport& report, const apl::Module& module) {
      if (report.change == apl::Change::yes) stages.emplace_back(report.pass, module);
    };
    auto status = apl::run_pipeline(memory, *pipeline, options);
    if (!status) return fail(fmt::format("{}: pipeline: {}", tiles.name, status.error().message));
    // C has a pipeline of its own.
    apl::Module few_threads = source_;
    options.after_pass = {};
    pipeline = apl::parse_pipeline(apl::standard_pipeline(apl::Stage::memory, apl::Machine::cpu),
                                   apl::PassRegistry::builtin());
    status = apl::run_pipeline(few_threads, *pipeline, options);
    if (!status) return fail(fmt::format("{}: pipeline for C: {}", tiles.name, status.error().message));
    stages.emplace_back("the passes for C", few_threads);
    // A module in which no tuning parameter is read, and a text in which none made a difference, is the same for all
    // tiles: once is enough.
    if (!tiles.numbers.empty())
      std::erase_if(stages, [](const auto& stage) { return !reads_parameters(stage.second); });
    std::map<std::string, apl::Program> programs;
    for (const std::string& backend : options_.backends) {
      if (backend == "interp") continue;
      apl::CodegenOptions codegen;
      codegen.parameters = tiles.numbers;
      // emulate@mi300: what is generated for that machine, on a machine like it.
      const std::size_t at = backend.find('@');
      const std::string record = at == std::string::npos ? "" : backend.substr(at + 1);
      const auto target = apl::find_target(!record.empty() ? record : backend == "c" ? "c" : "cuda");
      if (!target) return fail(fmt::format("{}: {}", backend, target.error().message));
      auto text = apl::generate(target->on_device() ? memory : few_threads, *target, codegen);
      if (!text) return fail(fmt::format("{}, {}: {}", tiles.name, backend, text.error().message));
      if (!texts_.insert(backend + text->host).second) continue;
      apl::ProgramOptions load;
      load.backend = backend.substr(0, at);
      load.device_record = record;
      // The defaults are compiled as users' programs are; for the other tiles the C compiler should rather be quick.
      if (!tiles.numbers.empty()) load.c_flags = {"-O1"};
      // Vectors of mathematical functions are rounded otherwise than the interpreter's.
      load.c_flags.emplace_back("-DAPL_NO_VECTOR_MATH");
      auto program = apl::Program::load(text->host, load);
      if (!program) return fail(fmt::format("{}, {}: {}", tiles.name, backend, program.error().message));
      programs.emplace(backend, std::move(*program));
    }
    for (const apl::FunctionPtr& function : source_.functions) {
      if (!function->entry) continue;
      int n = 0;
      for (const Sizes& sizes : size_sets(*function, options_.large))
        with_sizes(tiles, stages, programs, *function, sizes, n++);
    }
  }

  void with_sizes(const Tiles& tiles, const std::vector<std::pair<std::string, apl::Module>>& stages,
                  std::map<std::string, apl::Program>& programs, const apl::Function& entry, const Sizes& sizes,
                  int n) {
    std::string where = fmt::format("{} [{}] ", entry.entry->name, tiles.name);
    for (const auto& [name, value] : sizes) where += fmt::format("{}={} ", name, value);
    auto inputs = apl::testing::random_arguments(entry, sizes, static_cast<std::uint64_t>(n) + 1);
    if (!inputs) return fail(where + inputs.error().message);
    auto interpret = [&](const apl::Module& module, std::uint64_t seed) {
      apl::InterpretOptions options;
      options.parameters = tiles.numbers;
      options.seed = seed;
      return apl::interpret(module, entry.entry->name, *inputs, options);
    };
    auto expected = interpret(source_, 1);
    if (!expected) return fail(where + "interpreter: " + expected.error().message);
    auto compare = [&](const std::string& who, const apl::Result<Values>& got) {
      if (!got) return fail(where + who + ": " + got.error().message);
      if (apl::testing::same_results(*got, *expected)) {
        ++counts_.passed;
      } else {
        fail(where + who + ": wrong result");
      }
    };
    bool interp = std::find(options_.backends.begin(), options_.backends.end(), "interp") != options_.backends.end();
    if (interp)
      for (const auto& [name, module] : stages)
        compare("interpreter after " + name, interpret(module, static_cast<std::uint64_t>(n) + 7));
    for (auto& [backend, program] : programs) compare(backend, program.call(entry.entry->name, *inputs));
  }

  const Options& options_;
  std::set<std::string> texts_;  // that were compiled and run
  std::string file_;
  apl::Module source_;
  Counts counts_;
};

}  // namespace

int main(int argc, char** argv) {
  apl::CommandLine line("runs programs on every backend against the interpreter");
  Options options;
  line.option("--backends", options.backends, "interp, c, emulate, cuda, emulate@RECORD");
  line.files("FILES", options.files, "programs");
  line.flag("--large", options.large, "larger sizes");
  if (const auto code = line.parse(argc, argv)) return *code;
  Counts all;
  for (const std::string& file : options.files) {
    Counts counts = Tester(options, file).run();
    fmt::print("{}: {} passed, {} failed\n", file, counts.passed, counts.failed);
    all.passed += counts.passed;
    all.failed += counts.failed;
  }
  return all.failed == 0 && all.passed > 0 ? 0 : 1;
}
