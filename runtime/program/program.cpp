#include "runtime/program/program.h"

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <utility>

#include "runtime/backends/cuda.h"
#include "runtime/backends/emulate.h"
#include "runtime/embed.h"
#include "runtime/program/state.h"

namespace apl {

namespace {

static_assert(APL_MAX_RANK == kMaxRank);

Workplace workplace_of(const ProgramOptions& options) {
  return {options.temporary_folder, options.keep_folder, options.cache, options.log};
}

Result<std::unique_ptr<Backend>> make_backend(const ProgramOptions& options) {
  if (options.backend == "c") return make_host_backend();
  if (options.backend == "emulate")
    return make_emulate_backend({options.cpp_compiler, options.seed, options.device_record, workplace_of(options)});
  if (options.backend == "cuda")
    return make_cuda_backend({options.device, options.stream, options.cuda_folders, {}, workplace_of(options)});
  return make_error(Code::command_bad_argument, {},
                    fmt::format("no backend `{}`; there are c, emulate and cuda", options.backend));
}

Result<SharedObject> compile_host(std::string_view text, const ProgramOptions& options) {
  Compilation host;
  // Integers wrap, as the IR says. Products and sums are rounded one by one, so that every machine and the interpreter
  // give the same bits; only the micro-kernels of packed contractions may fuse them, by an attribute of their own.
  // Nobody looks at traps or errno, and vector code must know.
  // What only launches kernels that are emulated should rather be compiled quickly.
  const char* optimisation = options.backend == "emulate" ? "-O0" : "-O3";
  host.command = {options.c_compiler,  "-std=c11", optimisation, "-march=native",     "-fopenmp",
                  "-shared",           "-fPIC",    "-fwrapv",    "-ffp-contract=off", "-fno-math-errno",
                  "-fno-trapping-math"};
  host.command.insert(host.command.end(), options.c_flags.begin(), options.c_flags.end());
  host.libraries = {"-lm"};
  if (const std::string openmp = openmp_of_process(); !openmp.empty()) host.libraries = link_openmp(openmp);
  host.files = {{"program.c", text},
                {"context.h", context_header_text()},
                {"scalar.h", scalar_header_text()},
                {"threads.h", threads_header_text()},
                {"packed.h", packed_header_text()}};
  host.output = "program.so";
  return compile_shared(host, workplace_of(options));
}

}  // namespace

Result<Program> Program::load(std::string_view host_text, const ProgramOptions& options) {
  return load(host_text, {}, options);
}

Result<Program> Program::load(std::string_view host_text, std::string_view kernel_text, const ProgramOptions& options) {
  auto backend = make_backend(options);
  if (!backend) return std::move(backend).error();
  apl_device device = (*backend)->device();
  if (!options.device_record.empty()) {
    auto record = find_device(options.device_record);
    if (!record) return std::move(record).error();
    device = *record;
  }
  auto object = compile_host(host_text, options);
  if (!object) return std::move(object).error();
  auto plans = program::read_plans(options.sparse_plans);
  if (!plans) return std::move(plans).error();
  if (auto followed = program::check_followed(*plans); !followed && !options.use_cublas)
    return std::move(followed).error();
  auto state = std::make_shared<State>();
  state->plans = std::move(*plans);
  state->remarks = options.remarks;
  state->entries = options.entries;
  state->object = std::move(*object);
  share_pool(state->object);
  if (kernel_text.empty())
    if (const auto* text = static_cast<const char*>(state->object.symbol("apl_kernel_text"))) kernel_text = text;
  if (auto loaded = (*backend)->load(kernel_text); !loaded) return std::move(loaded).error();
  state->bridge.emplace(std::move(*backend), static_cast<const apl_location*>(state->object.symbol("apl_locations")));
  state->bridge->plans(
      {device, options.log, static_cast<const apl_lazy_kernel*>(state->object.symbol("apl_lazy_kernels"))});
  state->bridge->constants(static_cast<const apl_constant*>(state->object.symbol("apl_constants")));
  if (options.use_cublas) state->bridge->sparse().use_library();
  return Program(std::move(state));
}

Result<std::vector<HostValue>> Program::call(std::string_view entry, const std::vector<HostValue>& inputs, bool warm) {
  const std::lock_guard turn(state_->mutex);
  auto preparing = state_->prepare(entry, inputs);
  if (!preparing) return std::move(preparing).error();
  const program::Prepared prepared = *std::move(preparing);
  if (warm)
    if (auto called = state_->call(prepared.function, *prepared.arguments, false); !called) return called;
  auto results = state_->call(prepared.function, *prepared.arguments, true);
  state_->report_plans(entry);
  if (results && !prepared.sparse.empty()) unpack_results(prepared.sparse, prepared.packed, *results);
  return results;
}

Result<std::vector<double>> Program::benchmark(std::string_view entry, const std::vector<HostValue>& inputs, int runs,
                                               double seconds) {
  const std::lock_guard turn(state_->mutex);
  auto preparing = state_->prepare(entry, inputs);
  if (!preparing) return std::move(preparing).error();
  const program::Prepared prepared = *std::move(preparing);
  std::vector<double> times;
  std::optional<Diagnostic> failed;
  const auto start = std::chrono::steady_clock::now();
  const auto is_over = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > seconds;
  };
  for (int run = -1; run < runs && !failed && (times.empty() || !is_over()); ++run) {
    if (auto called = state_->call(prepared.function, *prepared.arguments, false); !called)
      failed = std::move(called).error();
    if (run >= 0) times.push_back(state_->microseconds);
  }
  state_->report_plans(entry);
  if (failed) return *std::move(failed);
  return times;
}

Result<double> Program::kernel_time(std::string_view entry, const std::vector<HostValue>& inputs) {
  const std::lock_guard turn(state_->mutex);
  auto preparing = state_->prepare(entry, inputs);
  if (!preparing) return std::move(preparing).error();
  const program::Prepared prepared = *std::move(preparing);
  const auto call = [&] { return state_->call(prepared.function, *prepared.arguments, false); };
  if (auto called = call(); !called) return std::move(called).error();
  Backend& backend = state_->bridge->backend();
  if (auto begun = backend.begin_launch_times(); !begun) return std::move(begun).error();
  auto called = call();
  auto time = backend.end_launch_times();
  state_->report_plans(entry);
  if (!called) return std::move(called).error();
  return time;
}

double Program::last_microseconds() const { return state_->microseconds; }

std::int64_t Program::launches() const { return state_->bridge->launches(); }

std::int64_t Program::peak_bytes() const { return state_->bridge->peak_bytes(); }

std::vector<KernelStats> Program::kernels() const { return state_->bridge->backend().kernels(); }

}  // namespace apl
