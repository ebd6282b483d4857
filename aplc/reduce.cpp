// aplc reduce CMD FILE: a smaller program on which a command still succeeds, by delta debugging.
//
// CMD says whether a program is interesting: exit code 0, as for creduce and llvm-reduce. It is asked of the original
// first. IR is reduced as IR, and is verified before the command is asked; source is reduced as source, and compiled
// before, if the original compiles.
#include "aplc/reduce/reduce.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>

#include "aplc/command.h"
#include "aplc/driver.h"
#include "ir/parse.h"
#include "ir/print.h"

namespace aplc {
namespace {

struct ReduceOptions {
  std::string command, file, output;
  int exit_code = 0;
  double timeout = 10, time_limit = 600;
};

std::string default_output(const std::string& file) {
  const std::size_t slash = file.rfind('/'), dot = file.rfind('.');
  const bool has_ending = dot != std::string::npos && (slash == std::string::npos || dot > slash + 1);
  return has_ending ? file.substr(0, dot) + ".reduced" + file.substr(dot) : file + ".reduced";
}

class Reduction {
 public:
  explicit Reduction(const ReduceOptions& options) : options_(options) {}

  int run() {
    auto text = read_file(options_.file);
    if (!text) return report(text.error());
    const std::string output = options_.output.empty() ? default_output(options_.file) : options_.output;
    if (const auto writable = check_output(output); !writable) return report(writable.error());
    auto folder = WorkFolder::make();
    if (!folder) return report(folder.error());
    const bool ir = is_ir(options_.file, *text);
    candidate_ = folder->path() + (ir ? "/candidate.aplir" : "/candidate.fut");
    if (!interesting(*text)) {
      if (failed_) return failed_;
      apl::Diagnostic error = apl::make_error(
          apl::Code::command_not_reproduced, {},
          last_.timed_out
              ? fmt::format("the command does not end in {} s on the original; --timeout allows more", options_.timeout)
              : fmt::format("the command gives exit code {} on the original, and is to give {} where a program is "
                            "interesting",
                            last_.exit_code, options_.exit_code));
      while (last_.errors.ends_with('\n')) last_.errors.pop_back();
      if (!last_.errors.empty()) error.notes.push_back({fmt::format("the command says:\n{}", last_.errors), {}});
      return report(error);
    }
    const reduce::Oracle oracle{[&](const std::string& t) { return interesting(t); }, [&] { return stopped(); },
                                [&](const std::string& what) { progress(what); }};
    std::string result;
    std::string before, after;
    if (ir) {
      auto module = apl::parse_module(*text, options_.file);
      if (!module) return report_in(module.error(), *text);
      const apl::Module smaller = reduce::reduce_ir(*module, oracle);
      before = fmt::format("{} statements", count_statements(*module));
      after = fmt::format("{} statements", count_statements(smaller));
      result = apl::print(smaller);
      // Nothing was found that is smaller: as it was written, with its comments.
      if (result == apl::print(*module)) result = *text;
    } else {
      result = reduce::reduce_source(options_.file, *text, oracle);
      before = fmt::format("{} lines", std::count(text->begin(), text->end(), '\n'));
      after = fmt::format("{} lines", std::count(result.begin(), result.end(), '\n'));
    }
    clear_progress();
    if (failed_) return failed_;
    if (const int status = emit(output, result); status != kFine) return status;
    print_out("{} -> {} by {} runs of the command in {:.1f} s{}: {}\n", before, after, runs_, seconds(),
              stopped() ? ", when the time was over" : "", output);
    return kFine;
  }

 private:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }
  bool stopped() const { return failed_ != 0 || seconds() > options_.time_limit; }

  int report_in(const apl::Diagnostic& error, const std::string& text) {
    print_error("{}", apl::render(error, options_.file, text));
    return exit_code(error);
  }

  bool interesting(const std::string& text) {
    if (!asked_.insert(std::hash<std::string>()(text)).second) return false;
    if (const auto written = write_file(candidate_, text); !written) {
      failed_ = report(written.error());
      return false;
    }
    auto outcome = run_command(command_on(options_.command, candidate_), options_.timeout);
    ++runs_;
    if (!outcome) {
      failed_ = report(outcome.error());
      return false;
    }
    last_ = std::move(*outcome);
    return !last_.timed_out && last_.exit_code == options_.exit_code;
  }

  void progress(const std::string& what) const {
    if (isatty(STDERR_FILENO)) print_error("\r\x1b[K{} runs, {:.0f} s: {}", runs_, seconds(), what);
  }
  static void clear_progress() {
    if (isatty(STDERR_FILENO)) print_error("\r\x1b[K");
  }

  const ReduceOptions& options_;
  std::string candidate_;
  std::set<std::size_t> asked_;  // hashes of texts
  CommandOutcome last_;
  std::size_t runs_ = 0;
  int failed_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace

void add_reduce(CLI::App& app, int& exit) {
  auto options = std::make_shared<ReduceOptions>();
  CLI::App* command = app.add_subcommand("reduce", "make a program smaller as long as a command succeeds on it");
  command
      ->add_option("CMD", options->command,
                   "shell command that exits with 0 where a program shows what is looked for; the file's name replaces "
                   "{} or comes last. To keep a failure: --exit-code, or `! command`")
      ->required();
  command->add_option("FILE", options->file, "program: .fut or .aplir")->required();
  command->add_option("-o,--output", options->output, "file to write (default: FILE with .reduced before its ending)");
  command->add_option("--exit-code", options->exit_code, "exit code of the command where a program is interesting")
      ->capture_default_str();
  command->add_option("--timeout", options->timeout, "seconds after which a program is not interesting")
      ->capture_default_str();
  command->add_option("--time-limit", options->time_limit, "seconds after which the smallest program so far is written")
      ->capture_default_str();
  command->callback([options, &exit] { exit = Reduction(*options).run(); });
}

}  // namespace aplc
