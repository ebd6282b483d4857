#include "capi/compiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "capi/handles.h"
#include "codegen/codegen.h"
#include "codegen/emit/kernel_file.h"
#include "codegen/emit/library.h"
#include "codegen/emit/load.h"
#include "frontend/frontend.h"
#include "ir/interpret.h"
#include "ir/parse.h"
#include "ir/verify.h"
#include "machine/target/records.h"
#include "passes/sparse/search.h"

namespace apl::capi {
namespace {

// C compiles all kernels of a program at once, the others each when it is chosen.
constexpr int kCompiled = 4, kChosen = 12;

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(separator, at), text.size());
    if (end > at) parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

template <class Number>
std::optional<Number> number_of(const std::string& text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

Result<Target> target_for(const std::string& dialect, const std::string& device) {
  const Dialect* known = find_dialect(dialect);
  if (known == nullptr) return bad_argument(fmt::format("no dialect `{}`; there are c, cuda and hip", dialect));
  auto target = find_target(device.empty() ? dialect : device);
  // Plans may be those of any machine; what the text needs of one must be the dialect's.
  if (target && target->dialect != known) target = find_target(dialect);
  return target;
}

Result<bool> is_device_backend(const std::string& backend) {
  if (backend == "c") return false;
  if (backend == "cuda" || backend == "emulate" || backend == "hip") return true;
  return bad_argument(fmt::format("no backend `{}`; there are c, cuda and emulate", backend));
}

}  // namespace

Status Compiler::set(const std::string& name, const std::string& value) {
  if (name == "device") {
    if (!value.empty())
      if (auto found = find_device(value); !found) return std::move(found).error();
    device_ = value;
  } else if (name == "cache") {
    cache_ = value.empty() ? std::make_shared<ObjectCache>() : std::make_shared<ObjectCache>(value);
  } else if (name == "temporary") {
    temporary_ = value;
  } else if (name == "cc") {
    cc_ = value;
  } else if (name == "c-flags") {
    c_flags_ = split(value, ' ');
  } else if (name == "cuda-folders") {
    cuda_folders_ = split(value, ':');
  } else if (name == "cuda-device") {
    const auto number = number_of<int>(value);
    if (!number || *number < 0) return bad_argument(fmt::format("cuda-device is a number, not `{}`", value));
    cuda_device_ = *number;
  } else if (name == "disable") {
    std::vector<std::string> passes = split(value, ',');
    for (const std::string& pass : passes)
      if (registry.find(pass) == nullptr) return bad_argument(fmt::format("no pass `{}` to disable", pass));
    disabled_ = std::move(passes);
  } else if (name == "verify") {
    if (value != "0" && value != "1") return bad_argument(fmt::format("verify is 0 or 1, not `{}`", value));
    verify_ = value == "1";
  } else if (name == "seed") {
    const auto number = number_of<std::uint64_t>(value);
    if (!number) return bad_argument(fmt::format("seed is a number, not `{}`", value));
    seed_ = *number;
  } else {
    return bad_argument(
        fmt::format("no setting `{}`; there are device, cache, temporary, cc, c-flags, cuda-device, "
                    "cuda-folders, disable, verify and seed",
                    name));
  }
  return Unit{};
}

std::optional<Module> Compiler::parse_source(const std::string& name, const std::string& text,
                                             const DiagnosticSink& sink) {
  return compile({.name = name, .text = text, .parameters = parameters, .read = {}, .parameter = {}}, sink);
}

std::optional<Module> Compiler::parse_ir(const std::string& name, const std::string& text, const DiagnosticSink& sink) {
  auto module = parse_module(text, name);
  if (!module) {
    sink(module.error());
    return std::nullopt;
  }
  const std::vector<Diagnostic> broken = verify(*module);
  for (const Diagnostic& diagnostic : broken) sink(diagnostic);
  if (!broken.empty()) return std::nullopt;
  module->source = text;
  return *std::move(module);
}

PipelineOptions Compiler::pipeline_options() const {
  PipelineOptions options;
  options.remarks = remarks;
  options.parameters = parameters;
  options.disabled = disabled_;
  options.verify_each = verify_;
  return options;
}

Result<std::string> Compiler::standard_pipeline(const std::string& backend, const std::string& stage) const {
  const auto on_device = is_device_backend(backend);
  if (!on_device) return on_device.error();
  const Machine machine = *on_device ? Machine::gpu : Machine::cpu;
  for (const Stage until : {Stage::soac, Stage::kernel, Stage::memory})
    if (stage == to_text(until)) return apl::standard_pipeline(until, machine, true, registry);
  return bad_argument(fmt::format("no stage `{}`; there are soac, kernel and memory", stage));
}

Status Compiler::run(Module& module, const std::string& text) {
  std::string expanded = text;
  for (const Stage until : {Stage::soac, Stage::kernel, Stage::memory})
    if (text == to_text(until)) expanded = apl::standard_pipeline(until, Machine::gpu, false, registry);
  auto pipeline = parse_pipeline(expanded, registry);
  if (!pipeline) return std::move(pipeline).error();
  return run_pipeline(module, *pipeline, pipeline_options());
}

Result<Module> Compiler::lowered(const Module& module, bool on_device, bool variants) {
  Module copy = module;
  if (copy.stage == Stage::memory) return copy;
  std::string text =
      copy.stage == Stage::kernel
          ? "place-memory"
          : apl::standard_pipeline(Stage::memory, on_device ? Machine::gpu : Machine::cpu, variants, registry);
  if (!variants) text = with_calls_expanded(std::move(text));  // of a kernel file
  auto pipeline = parse_pipeline(text, registry);
  if (!pipeline) return std::move(pipeline).error();
  if (auto done = run_pipeline(copy, *pipeline, pipeline_options()); !done) return std::move(done).error();
  return copy;
}

Result<Compiler::Emission> Compiler::emission(const Module& module, const std::string& dialect, bool variants) {
  auto target = target_for(dialect, device_);
  if (!target) return std::move(target).error();
  auto memory = lowered(module, target->on_device(), variants);
  if (!memory) return std::move(memory).error();
  CodegenOptions codegen;
  codegen.parameters = parameters;
  codegen.plans = target->on_device() ? kChosen : kCompiled;
  codegen.device = device_;
  return Emission{*std::move(memory), *std::move(target), std::move(codegen)};
}

Result<std::string> Compiler::emit_program(const Module& module, const std::string& dialect) {
  auto all = emission(module, dialect, true);
  if (!all) return std::move(all).error();
  auto text = generate(all->module, all->target, all->codegen);
  if (!text) return std::move(text).error();
  return std::move(text->host);
}

Result<std::string> Compiler::emit_kernel(const Module& module, const std::string& dialect, const std::string& entry) {
  if (dialect == "c") return bad_argument("kernel files are for cuda and hip");
  auto all = emission(module, dialect, false);
  if (!all) return std::move(all).error();
  all->codegen.sizes = sizes;
  auto file = generate_kernel_file(all->module, entry, all->codegen, all->target);
  if (!file) return std::move(file).error();
  return std::move(file->text);
}

Result<Compiler::Library> Compiler::emit_library(const Module& module, const std::string& dialect,
                                                 const std::string& name) {
  if (name.empty()) return bad_argument("a library has a name");
  auto all = emission(module, dialect, true);
  if (!all) return std::move(all).error();
  auto library = generate_library(all->module, all->target, all->codegen, {Artifact::library, name, APL_VERSION});
  if (!library) return std::move(library).error();
  return Library{std::move(library->source), std::move(library->header), std::move(library->manifest)};
}

Result<Program> Compiler::load(const Module& module, const std::string& backend) {
  const auto on_device = is_device_backend(backend);
  if (!on_device) return on_device.error();
  auto memory = lowered(module, *on_device, true);
  if (!memory) return std::move(memory).error();
  ProgramOptions options;
  options.backend = backend;
  options.c_compiler = cc_;
  options.c_flags = c_flags_;
  options.seed = seed_;
  options.device_record = device_;
  options.device = cuda_device_;
  options.cuda_folders = cuda_folders_;
  options.temporary_folder = temporary_;
  options.cache = cache_;
  CodegenOptions codegen;
  codegen.parameters = parameters;
  return load_program(*memory, options, codegen);
}

Result<std::vector<HostValue>> Compiler::interpret(const Module& module, const std::string& entry,
                                                   const std::vector<HostValue>& inputs) {
  InterpretOptions options;
  options.seed = seed_;
  options.parameters = parameters;
  const Function* function = module.find_entry(entry);
  if (function == nullptr) return bad_argument(fmt::format("the module has no entry `{}`", entry));
  const SoaInterface sparse = soa_interface(*function);
  auto packed = pack_arguments(sparse, inputs);
  if (!packed) return std::move(packed).error();
  auto results = apl::interpret(module, entry, packed->values, options);
  if (results && !sparse.empty()) unpack_results(sparse, *packed, *results);
  return results;
}

Result<std::string> search_plan(const CsrPattern& matrix, const std::string& operation, std::int64_t width,
                                std::int64_t element_bytes, const std::string& device, double seconds) {
  if (operation != "spmm" && operation != "sddmm")
    return bad_argument(fmt::format("operators are spmm and sddmm, not `{}`", operation));
  if (width < 1 || width > (1 << 20)) return bad_argument(fmt::format("a dense loop of {} iterations", width));
  if (!(seconds >= 0)) return bad_argument("a search takes 0 seconds or more");
  Result<sparse::Profile> profile = sparse::Profile{};
  if (const sparse::Profile* known = sparse::builtin_profile(device)) {
    profile = *known;
  } else if (device.find('\n') == std::string::npos) {
    return bad_argument(fmt::format("no device `{}`; there are cpu, h200 and texts of profiles", device));
  } else {
    profile = sparse::parse_profile(device);
  }
  if (!profile) return std::move(profile).error();
  auto csr = sparse::from_csr(matrix.rows, matrix.columns, matrix.row_start, matrix.column, {});
  if (!csr) return std::move(csr).error();
  sparse::SearchOptions options;
  options.problem = {operation == "spmm" ? sparse::Operator::spmm : sparse::Operator::sddmm, width, element_bytes};
  options.seconds = seconds;
  return to_text(sparse::search(*csr, *profile, options));
}

}  // namespace apl::capi
