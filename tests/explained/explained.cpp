// Whether `aplc explain` counts what runs: the kernels that it says an entry launches with the sizes of the entry's
// first dataset, beside the launches of a call of it in emulation. Entries with loops or branches that the sizes do not
// decide are counted apart, and those with sparse operands, whose matrices decide what is launched.
//   apl_explained_tests FILE...
#include <fmt/format.h>

#include <fstream>
#include <iterator>

#include "aplc/explain_costs.h"
#include "codegen/codegen.h"
#include "frontend/frontend.h"
#include "passes/pipeline.h"
#include "runtime/program/program.h"
#include "tests/command_line.h"

namespace {

constexpr const char* kDevice = "h200";

class Comparison {
 public:
  bool run(const std::string& file) {
    file_ = file;
    std::ifstream in(file);
    text_.assign(std::istreambuf_iterator<char>(in), {});
    auto module = apl::compile({file, text_}, [](const apl::Diagnostic&) {});
    if (!module) return fail("", "does not compile");
    auto pipeline = apl::parse_pipeline(apl::standard_pipeline(apl::Stage::memory, apl::Machine::gpu),
                                        apl::PassRegistry::builtin());
    if (auto done = apl::run_pipeline(*module, *pipeline, {}); !done) return fail("", done.error().message);
    auto text = apl::generate(*module, *apl::find_target("cuda"), {});
    if (!text) return fail("", text.error().message);
    apl::ProgramOptions options;
    options.backend = "emulate";
    options.device_record = kDevice;
    auto program = apl::Program::load(text->host, options);
    if (!program) return fail("", program.error().message);
    for (const apl::FunctionPtr& function : module->functions)
      if (function->is_entry()) entry(*module, *function, *program);
    return true;
  }

  int finish() const {
    fmt::print(
        "of {} entries the launches are those that explain says, of {} sizes do not decide them, of {} a sparse matrix "
        "does, {} end with an error, {} failed\n",
        same_, undecided_, by_matrix_, stopped_, failed_);
    return failed_ == 0 && same_ > 0 ? 0 : 1;
  }

 private:
  bool fail(const std::string& entry, const std::string& what) {
    ++failed_;
    fmt::print("FAILED {} {}: {}\n", file_, entry, what);
    return false;
  }

  void entry(const apl::Module& module, const apl::Function& function, apl::Program& program) {
    const auto inputs = aplc::first_inputs(file_, text_, function);
    if (!inputs) return;
    const apl_device device = *apl::find_device(kDevice);
    const aplc::Sizes sizes = aplc::sizes_of(function, *inputs);
    const auto plans = aplc::explained_plans(module, function, sizes, device, {});
    double said = 0;
    bool decided = true, by_matrix = false;
    std::string lines;
    for (const aplc::KernelCost& kernel : aplc::kernel_costs(module, function, sizes, {}, device, plans)) {
      decided = decided && !kernel.unknown_rounds && !kernel.unknown_branch;
      by_matrix = by_matrix || kernel.is_sparse;
      said += kernel.launches;
      lines += fmt::format(" {}x{:.0f}", kernel.location.line, kernel.launches);
    }
    const std::int64_t before = program.launches();
    const auto called = program.call(function.entry->name, *inputs);
    if (!called) {  // the check that a case of failure is for
      ++stopped_;
      return;
    }
    const std::int64_t launches = program.launches() - before;
    if (!decided || by_matrix) {
      ++(by_matrix ? by_matrix_ : undecided_);
    } else if (static_cast<double>(launches) == said) {
      ++same_;
    } else {
      fail(function.entry->name, fmt::format("{:.0f} launches are said, by line{}; {} run", said, lines, launches));
    }
  }

  std::string file_, text_;
  int same_ = 0, undecided_ = 0, by_matrix_ = 0, stopped_ = 0, failed_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  apl::CommandLine line("compares the launches that explain counts with those that run");
  std::vector<std::string> files;
  line.files("FILES", files, "programs");
  if (const auto exit = line.parse(argc, argv)) return *exit;
  Comparison comparison;
  for (const std::string& file : files) comparison.run(file);
  return comparison.finish();
}
