// Random programs with a sparse operand, on matrices of several kinds: after sparsify, after all passes, and on
// backends they give what the same programs give without sparsify; over tiles, too, by random plans and by the built-in
// one. With --plans the runtime's kernels follow random plans, and plans that say `form dense` by a library. Elements
// are small integers, so equality is exact.
//   apl_sparse_tests --count=3000 --seed=1 [--backends=c,emulate,cuda] [--c-flags=-O0] [--batch=25] [--large]
//                    [--plans=10] [--state=FILE]
// Long runs tell after each batch how far they are; with a state file they go on where one before stopped.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <list>
#include <map>
#include <optional>

#include "codegen/codegen.h"
#include "frontend/frontend.h"
#include "ir/interpret.h"
#include "passes/pipeline.h"
#include "runtime/program/program.h"
#include "tests/command_line.h"
#include "tests/sparse/generate.h"
#include "tests/sparse/tiles.h"
#include "tests/testing.h"

namespace {

using namespace apl;
using namespace apl::sparse_tests;
using Values = std::vector<HostValue>;

struct Options {
  std::uint64_t seed = 1;
  int count = 100, batch = 25;
  std::vector<std::string> backends{"c", "emulate"};
  std::vector<std::string> c_flags;
  bool large = false;
  int plans = 0;  // of every so manieth program the runtime's kernels follow plans; 0: of none
  std::string state;
};

// How far a run is.
struct Tally {
  int done = 0, sparse = 0, tiled = 0, compared = 0, failed = 0;
  std::map<std::string, int> drawn;  // by kind of choice and choice

  // `key` is what the numbers belong to: those of another run are not continued.
  void load(const std::string& file, const std::string& key) {
    std::ifstream in(file);
    std::string line;
    if (!std::getline(in, line) || line != key || !(in >> done >> sparse >> tiled >> compared >> failed)) {
      *this = {};
      return;
    }
    for (int n = 0; in >> n && in.ignore() && std::getline(in, line);) drawn[line] = n;
  }
  bool save(const std::string& file, const std::string& key) const {
    std::string text = fmt::format("{}\n{} {} {} {} {}\n", key, done, sparse, tiled, compared, failed);
    for (const auto& [name, n] : drawn) text += fmt::format("{} {}\n", n, name);
    const std::string temporary = file + ".tmp";
    return static_cast<bool>(std::ofstream(temporary) << text) && std::rename(temporary.c_str(), file.c_str()) == 0;
  }
};

class Tester {
 public:
  explicit Tester(const Options& options) : options_(options) {}

  int run() {
    const std::string key = fmt::format("seed {} batch {} large {} plans {} backends {}", options_.seed, options_.batch,
                                        options_.large, options_.plans, fmt::join(options_.backends, ","));
    if (!options_.state.empty()) tally_.load(options_.state, key);
    const std::time_t start = std::time(nullptr);
    const int before = tally_.done;
    while (tally_.done < options_.count) {
      const int last = std::min(options_.count, tally_.done + options_.batch);
      batch(tally_.done, last);
      tally_.done = last;
      if (!options_.state.empty() && !tally_.save(options_.state, key)) {
        fmt::print("cannot write {}\n", options_.state);
        return 1;
      }
      if (options_.count > 4 * options_.batch && last < options_.count)
        fmt::print(stderr, "{} of {}: {} failed, {:.0f} s left\n", last, options_.count, tally_.failed,
                   std::difftime(std::time(nullptr), start) / (last - before) * (options_.count - last));
    }
    const bool all_drawn = print_drawn();
    fmt::print("{} programs, {} sums and products over non-zeros, {} of them over tiles, {} comparisons, {} failed\n",
               tally_.done, tally_.sparse, tally_.tiled, tally_.compared, tally_.failed);
    // A pass that never does anything is right, too.
    const bool enough = tally_.sparse * 10 >= tally_.done * 8 && tally_.tiled * 10 >= tally_.done * 5;
    return tally_.failed > 0 || !enough || !all_drawn ? 1 : 0;
  }

