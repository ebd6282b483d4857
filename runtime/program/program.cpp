#include "runtime/program/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <set>
#include <utility>

#include "ir/sparse_arguments.h"
#include "runtime/backends/cuda.h"
#include "runtime/backends/emulate.h"
#include "runtime/embed.h"
#include "runtime/names.h"
#include "runtime/program/bridge.h"
#include "runtime/program/sparse_operands.h"
#include "runtime/program/sparse_tiles.h"
#include "runtime/sparse/csr_view.h"

namespace apl {

namespace {

static_assert(APL_MAX_RANK == kMaxRank);

using program::Bridge;

Workplace workplace_of(const ProgramOptions& options) {
  return {options.temporary_folder, options.keep_folder, options.cache, options.log};
}

Result<std::unique_ptr<Backend>> make_backend(const ProgramOptions& options) {
  if (options.backend == "c") return make_host_backend();
  if (options.backend == "emulate")
    return make_emulate_backend({options.cpp_compiler, options.seed,
                                 options.device_record.empty() ? EmulateOptions().device : options.device_record,
                                 workplace_of(options)});
  if (options.backend == "cuda")
    return make_cuda_backend({options.device, options.stream, options.cuda_folders, {}, workplace_of(options)});
  return make_error(Code::command_bad_argument, {},
                    fmt::format("no backend `{}`; there are c, emulate and cuda", options.backend));
}

Result<SharedObject> compile_host(std::string_view text, const ProgramOptions& options) {
  Compilation host;
  // Integers wrap, as the IR says. Products and sums are rounded one by one, so that every machine and the interpreter
  // give the same bits (a fused multiply-add would not). Nobody looks at traps or errno, and vector code must know.
  host.command = {options.c_compiler,  "-std=c11", "-O3",     "-march=native",     "-fopenmp",
                  "-shared",           "-fPIC",    "-fwrapv", "-ffp-contract=off", "-fno-math-errno",
                  "-fno-trapping-math"};
  host.command.insert(host.command.end(), options.c_flags.begin(), options.c_flags.end());
  host.libraries = {"-lm"};
  host.files = {{"program.c", text},
                {"context.h", context_header_text()},
                {"scalar.h", scalar_header_text()},
                {"packed.h", packed_header_text()}};
  host.output = "program.so";
  return compile_shared(host, workplace_of(options));
}

// Inputs in device memory; the blocks go when it does.
class Arguments {
 public:
  explicit Arguments(Bridge& bridge) : bridge_(bridge) {}
  ~Arguments() {
    for (const apl_value& value : values_)
      if (auto ignored = bridge_.release(value.data); !ignored) continue;
  }
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  Status add(const HostValue& value) {
    if (value.rank() > APL_MAX_RANK)
      return make_error(Code::run_argument, {},
                        fmt::format("an argument of {} dims; {} at most", value.rank(), APL_MAX_RANK));
    apl_value out{};
    out.type = static_cast<std::int32_t>(value.type);
    out.rank = static_cast<std::int32_t>(value.rank());
    std::copy(value.shape.begin(), value.shape.end(), out.shape);
    const auto bytes = static_cast<std::int64_t>(value.data.size());
    if (value.rank() == 0) {
      std::memcpy(&out.scalar, value.data.data(), std::min(value.data.size(), sizeof out.scalar));
      values_.push_back(out);
      return Unit{};
    }
    auto block = bridge_.allocate(bytes, "an argument");
    if (!block) return std::move(block).error();
    out.data = *block;
    values_.push_back(out);
    return bridge_.backend().upload(*block, value.data.data(), bytes);
  }
  const apl_value* values() const { return values_.data(); }

 private:
  Bridge& bridge_;
  std::vector<apl_value> values_;
};

// An entry and what is handed over to it.
struct Prepared {
  apl_entry function;
  SoaInterface sparse;
  PackedArguments packed;
  std::unique_ptr<Arguments> arguments;
};

Result<HostValue> fetch(Bridge& bridge, const apl_value& output) {
  const auto type = static_cast<ScalarType>(output.type);
  HostValue value = HostValue::zeros(type, {output.shape, output.shape + output.rank});
  if (output.rank == 0) {
    std::memcpy(value.data.data(), &output.scalar, value.data.size());
    return value;
  }
  auto copied = bridge.backend().download(value.data.data(), output.data, static_cast<std::int64_t>(value.data.size()));
  if (!copied) return std::move(copied).error();
  return value;
}

}  // namespace

struct Program::State {
  SharedObject object;
  std::optional<Bridge> bridge;
  std::vector<program::GivenPlan> plans;
  std::vector<Remark> tile_remarks;  // of plans whose tiles are arguments of this call
  RemarkSink remarks;
  std::set<std::string> said;
  double microseconds = 0;

  Result<apl_entry> find(std::string_view entry) const {
    if (auto function = object.function<apl_entry>("apl_entry_" + symbol_part(entry))) return function;
    return make_error(Code::command_bad_argument, {}, fmt::format("the program has no entry `{}`", entry));
  }

  // What of the entry's arguments is sparse.
  SoaInterface sparse(std::string_view entry) const {
    const auto* text = static_cast<const char*>(object.symbol("apl_operands_" + symbol_part(entry)));
    return text == nullptr ? SoaInterface{} : SoaInterface::from_text(text);
  }

  // Arguments as the entry takes them; without sparse operands nothing.
  Result<PackedArguments> pack(const SoaInterface& sparse, const std::vector<HostValue>& inputs,
                               std::string_view entry) {
    if (sparse.empty()) return PackedArguments{};
    const auto see = [&](const program::PlanUse& use) { tile_remarks.push_back(program::plan_remark(use, entry, {})); };
    return pack_arguments(sparse, inputs, program::tile_maker(plans, see));
  }

