// Programs compiled for a backend without printing anything, for the subcommands that run many.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "aplc/driver.h"
#include "aplc/known_names.h"
#include "aplc/sparse/arguments.h"
#include "aplc/test/server.h"
#include "ir/host_value.h"
#include "ir/module.h"
#include "ir/sparse_arguments.h"
#include "runtime/program/program.h"
#include "suite/test_block.h"

namespace aplc {

using Values = std::vector<apl::HostValue>;

// What the front end said of a file; without module the program was refused.
struct FrontEnd {
  std::string text;
  std::optional<apl::Module> module;
  std::string errors;            // rendered, without the file's name and lines: a test's pattern must not match those
  std::string warnings;          // likewise
  std::string said;              // both, in order
  int exit_code = 0;             // that of `aplc check`
  std::set<std::string> marked;  // names of its #[param]
};
FrontEnd run_front_end(const std::string& file, const Parameters& parameters = {}, const FrontOptions& options = {});

// A file of tuning parameters.
struct Tuning {
  Parameters values;
  std::vector<GivenName> names;
};
// That of `FILE.ENDING`; empty if there is no such file.
apl::Result<Tuning> tuning_beside(const std::string& file, const std::string& ending);
// A warning, rendered, where a name of the file is none of the program's: the file may be for other compilers.
std::string unknown_names(const Tuning& tuning, const FrontEnd& front);

struct ExecutableOptions {
  std::string backend = "c";
  std::string temporary_folder = "/tmp";
  std::vector<std::string> disabled;  // passes to leave out
  Parameters parameters;
  std::shared_ptr<apl::ObjectCache> cache;  // may be null
  std::vector<std::string> plans = {};      // OPERAND=FILE of sparse operands
  apl::RemarkSink remarks = {};             // what became of them; may be null
  TileOptions tiles = {};
  ServerOptions server = {};
  bool use_cublas = false;  // for plans that say `form dense`
};

// A program on a backend; interp runs the module as the front end gave it, or with tiles after the passes for kernels.
class Executable {
 public:
  static apl::Result<Executable> make(const apl::Module& front, const ExecutableOptions& options);

  // Whether plans that say `form dense` are for these arguments, of the entry before the passes.
  apl::Status check_plans(const std::string& entry, const Values& inputs, const GivenMatrices& matrices) const;
  // `are_checked`: that was asked before, and inputs are those of the compiled entry.
  apl::Result<Values> call(const std::string& entry, const Values& inputs, bool are_checked = false);
  // Times of `runs` calls in microseconds; after `seconds` no call is begun but the first.
  apl::Result<std::vector<double>> benchmark(const std::string& entry, const Values& inputs, int runs,
                                             double seconds = std::numeric_limits<double>::infinity());
  std::int64_t peak_bytes() const { return program_ ? program_->peak_bytes() : 0; }
  Server* server() { return server_.get(); }
  // As it was compiled.
  const apl::Module& module() const { return module_; }

 private:
  apl::Result<Values> interpret(const std::string& entry, const Values& inputs) const;
  apl::Status serve(const ExecutableOptions& options);

  apl::Module module_;
  Parameters parameters_;
  apl::Module front_;  // where there are plans that say `form dense`
  std::vector<apl::SparsePlan> dense_plans_;
  apl::TileMaker tiles_;                 // for interp
  std::optional<apl::Program> program_;  // not for interp, and not beside a server
  std::unique_ptr<Server> server_;
};

// The values of a case's input; files are looked up beside `file`, and numbers in them that have no suffix are of the
// types of the entry's parameters. Random ones are those of the seed.
apl::Result<Values> case_inputs(const std::string& file, const apl::suite::Input& input, const apl::Function& entry,
                                std::uint64_t seed = 1);
// Whether the entry takes values of such types (run.argument). What it keeps in a narrower float may be given as f32,
// and is rounded.
apl::Status fit_inputs(const apl::Function& entry, Values& inputs);

// `Error: `, location and message: what regular expressions of run-time errors are looked for in. The name of the file
// is left out unless it is given, so that it cannot match.
std::string error_text(const apl::Diagnostic& diagnostic, const std::string& file = {});

}  // namespace aplc
