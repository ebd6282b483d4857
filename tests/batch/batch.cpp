#include "tests/batch/batch.h"

#include <utility>

#include "codegen/emit/load.h"
#include "passes/pipeline.h"
#include "suite/join.h"

namespace apl::testing {

LoadModule load_as_users_do(const ProgramOptions& options) {
  return [options](const Module& module, const CodegenOptions& codegen) -> Result<std::optional<Program>> {
    auto program = load_program(module, options, codegen);
    if (!program) return std::move(program).error();
    return std::optional<Program>(*std::move(program));
  };
}

Batch::Batch(const std::vector<BatchProgram>& programs, const BatchOptions& options) : members_(programs.size()) {
  if (!programs.empty()) load(programs, 0, programs.size(), options);
}

void Batch::load(const std::vector<BatchProgram>& programs, std::size_t first, std::size_t end,
                 const BatchOptions& options) {
  std::vector<const Module*> modules;
  CodegenOptions codegen;
  for (std::size_t k = first; k < end; ++k) {
    modules.push_back(programs[k].module);
    codegen.parameters.merge(suite::joined_parameters(k - first, *programs[k].module, programs[k].parameters));
  }
  Module joined = suite::join(modules);
  PipelineOptions passes;
  passes.parameters = codegen.parameters;
  passes.disabled = options.disabled;
  passes.verify_each = false;
  const Machine machine = options.backend == "c" ? Machine::cpu : Machine::gpu;
  const auto pipeline = parse_pipeline(standard_pipeline(Stage::memory, machine), PassRegistry::builtin());
  std::optional<Refusal> refusal;
  std::optional<Program> program;
  if (const Status status = run_pipeline(joined, *pipeline, passes); !status) {
    refusal = Refusal{true, status.error()};
  } else {
    ++compilations_;
    auto loaded = options.load(joined, codegen);
    if (loaded) {
      program = *std::move(loaded);
    } else {
      refusal = Refusal{false, std::move(loaded).error()};
    }
  }
  if (refusal && end - first > 1) {
    const std::size_t middle = first + (end - first) / 2;
    load(programs, first, middle, options);
    load(programs, middle, end, options);
    return;
  }
  for (std::size_t k = first; k < end; ++k) members_[k] = {program, k - first, refusal};
}

Result<std::vector<HostValue>> Batch::call(std::size_t program, std::string_view entry,
                                           const std::vector<HostValue>& inputs) const {
  const Member& member = members_[program];
  Program callable = *member.program;
  return callable.call(suite::joined_name(member.number, entry), inputs);
}

}  // namespace apl::testing