  // The plans for the operands of this call, held against what they are.
  Status place_plans(const SoaInterface& sparse, const std::vector<HostValue>& values, const Arguments& arguments) {
    for (std::size_t k = 0; k < sparse.soas.size() && !plans.empty(); ++k) {
      const SparseSoa& soa = sparse.soas[k];
      if (std::ranges::find(plans, sparse.names[k], &program::GivenPlan::operand) == plans.end()) continue;
      const auto rows = program::rows_of_soa(soa, values);
      if (!rows) continue;
      auto fitting = program::plans_for(plans, sparse.names[k], csr_view(*rows));
      if (!fitting) return std::move(fitting).error();
      const auto column = std::ranges::find(soa.fields, SoaField::column) - soa.fields.begin();
      const bool by_rows = column != std::ssize(soa.fields);
      const apl_value* block = arguments.values() + soa.first + (by_rows ? column : 0);
      bridge->sparse().plan(bridge->age_of(block->data).value_or(0), std::move(*fitting));
    }
    return Unit{};
  }

  // Finds the entry, and uploads what it takes.
  Result<Prepared> prepare(std::string_view entry, const std::vector<HostValue>& inputs) {
    auto function = find(entry);
    if (!function) return std::move(function).error();
    const SoaInterface operands = sparse(entry);
    auto packed = pack(operands, inputs, entry);
    if (!packed) return std::move(packed).error();
    Prepared prepared{*function, operands, *std::move(packed), std::make_unique<Arguments>(*bridge)};
    for (const HostValue& input : operands.empty() ? inputs : prepared.packed.values)
      if (auto added = prepared.arguments->add(input); !added) return std::move(added).error();
    if (auto placed = place_plans(operands, prepared.packed.values, *prepared.arguments); !placed)
      return std::move(placed).error();
    return prepared;
  }

  // Says what became of each plan, once.
  void report_plans(std::string_view entry) {
    std::vector<Remark> all = std::move(tile_remarks);
    tile_remarks.clear();
    const std::string own = std::string_view(bridge->backend().name()) == "c"
                                ? "backend c has its own form"
                                : "no product with it is one that the runtime has kernels for";
    for (const program::PlanUse& use : bridge->sparse().take_uses())
      all.push_back(program::plan_remark(use, entry, own));
    for (const Remark& remark : all)
      if (remarks && said.insert(render(remark, "")).second) remarks(remark);
  }

  // One call. Whatever happens, only what was there before it is allocated after it.
  Result<std::vector<HostValue>> call(apl_entry entry, const Arguments& arguments, bool want_results) {
    const std::uint64_t mark = bridge->mark();
    auto results = call_entry(entry, arguments, want_results);
    auto released = bridge->release_since(mark);
    if (results && !released) return std::move(released).error();
    return results;
  }

 private:
  Result<std::vector<HostValue>> call_entry(apl_entry entry, const Arguments& arguments, bool want_results) {
    constexpr std::int32_t kNotSet = -1;  // the entry sets the types of the results that it has
    constexpr std::size_t kMaxResults = 256;
    std::vector<apl_value> outputs(kMaxResults);
    for (apl_value& output : outputs) output.type = kNotSet;
    bridge->clear_error();
    if (auto ok = bridge->backend().start_timer(); !ok) return std::move(ok).error();
    const int status = entry(bridge->context(), arguments.values(), outputs.data());
    if (status != APL_SUCCESS) return bridge->error(status);
    auto time = bridge->backend().stop_timer();
    if (!time) return std::move(time).error();
    microseconds = *time;
    std::vector<HostValue> results;
    for (const apl_value& output : outputs) {
      if (output.type == kNotSet || !want_results) break;
      auto value = fetch(*bridge, output);
      if (!value) return std::move(value).error();
      results.push_back(std::move(*value));
    }
    return results;
  }
};

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
  auto state = std::make_shared<State>();
  state->plans = std::move(*plans);
  state->remarks = options.remarks;
  state->object = std::move(*object);
  if (kernel_text.empty())
    if (const auto* text = static_cast<const char*>(state->object.symbol("apl_kernel_text"))) kernel_text = text;
  if (auto loaded = (*backend)->load(kernel_text); !loaded) return std::move(loaded).error();
  state->bridge.emplace(std::move(*backend), static_cast<const apl_location*>(state->object.symbol("apl_locations")));
  state->bridge->plans(
      {device, options.log, static_cast<const apl_lazy_kernel*>(state->object.symbol("apl_lazy_kernels"))});
  return Program(std::move(state));
}

Result<std::vector<HostValue>> Program::call(std::string_view entry, const std::vector<HostValue>& inputs, bool warm) {
  auto preparing = state_->prepare(entry, inputs);
  if (!preparing) return std::move(preparing).error();
  const Prepared prepared = *std::move(preparing);
  if (warm)
    if (auto called = state_->call(prepared.function, *prepared.arguments, false); !called) return called;
  auto results = state_->call(prepared.function, *prepared.arguments, true);
  state_->report_plans(entry);
  if (results && !prepared.sparse.empty()) unpack_results(prepared.sparse, prepared.packed, *results);
  return results;
}

Result<std::vector<double>> Program::benchmark(std::string_view entry, const std::vector<HostValue>& inputs, int runs,
                                               double seconds) {
  auto preparing = state_->prepare(entry, inputs);
  if (!preparing) return std::move(preparing).error();
  const Prepared prepared = *std::move(preparing);
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

double Program::last_microseconds() const { return state_->microseconds; }

std::int64_t Program::peak_bytes() const { return state_->bridge->peak_bytes(); }

std::vector<KernelStats> Program::kernels() const { return state_->bridge->backend().kernels(); }

}  // namespace apl