 private:
  // False if something that can be drawn never was, in a run that is long enough for it.
  bool print_drawn() {
    constexpr int kEnough = 1000;
    bool all = true;
    const auto print = [&](const char* what, const std::vector<std::string>& names) {
      std::string line = fmt::format("{:9}", what);
      for (const std::string& name : names) {
        const int n = tally_.drawn[fmt::format("{} {}", what, name)];
        line += fmt::format(" {} {};", name, n);
        all = all && (n > 0 || tally_.done < kEnough);
      }
      line.pop_back();
      fmt::print("{}\n", line);
    };
    print("types", choices().types);
    print("sums", choices().sums);
    print("forms", choices().forms);
    print("matrices", choices().matrices);
    print("tiles", {"blocks", "lists", "runs", "padding"});
    if (options_.plans > 0) print("plans", {"followed", "dense"});
    return all;
  }

  void count_drawn(const Entry& entry) {
    tally_.drawn["types " + entry.type] += 1;
    tally_.drawn["sums " + entry.sum] += 1;
    tally_.drawn["forms " + entry.form] += 1;
    tally_.drawn["matrices " + entry.matrix] += 1;
  }

  void fail(const std::string& what) {
    ++tally_.failed;
    fmt::print("{}\n", what);
  }

  // What is compared with the program as it was written.
  struct Subject {
    std::string who;
    const Module* module;
    Program* program = nullptr;  // none: the interpreter runs the module
    bool library = false;        // of dense products
  };

  // `ways`: options of sparsify.
  std::optional<Module> passes(const Module& source, Stage until, Machine machine, const std::string& ways,
                               Module* after_sparsify) {
    PipelineOptions options;
    options.after_pass = [&](const PassReport& report, const Module& module) {
      if (report.pass == "sparsify" && after_sparsify != nullptr) *after_sparsify = module;
    };
    options.remarks = [&](const Remark& remark) {
      if (after_sparsify == nullptr || remark.pass != "sparsify") return;
      int& count = ways.empty() ? tally_.sparse : tally_.tiled;
      count += remark.kind == RemarkKind::applied ? 1 : 0;
      count -= remark.code == "rows-not-tiles" ? 1 : 0;
    };
    Module module = source;
    std::string text = standard_pipeline(until, machine);
    if (!ways.empty()) {
      const std::string few = "sparsify{few-threads}";
      const std::size_t at = text.find("sparsify");
      const bool has_few = text.compare(at, few.size(), few) == 0;
      text.replace(at, has_few ? few.size() : 8, fmt::format("sparsify{{{}{}}}", has_few ? "few-threads " : "", ways));
    }
    const auto pipeline = parse_pipeline(text, PassRegistry::builtin());
    const Status status = run_pipeline(module, *pipeline, options);
    if (status) return module;
    fail("pipeline: " + status.error().message);
    return std::nullopt;
  }

