// What the subcommands share: reading input, reporting, compiling to a stage, exit codes.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "aplc/known_names.h"
#include "aplc/observe.h"
#include "aplc/output.h"
#include "aplc/parameters.h"
#include "aplc/tiles.h"
#include "ir/diagnostic.h"
#include "ir/module.h"
#include "machine/target/target.h"
#include "passes/pipeline.h"

namespace aplc {

// 0 fine; 2 the user's program is wrong; 64 the command line is; 3 a limitation of ours; 70 our bug; 71 the machine
// fails. The last three are numbers of sysexits.h.
enum ExitCode { kFine = 0, kProgram = 2, kLimitation = 3, kCommandLine = 64, kBug = 70, kMachine = 71 };
int exit_code(const apl::Diagnostic& diagnostic);

// Options of the front end, called as in Futhark's compilers.
struct FrontOptions {
  bool safe = false;                 // #[unsafe] means nothing
  bool no_warnings = false;          // none is printed, or counts
  bool warnings_are_errors = false;  // all are

  void add_to(CLI::App& app);
  // The diagnostic as these options make it; nullopt if it is to be dropped.
  std::optional<apl::Diagnostic> of(const apl::Diagnostic& diagnostic) const;
};

// Options that every compiling subcommand has.
struct CompileOptions {
  FrontOptions front;
  std::string file;
  std::vector<std::string> parameters;  // NAME=VALUE
  std::string tuning;                   // a file of such lines
  std::string device;                   // for which plans are chosen
  std::vector<std::string> disabled;
  bool remarks = false;       // print them
  bool keep_remarks = false;  // for Session::remarks
  bool keep_stages = false;   // for Session::stages
  bool verify_each = true;
  ObserveOptions observe;
  TileOptions tiles;

  void add_to(CLI::App& app);
};

// A program being compiled, with its text for caret lines.
class Session {
 public:
  explicit Session(const CompileOptions& options) : options_(options) {}

  // Reads .fut or .aplir; on failure the diagnostics are on stderr and exit_code() is set.
  bool read();
  // The same with a text that was read already.
  bool read_text(std::string text);
  // Runs a pipeline text; remarks are printed or kept if that is asked for: making them takes its time.
  bool run(std::string_view pipeline);
  // After all passes: false where a tuning parameter was given that the program does not have.
  bool check_parameters();
  void report(const apl::Diagnostic& diagnostic);
  // Diagnostics go there instead of being printed.
  void set_sink(apl::DiagnosticSink sink) { sink_ = std::move(sink); }

  apl::Module& module() { return module_; }
  const apl::Module& module() const { return module_; }
  const apl::Module& front() const { return front_; }  // as it was read, before all passes
  const std::string& text() const { return text_; }    // as it was read
  const std::vector<apl::Remark>& remarks() const { return remarks_; }
  const std::vector<apl::PassReport>& passes() const { return passes_; }
  // The module's text before all passes, with no name, and after each pass that changed it.
  const std::vector<std::pair<std::string, std::string>>& stages() const { return stages_; }
  const std::map<std::string, std::int64_t>& parameters() const { return parameters_; }
  int exit_code() const { return exit_code_; }

 private:
  bool read_parameters();

  const CompileOptions& options_;
  apl::DiagnosticSink sink_;
  std::string text_;
  apl::Module module_, front_;
  std::vector<GivenName> given_;  // tuning parameters
  std::set<std::string> marked_;  // names of #[param] in the source
  std::vector<apl::Remark> remarks_;
  std::vector<apl::PassReport> passes_;
  std::vector<std::pair<std::string, std::string>> stages_;
  std::map<std::string, std::int64_t> parameters_;
  int exit_code_ = kFine;
};

// A file, or standard input ("-"); what is read is an input of the command, and not overwritten. Codes as of
// apl::read_bytes and suite::read_unpacked.
// Textual IR by the file's name; of standard input by its first word, `stage`.
bool is_ir(const std::string& name, const std::string& text);
apl::Result<std::string> read_file(const std::string& name);
apl::Result<std::string> read_unpacked_file(const std::string& name);

// What a backend's programs are generated for: its usual machine, or the one of that record, if it is of the same kind.
apl::Target target_of(const std::string& backend, const std::string& device);
// How many kernels a contraction may have on a backend: those of C are all compiled, the others when they are chosen.
int plans_for(const std::string& backend);
// The passes that make a program for a backend; for interp up to kernels.
std::string pipeline_for(const std::string& backend, const TileOptions& tiles = {});
// soac, kernel or memory as the standard pipeline up to that stage; other texts as they are.
std::string expand_pipeline(const std::string& pipeline);
// "3580 us"; of a short time with two digits of the fraction.
std::string microseconds_text(double microseconds);
// Where compiled objects are kept from run to run: below XDG_CACHE_HOME, or ~/.cache; empty if there is neither.
std::string cache_folder();
// The record of this machine's CPU that `aplc calibrate` wrote, below XDG_CONFIG_HOME or ~/.config: its path, whether
// or not it is there; empty if there is no such folder.
std::string calibrated_record();
// What --device names where it is not given and programs are for the CPU: that record if it is there, else "cpu".
std::string usual_cpu();

// Each adds its subcommand; `exit` receives the exit code when it ran.
// `values`: the arguments that stand after `--`.
void add_run(CLI::App& app, int& exit, const std::vector<std::string>& values);
void add_check(CLI::App& app, int& exit);
void add_opt(CLI::App& app, int& exit);
void add_c(CLI::App& app, int& exit);
void add_device_dialects(CLI::App& app, int& exit);
void add_passes(CLI::App& app, int& exit);
void add_test(CLI::App& app, int& exit);
void add_bench(CLI::App& app, int& exit);
void add_dataset(CLI::App& app, int& exit);
void add_calibrate(CLI::App& app, int& exit);
void add_explain(CLI::App& app, int& exit);
void add_tune(CLI::App& app, int& exit);
void add_sections(CLI::App& app, int& exit);
void add_sparse(CLI::App& app, int& exit);
void add_report(CLI::App& app, int& exit);
void add_bisect(CLI::App& app, int& exit);
void add_reduce(CLI::App& app, int& exit);
// Completion for shells, and manual pages: of all commands that are in `app` when they are asked for.
void add_manual(CLI::App& app, int& exit);

}  // namespace aplc
