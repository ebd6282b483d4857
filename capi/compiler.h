// What the C API and Python have in common: settings, and the way from a text to a module, a program or another text.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/codegen.h"
#include "ir/module.h"
#include "passes/pipeline.h"
#include "runtime/program/program.h"

namespace apl::capi {

class Compiler {
 public:
  Compiler() : registry(PassRegistry::builtin()) {}

  // -- Settings
  PassRegistry registry;
  std::map<std::string, std::int64_t> parameters, sizes;
  RemarkSink remarks;  // may be null

  // As apl_compiler_set. command.bad-argument.
  Status set(const std::string& name, const std::string& value);
  const std::string& device() const { return device_; }
  int cuda_device() const { return cuda_device_; }

  // -- Modules. Errors go to `sink`, several where there are several.
  std::optional<Module> parse_source(const std::string& name, const std::string& text, const DiagnosticSink& sink);
  std::optional<Module> parse_ir(const std::string& name, const std::string& text, const DiagnosticSink& sink);

  // Also of the names of stages.
  Status run(Module& module, const std::string& pipeline);
  Result<std::string> standard_pipeline(const std::string& backend, const std::string& stage) const;

  // -- Texts
  Result<std::string> emit_program(const Module& module, const std::string& dialect);
  Result<std::string> emit_kernel(const Module& module, const std::string& dialect, const std::string& entry);
  struct Library {
    std::string source, header, manifest;
  };
  Result<Library> emit_library(const Module& module, const std::string& dialect, const std::string& name);
  Result<std::string> explain(const Module& module);
  Result<std::string> report(const Module& module);

  // -- Running
  Result<Program> load(const Module& module, const std::string& backend);
  Result<std::vector<HostValue>> interpret(const Module& module, const std::string& entry,
                                           const std::vector<HostValue>& inputs);

 private:
  // A copy at the memory stage for that backend.
  Result<Module> lowered(const Module& module, bool on_device, bool variants);
  PipelineOptions pipeline_options() const;
  // What texts in a dialect are made of.
  struct Emission {
    Module module;
    Target target;
    CodegenOptions codegen;
  };
  Result<Emission> emission(const Module& module, const std::string& dialect, bool variants);

  struct Explained;
  Result<Explained> explained(const Module& module, bool keep_stages);

  std::string device_, temporary_ = "/tmp", cc_ = "cc";
  std::vector<std::string> c_flags_, cuda_folders_, disabled_;
  std::shared_ptr<ObjectCache> cache_ = std::make_shared<ObjectCache>();
  std::uint64_t seed_ = 1;
  int cuda_device_ = 0;
  bool verify_ = true;
};

// A plan for a matrix, as text. command.bad-argument for an operator or device that does not exist.
Result<std::string> search_plan(const CsrPattern& matrix, const std::string& operation, std::int64_t width,
                                std::int64_t element_bytes, const std::string& device, double seconds);

}  // namespace apl::capi