  void batch(int first, int last) {
    std::vector<Entry> entries;
    std::string text;
    for (int k = first; k < last; ++k) {
      entries.push_back(random_entry(options_.seed + static_cast<std::uint64_t>(k), fmt::format("entry{}", k)));
      text += entries.back().text + "\n\n";
    }
    const auto source =
        compile({"random.fut", text}, [&](const Diagnostic& d) { fmt::print("{}", render(d, "random.fut", text)); });
    if (!source) return fail("the programs do not compile");
    Module sparse, tiles, unfused;
    const auto gpu = passes(*source, Stage::memory, Machine::gpu, "", &sparse);
    const auto cpu = passes(*source, Stage::memory, Machine::cpu, "", nullptr);
    const auto gpu_tiles = passes(*source, Stage::memory, Machine::gpu, "tiles", &tiles);
    const auto cpu_tiles = passes(*source, Stage::memory, Machine::cpu, "tiles", nullptr);
    const auto apart = passes(*source, Stage::kernel, Machine::gpu, "tiles unfused", nullptr);
    if (!gpu || !cpu || !gpu_tiles || !cpu_tiles || !apart) return;
    std::vector<Subject> subjects = {{"interpreter after sparsify", &sparse},
                                     {"interpreter after all passes", &*gpu},
                                     {"interpreter after sparsify{tiles}", &tiles},
                                     {"interpreter after all passes with tiles", &*gpu_tiles},
                                     {"interpreter with tiles unfused", &*apart}};
    std::list<Program> programs;
    for (const std::string& backend : options_.backends)
      for (const bool by_tiles : {false, true}) {
        const bool c = backend == "c";
        const Module& module = c ? (by_tiles ? *cpu_tiles : *cpu) : by_tiles ? *gpu_tiles : *gpu;
        auto made = generate(module, c ? c_target() : cuda_target(), {});
        if (!made) return fail(backend + ": " + made.error().message);
        ProgramOptions load;
        load.backend = backend;
        load.c_flags = options_.c_flags;
        load.use_cublas = !c;
        load.remarks = [&](const Remark& remark) {
          const bool is_dense = render(remark, "").find("the dense product") != std::string::npos;
          if (remark.kind == RemarkKind::applied) tally_.drawn[is_dense ? "plans dense" : "plans followed"] += 1;
        };
        auto program = Program::load(made->host, load);
        if (!program) return fail(backend + ": " + program.error().message);
        programs.push_back(std::move(*program));
        subjects.push_back({backend + (by_tiles ? " with tiles" : ""), &module, &programs.back(), !c});
      }
    for (const Entry& entry : entries) {
      count_drawn(entry);
      try_entry(entry, *source, subjects,
                options_.plans > 0 && (first + (&entry - entries.data())) % options_.plans == 0);
    }
  }

  static Result<Values> run_subject(const Subject& subject, const std::string& entry, const Values& inputs,
                                    std::uint64_t seed) {
    InterpretOptions order;
    order.seed = seed;
    return subject.program != nullptr ? subject.program->call(entry, inputs)
                                      : interpret(*subject.module, entry, inputs, order);
  }

  // By a plan, with arguments that are tiles.
  Result<Values> run_tiles(const Subject& subject, const SoaInterface& sparse, const std::string& entry,
                           const Values& inputs, bool builtin, std::uint64_t seed) {
    const auto packed = pack_arguments(sparse, inputs, plan_tiles(builtin, seed, tally_.drawn));
    if (!packed) return packed.error();
    auto results = run_subject(subject, entry, packed->values, seed);
    if (results) unpack_results(sparse, *packed, *results);
    return results;
  }

  // The runtime's kernels by random plans, and the dense product of a library.
  template <class Compare>
  static void try_plans(const Subject& subject, const Entry& entry, const SoaInterface& sparse, const Values& inputs,
                        std::uint64_t seed, const Compare& compare) {
    const HostCsr matrix = to_csr(inputs.front());
    Random random(seed);
    std::vector<SparsePlan> by_tiles, dense;
    for (const bool sddmm : {false, true}) {
      by_tiles.push_back({sparse.names.front(), "random", random_plan(matrix, sddmm, random)});
      dense.push_back({sparse.names.front(), "dense", dense_plan(matrix, sddmm)});
    }
    const bool has_library = subject.library && entry.type.find('f') != std::string::npos;
    for (const auto* plans : {&by_tiles, &dense}) {
      if (plans == &dense && !has_library) continue;
      const std::string who = subject.who + (plans == &dense ? " by plans that say dense" : " by random plans");
      if (const Status set = subject.program->set_sparse_plans(*plans); !set) {
        compare(who, set.error());
      } else {
        compare(who, subject.program->call(entry.name, inputs));
      }
    }
    if (const Status set = subject.program->set_sparse_plans({}); !set) compare("without plans", set.error());
  }

