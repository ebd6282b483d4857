// Every entry of programs as users get it, with a kernel for each plan and at the C compiler's flags that Program::load
// gives, against the interpreter on the program as the front end gave it. Programs share compilations (tests/batch).
//   apl_flag_tests [--cc=clang] [--march=haswell] [--c-flags=-O1] [--batch=20] FILE...
// Inputs are small integers stored in the element type, so equality is exact.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <string>
#include <vector>

#include "frontend/frontend.h"
#include "ir/interpret.h"
#include "ir/read_file.h"
#include "tests/batch/batch.h"
#include "tests/batch/compiler.h"
#include "tests/batch/sizes.h"
#include "tests/command_line.h"
#include "tests/testing.h"

namespace {

using namespace apl;

constexpr int kSkipped = 77;

struct Options {
  testing::CompilerOptions compiler;
  std::size_t batch = 20;
  std::vector<std::string> files;
};

struct Counts {
  std::size_t passed = 0, failed = 0, compilations = 0;
};

// What is being called, for the handler of a crash.
char running[512];
void name_running(const std::string& name) {
  std::strncpy(running, name.c_str(), sizeof running - 2);
  running[std::min(name.size(), sizeof running - 2)] = '\n';
}
void tell_crash(int) {
  constexpr char kText[] = "CRASHED ";
  if (write(STDOUT_FILENO, kText, sizeof kText - 1) < 0 || write(STDOUT_FILENO, running, std::strlen(running)) < 0)
    _exit(2);
  _exit(1);
}

class Tester {
 public:
  explicit Tester(const Options& options) : options_(options) {}

  Counts run() {
    for (std::size_t first = 0; first < options_.files.size(); first += options_.batch)
      run_batch({options_.files.begin() + static_cast<std::ptrdiff_t>(first),
                 options_.files.begin() +
                     static_cast<std::ptrdiff_t>(std::min(first + options_.batch, options_.files.size()))});
    return counts_;
  }

 private:
  struct Subject {
    std::string file;
    Module module;
  };

  void fail(const std::string& file, const std::string& what) {
    ++counts_.failed;
    fmt::print("FAILED {}{}: {}\n", file, options_.compiler.text(), what);
  }

  void run_batch(const std::vector<std::string>& files) {
    std::vector<Subject> subjects;
    for (const std::string& file : files) {
      const auto text = read_bytes(file);
      if (!text) {
        fail(file, "cannot be read");
        continue;
      }
      auto module = compile({file, *text}, [&](const Diagnostic& d) { fmt::print("{}", render(d, file, *text)); });
      if (module) {
        subjects.push_back({file, *std::move(module)});
      } else {
        fail(file, "does not compile");
      }
    }
    std::vector<testing::BatchProgram> programs;
    for (const Subject& subject : subjects) programs.push_back({&subject.module, {}});
    ProgramOptions load = options_.compiler.program_options();
    // Vectors of mathematical functions are rounded otherwise than the interpreter's.
    load.c_flags.emplace_back("-DAPL_NO_VECTOR_MATH");
    const testing::Batch batch(programs, {"c", {}, testing::load_as_users_do(load)});
    counts_.compilations += batch.compilations();
    for (std::size_t k = 0; k < subjects.size(); ++k) {
      if (const auto& refusal = batch.refusal(k)) {
        fail(subjects[k].file, refusal->error.message);
      } else {
        run_program(subjects[k], batch, k);
      }
    }
  }

  void run_program(const Subject& subject, const testing::Batch& batch, std::size_t k) {
    for (const FunctionPtr& function : subject.module.functions) {
      if (!function->is_entry()) continue;
      std::vector<testing::Sizes> all;
      for (const testing::Try& next : testing::size_sets(*function, false)) all.push_back(next.sizes);
      // Enough for vectors of any machine, and a remainder.
      if (function->sizes.size() <= 2) {
        all.emplace_back();
        for (const Value size : function->sizes) all.back()[function->values.name(size)] = 37;
      }
      for (std::size_t n = 0; n < all.size(); ++n) run_call(subject, batch, k, *function, all[n], n);
    }
  }

  void run_call(const Subject& subject, const testing::Batch& batch, std::size_t k, const Function& entry,
                const testing::Sizes& sizes, std::size_t seed) {
    std::string where = entry.entry->name;
    for (const auto& [name, value] : sizes) where += fmt::format(" {}={}", name, value);
    const auto inputs = testing::random_arguments(entry, sizes, seed + 1);
    if (!inputs) return fail(subject.file, where + ": " + inputs.error().message);
    const auto expected = interpret(subject.module, entry.entry->name, *inputs);
    if (!expected) return fail(subject.file, where + ": interpreter: " + expected.error().message);
    name_running(fmt::format("{}{}: {}", subject.file, options_.compiler.text(), where));
    const auto got = batch.call(k, entry.entry->name, *inputs);
    if (!got) return fail(subject.file, where + ": " + got.error().message);
    if (!testing::same_results(*got, *expected)) return fail(subject.file, where + ": wrong result");
    ++counts_.passed;
  }

  const Options& options_;
  Counts counts_;
};

}  // namespace

int main(int argc, char** argv) {
  CommandLine line("runs programs at the flags that users get against the interpreter");
  Options options;
  std::uint64_t batch = options.batch;
  options.compiler.add_to(line);
  line.option("--batch", batch, "programs a compilation");
  line.files("FILES", options.files, "programs");
  if (const auto code = line.parse(argc, argv)) return *code;
  options.batch = std::max<std::size_t>(batch, 1);
  if (auto runs = testing::check_machine(options.compiler); !runs) {
    fmt::print("skipped: {}\n", runs.error().message);
    return kSkipped;
  }
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) std::signal(signal, tell_crash);
  const Counts counts = Tester(options).run();
  fmt::print("{} programs in {} compilations: {} calls agree, {} failed\n", options.files.size(), counts.compilations,
             counts.passed, counts.failed);
  return counts.failed == 0 && counts.passed > 0 ? 0 : 1;
}
