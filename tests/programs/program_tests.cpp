// Runs every entry of a program on every backend asked for and compares with the interpreter on the program as the
// front end gave it. Inputs are small integers stored in the element type, so equality is exact; sizes are 0, 1,
// primes and tile multiples in every dim; tile numbers are the defaults and small ones that leave partial tiles.
// What was run once is not run again: an entry is interpreted after a pass that changed it, and compiled for tile
// numbers that changed its text.
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
#include "ir/print.h"
#include "ir/walk.h"
#include "passes/pipeline.h"
#include "runtime/program/program.h"
#include "tests/batch/sizes.h"
#include "tests/command_line.h"
#include "tests/testing.h"

namespace {

using Values = std::vector<apl::HostValue>;
using Sizes = std::map<std::string, std::int64_t>;

struct Options {
  std::vector<std::string> backends{"interp", "c", "emulate"};
  std::vector<std::string> files;
  bool large = false;
  bool every_size = false;
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
  // The entry with the functions that it calls, alone.
  static apl::Module alone(const apl::Module& module, const std::string& entry) {
    const apl::Function* start = module.find_entry(entry);
    std::set<std::string> reached{start->name};
    std::vector<const apl::Function*> open{start};
    while (!open.empty()) {
      const apl::Function* function = open.back();
      open.pop_back();
      apl::for_each_stm(*function->body, [&](const apl::Stm& stm) {
        const auto* call = apl::get_if<apl::Apply>(stm);
        if (call && reached.insert(call->function).second) open.push_back(module.find(call->function));
      });
    }
    apl::Module result = module;
    std::erase_if(result.functions,
                  [&](const apl::FunctionPtr& function) { return !reached.contains(function->name); });
    return result;
  }

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

  // What is to be run of an entry, with some tile numbers.
  struct StageOf {
    std::string pass;  // after which it is
    apl::Module module;
    bool at_ends;  // at the smallest and largest sizes alone
  };
  struct Work {
    std::vector<StageOf> stages;
    std::vector<std::string> backends;
  };

  // The entry after a pass, if it was not the same before, nor with other tile numbers; `last`: after all passes.
  void note_stage(Work& work, const Tiles& tiles, const std::string& entry, const std::string& pass,
                  const apl::Module& module, bool last) {
    apl::Module part = alone(module, entry);
    std::string text = print(part);
    const bool tiled = reads_parameters(part), default_tiles = tiled && tiles.numbers.empty();
    if (default_tiles && !last) return;
    if (tiled) text += tiles.name;
    if (texts_.insert(std::move(text)).second) work.stages.push_back({pass, std::move(part), default_tiles});
  }