  void try_entry(const Entry& entry, const Module& source, const std::vector<Subject>& subjects, bool by_plans) {
    const Function& function = *source.find_entry(entry.name);
    Random random(entry.seed + 1);
    // Sums of sums are too large to be exact in half precision.
    if (options_.large && entry.type == "f16" &&
        (entry.form == "SDDMM, then SpMM" || entry.form == "SDDMM, batches" || entry.form == "all elements"))
      return;
    for (int round = 0; round < 3; ++round) {
      if (options_.large && round > 0) break;
      const auto size = [&] {
        if (options_.large) return random.between(60, 130);
        return round == 0 ? random.between(0, 2) : random.between(1, round == 1 ? 9 : 24);
      };
      const Type& type = function.type(function.params.front());
      const bool is_square = type.shape[0] == type.shape[1];
      const std::int64_t rows = size(), columns = is_square ? rows : size();
      const bool is_line = entry.matrix == "one-row" || entry.matrix == "one-column";
      const HostValue matrix =
          random_matrix(is_square && is_line ? "uniform" : entry.matrix, type.element, rows, columns, random);
      testing::Sizes sizes;
      for (const Value value : function.sizes) {
        const Poly name(value);
        sizes[function.values.name(value)] = name == type.shape[0]   ? matrix.shape[0]
                                             : name == type.shape[1] ? matrix.shape[1]
                                                                     : size();
      }
      if (options_.large) few_batches(function, random, sizes);
      auto inputs = testing::random_arguments(function, sizes, entry.seed);
      if (!inputs) return fail(entry.text + "\n" + inputs.error().message);
      inputs->front() = matrix;
      const auto expected = interpret(source, entry.name, *inputs);
      if (!expected) return fail(entry.text + "\ninterpreter: " + expected.error().message);
      const auto compare = [&](const std::string& who, const Result<Values>& got) {
        ++tally_.compared;
        if (got && testing::same_results(*got, *expected)) return;
        std::string why =
            fmt::format("{}\n{} with a matrix that is {}, {} by {} (seed {}): {}", entry.text, who, entry.matrix,
                        matrix.shape[0], matrix.shape[1], entry.seed, got ? "wrong result" : got.error().message);
        if (got && matrix.element_count() < 100) {
          for (const HostValue& value : *inputs) why += "\n  in  " + value.to_text().substr(0, 500);
          for (const HostValue& value : *got) why += "\n  got " + value.to_text().substr(0, 500);
        }
        fail(why);
      };
      for (const Subject& subject : subjects) {
        const std::uint64_t seed = entry.seed + static_cast<std::uint64_t>(round);
        const SoaInterface sparse = soa_interface(*subject.module->find_entry(entry.name));
        const bool tiles = std::ranges::any_of(sparse.soas, [](const SparseSoa& b) { return has_tiles(b.fields); });
        if (!tiles) {
          compare(subject.who, run_subject(subject, entry.name, *inputs, seed));
          if (by_plans && round == 2 && subject.program != nullptr && !sparse.empty())
            try_plans(subject, entry, sparse, *inputs, seed, compare);
          continue;
        }
        for (const bool builtin : {false, true})
          compare(fmt::format("{} by {} plan", subject.who, builtin ? "the built-in" : "a random"),
                  run_tiles(subject, sparse, entry.name, *inputs, builtin, seed));
      }
    }
  }

  // Three large dims are more than arguments may have.
  static void few_batches(const Function& function, Random& random, testing::Sizes& sizes) {
    for (const Value param : function.params) {
      const Type& type = function.type(param);
      if (type.rank() == 3) sizes[function.values.name(*type.shape[0].symbol())] = random.between(1, 4);
    }
  }

  const Options& options_;
  Tally tally_;
};

}  // namespace

int main(int argc, char** argv) {
  apl::CommandLine line("runs random programs with sparse operands on every backend against the interpreter");
  Options options;
  line.option("--seed", options.seed, "of the first program; the next has the next one");
  line.option("--count", options.count, "how many programs");
  line.option("--batch", options.batch, "programs in one text for the compiler");
  line.option("--backends", options.backends, "c, emulate, cuda; none");
  line.option("--c-flags", options.c_flags, "for the C compiler");
  line.flag("--large", options.large, "sizes for which the runtime's kernels are chosen, on backends that have them");
  line.option("--plans", options.plans, "of every so manieth program the runtime's kernels follow random plans");
  line.option("--state", options.state, "file with what is done so far: a run with the same options goes on from it");
  if (const auto code = line.parse(argc, argv)) return *code;
  if (options.backends == std::vector<std::string>{"none"}) options.backends.clear();
  return Tester(options).run();
}
