// Programs under test that share one C file, and so one run of the machine's compiler: the texts of the runtime that
// they include (context, scalar functions, micro-kernels) are compiled once for all of them. About 50 programs a batch
// is a good number: the compiler's own start and the runtime's texts are then a small part of its time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/codegen.h"
#include "ir/host_value.h"
#include "ir/module.h"
#include "runtime/program/program.h"

namespace apl::testing {

struct BatchProgram {
  const Module* module = nullptr;  // as the front end gives it
  std::map<std::string, std::int64_t> parameters;
};

// Makes a program of a module at the memory stage, or checks that one could be made and returns nothing.
using LoadModule = std::function<Result<std::optional<Program>>(const Module&, const CodegenOptions&)>;

struct BatchOptions {
  std::string backend = "c";          // decides the pipeline: that for CPUs, or that for GPUs
  std::vector<std::string> disabled;  // passes that are left out
  LoadModule load;
};

// As `aplc run` loads programs.
LoadModule load_as_users_do(const ProgramOptions& options);

class Batch {
 public:
  // Why a program is not in the batch.
  struct Refusal {
    bool by_pipeline = false;  // by a pass; else by code generation, the compiler or the loader
    Diagnostic error;
  };

  // Where the batch as a whole is refused, its halves are tried, so that few compilations find who is the reason.
  Batch(const std::vector<BatchProgram>& programs, const BatchOptions& options);

  const std::optional<Refusal>& refusal(std::size_t program) const { return members_[program].refusal; }
  // Whether there is something to call: not where `load` made nothing.
  bool is_loaded(std::size_t program) const { return members_[program].program.has_value(); }
  // Results and errors as of Program::call. The program is loaded.
  Result<std::vector<HostValue>> call(std::size_t program, std::string_view entry,
                                      const std::vector<HostValue>& inputs) const;
  std::size_t compilations() const { return compilations_; }

 private:
  struct Member {
    std::optional<Program> program;  // copies are the same program
    std::size_t number = 0;          // in the joined module
    std::optional<Refusal> refusal;
  };
  void load(const std::vector<BatchProgram>& programs, std::size_t first, std::size_t end, const BatchOptions& options);

  std::vector<Member> members_;
  std::size_t compilations_ = 0;
};

}  // namespace apl::testing