  void with_tiles(const Tiles& tiles) {
    std::map<std::string, Work> work;
    for (const apl::FunctionPtr& function : source_.functions)
      if (function->is_entry()) work[function->entry->name];
    auto note = [&](const std::string& pass, const apl::Module& module, bool last) {
      for (auto& [entry, part] : work) note_stage(part, tiles, entry, pass, module, last);
    };
    note("front end", source_, false);
    apl::Module memory = source_;
    auto pipeline = apl::parse_pipeline(apl::standard_pipeline(apl::Stage::memory, apl::Machine::gpu),
                                        apl::PassRegistry::builtin());
    apl::PipelineOptions options;
    options.parameters = tiles.numbers;
    options.after_pass = [&](const apl::PassReport& report, const apl::Module& module) {
      if (report.change == apl::Change::yes) note(report.pass, module, false);
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
    note("all passes", memory, true);
    note("the passes for C", few_threads, true);
    std::map<std::string, apl::Program> programs;
    for (const std::string& backend : options_.backends)
      if (backend != "interp" && !compile(tiles, backend, memory, few_threads, work, programs)) return;
    for (const apl::FunctionPtr& function : source_.functions) {
      if (!function->is_entry()) continue;
      const Work& part = work[function->entry->name];
      if (part.stages.empty() && part.backends.empty()) continue;
      int n = 0;
      for (const apl::testing::Try& next : apl::testing::size_sets(*function, options_.large))
        with_sizes(tiles, part, programs, *function, next, n++);
    }
  }

  // One program of the entries whose text is a new one.
  bool compile(const Tiles& tiles, const std::string& backend, const apl::Module& memory,
               const apl::Module& few_threads, std::map<std::string, Work>& work,
               std::map<std::string, apl::Program>& programs) {
    apl::CodegenOptions codegen;
    codegen.parameters = tiles.numbers;
    // emulate@mi300: what is generated for that machine, on a machine like it.
    const std::size_t at = backend.find('@');
    const std::string record = at == std::string::npos ? "" : backend.substr(at + 1);
    const auto target = apl::find_target(!record.empty() ? record : backend == "c" ? "c" : "cuda");
    if (!target) return fail(fmt::format("{}: {}", backend, target.error().message)), false;
    const apl::Module& module = target->on_device() ? memory : few_threads;
    std::set<std::string> reached;
    for (auto& [entry, part] : work) {
      const apl::Module one = alone(module, entry);
      auto text = apl::generate(one, *target, codegen);
      if (!text) return fail(fmt::format("{}, {}: {}", tiles.name, backend, text.error().message)), false;
      if (!texts_.insert(backend + text->host).second) continue;
      part.backends.push_back(backend);
      for (const apl::FunctionPtr& function : one.functions) reached.insert(function->name);
    }
    if (reached.empty()) return true;
    apl::Module changed = module;
    std::erase_if(changed.functions,
                  [&](const apl::FunctionPtr& function) { return !reached.contains(function->name); });
    auto text = apl::generate(changed, *target, codegen);
    if (!text) return fail(fmt::format("{}, {}: {}", tiles.name, backend, text.error().message)), false;
    apl::ProgramOptions load;
    load.backend = backend.substr(0, at);
    load.device_record = record;
    // The defaults are compiled as users' programs are; for the other tiles the C compiler should rather be quick.
    if (!tiles.numbers.empty()) load.c_flags = {"-O0"};
    // Vectors of mathematical functions are rounded otherwise than the interpreter's.
    load.c_flags.emplace_back("-DAPL_NO_VECTOR_MATH");
    auto program = apl::Program::load(text->host, load);
    if (!program) return fail(fmt::format("{}, {}: {}", tiles.name, backend, program.error().message)), false;
    programs.emplace(backend, std::move(*program));
    return true;
  }

  void with_sizes(const Tiles& tiles, const Work& work, std::map<std::string, apl::Program>& programs,
                  const apl::Function& entry, const apl::testing::Try& next, int n) {
    std::string where = fmt::format("{} [{}] ", entry.entry->name, tiles.name);
    for (const auto& [name, value] : next.sizes) where += fmt::format("{}={} ", name, value);
    auto inputs = apl::testing::random_arguments(entry, next.sizes, static_cast<std::uint64_t>(n) + 1);
    if (!inputs) return fail(where + inputs.error().message);
    auto interpret = [&](const apl::Module& module, std::uint64_t seed) {
      apl::InterpretOptions options;
      options.parameters = tiles.numbers;
      options.seed = seed;
      return apl::interpret(module, entry.entry->name, *inputs, options);
    };
    // The source has no tile numbers.
    auto expected = expected_.find({entry.name, n});
    if (expected == expected_.end())
      expected = expected_.emplace(std::pair(entry.name, n), interpret(source_, 1)).first;
    if (!expected->second) return fail(where + "interpreter: " + expected->second.error().message);
    auto compare = [&](const std::string& who, const apl::Result<Values>& got) {
      if (!got) return fail(where + who + ": " + got.error().message);
      if (apl::testing::same_results(*got, *expected->second)) {
        ++counts_.passed;
      } else {
        fail(where + who + ": wrong result");
      }
    };
    bool interp = std::find(options_.backends.begin(), options_.backends.end(), "interp") != options_.backends.end();
    // Each pass is interpreted at the ends and at a third of the other sizes, another third than the pass before it.
    int stage = 0;
    if (interp)
      for (const auto& [pass, module, at_ends] : work.stages)
        if (next.is_end || (!at_ends && (options_.every_size || (n + stage++) % 3 == 0)))
          compare("interpreter after " + pass, interpret(module, static_cast<std::uint64_t>(n) + 7));
    for (const std::string& backend : work.backends)
      compare(backend, programs.at(backend).call(entry.entry->name, *inputs));
  }

  const Options& options_;
  std::set<std::string> texts_;  // of entries after passes, and generated: that were run
  std::map<std::pair<std::string, int>, apl::Result<Values>> expected_;  // by entry and number of its sizes
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
  line.flag("--every-size", options.every_size, "interpret after each pass at every size, not at a third of them");
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
