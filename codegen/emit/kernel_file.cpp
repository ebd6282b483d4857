#include "codegen/emit/kernel_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "codegen/emit/device_subset.h"
#include "codegen/host/host.h"
#include "ir/sparse_arguments.h"
#include "machine/target/records.h"
#include "runtime/embed.h"

namespace apl::lower {
namespace {

using namespace kernel;

// What the entry is called in the file: `main` and the like are taken.
std::string file_name(const apl::Function& entry) { return legal_name(entry.entry->name); }

// Host code in the dialect's own words: the API of its runtime, results in the caller's memory, nothing waits but what
// must.
class PlainHost : public Host {
 public:
  PlainHost(Unit& unit, const CodegenOptions& options) : Host(unit, options), device_(options.device) {}

  HostText run_file() {
    const apl::Function& f = unit_.function;
    if (!f.result_sizes.empty()) unsupported(f.location, "a kernel file for results whose sizes the entry decides");
    if (!soa_interface(f).empty()) unsupported(f.location, "a kernel file with sparse operands");
    name_parameters();
    find_blocks(*f.body);
    find_arrays(*f.body);
    if (has_capacities_) unsupported(f.location, "a kernel file with loops or branches around kernels");
    name_results();
    out_.indent();
    statements();
    for (std::size_t k = 0; k < f.body->results.size(); ++k) {
      const Type type = table_.type(f.body->results[k]);
      if (type.is_scalar() && type.element != ScalarType::unit)
        out_.line("*{} = {};", results_[k], text(values_.operand(f.body->results[k])));
    }
    out_.line("return status;");
    const std::string statements = out_.take();
    out_ = {};
    out_.open("{} {}({}) {{", api("Error_t"), file_name(f), fmt::join(parameters(), ", "));
    out_.line("{} status = {};", api("Error_t"), api("Success"));
    // Freed on every way out.
    for (Value b : blocks_)
      if (!result_of_.contains(b)) declare_temporary(unit_.name(b));
    for (const std::string& name : scratch_) declare_temporary(name);
    out_.raw(statements);
    out_.close("}}");
    result_.text = out_.take();
    return std::move(result_);
  }

  // What is said of them before the kernels.
  const std::vector<std::string>& comments() const { return comments_; }
  bool has_temporaries() const { return has_temporaries_; }
  bool can_fail() const { return can_fail_; }

 private:
  void name_results() {
    const apl::Function& f = unit_.function;
    for (std::size_t k = 0; k < f.body->results.size(); ++k) {
      results_.push_back(unit_.fresh(f.body->results.size() == 1 ? "result" : fmt::format("result_{}", k)));
      const Type type = table_.type(f.body->results[k]);
      if (type.memory) result_of_[type.memory->block] = results_.back();
    }
  }

  std::string element_type(ScalarType type, bool is_scalar) const {
    if (type == ScalarType::f16 && is_scalar) unsupported(unit_.function.location, "a kernel file with an f16 scalar");
    return type == ScalarType::f16 ? "__half" : c_type({type, false});
  }

  std::vector<std::string> parameters() {
    const apl::Function& f = unit_.function;
    std::vector<std::string> list;
    for (Value size : f.sizes) list.push_back("int64_t " + unit_.name(size));
    for (Value param : f.params) {
      const Type& type = f.type(param);
      const std::string element = element_type(type.element, type.is_scalar());
      list.push_back(type.is_scalar() ? fmt::format("{} {}", element, unit_.name(param))
                                      : fmt::format("const {} *{}", element, unit_.name(param)));
    }
    for (std::size_t k = 0; k < results_.size(); ++k) {
      const Type type = table_.type(f.body->results[k]);
      list.push_back(fmt::format("{} *{}", element_type(type.element, type.is_scalar()), results_[k]));
    }
    if (can_fail_) list.emplace_back("void *failure");
    list.push_back(api("Stream_t stream"));
    return list;
  }

  void declare_temporary(const std::string& name) {
    has_temporaries_ = true;
    const std::string end = unit_.fresh(name + "_end");
    out_.line("void *{} = NULL;", name);
    out_.line("const {}_kernels::release_at_end {} = {{&{}, stream}};", file_name(unit_.function), end, name);
  }

  // A name of the runtime's API.
  std::string api(std::string_view name) const { return fmt::format("{}{}", unit_.dialect().api, name); }

  void check_status() override { out_.line("if (status != {}) return status;", api("Success")); }
  std::string upload_call(const std::string& to, const std::string& from, const std::string& bytes) override {
    return fmt::format("{}({}, {}, {}, {}, stream)", api("MemcpyAsync"), to, from, bytes, api("MemcpyHostToDevice"));
  }
  std::string download_call(const std::string& to, const std::string& from, const std::string& bytes) override {
    return fmt::format("{}({}, {}, {}, {})", api("Memcpy"), to, from, bytes, api("MemcpyDeviceToHost"));
  }
  std::string copy_call(const std::string& to, const std::string& from, const std::string& bytes) override {
    return fmt::format("{}({}, {}, {}, {}, stream)", api("MemcpyAsync"), to, from, bytes, api("MemcpyDeviceToDevice"));
  }
  std::string synchronise_call() override { return api("StreamSynchronize(stream)"); }
  // The bytes of an array, after a check that there can be one.
  std::string checked_bytes(const Extent& extent) {
    if (const auto bytes = fixed_bytes(extent)) return fmt::format("{}", *bytes);
    const std::string shape = unit_.fresh("shape"), bytes = unit_.fresh("bytes");
    out_.line("const int64_t {}[] = {{{}}};", shape, sizes_text(extent));
    out_.line("const int64_t {} = apl_bytes_of({}, {}, {});", bytes, extent.width, shape, extent.shape.size());
    out_.line("if ({} < 0) return {};", bytes, api("ErrorMemoryAllocation"));
    return fmt::format("static_cast<size_t>({})", bytes);
  }
  void check_extent(const Extent& extent) override { checked_bytes(extent); }
  void allocate(Value block, const Extent& extent) override {
    if (result_of_.contains(block)) return;
    const std::string bytes = checked_bytes(extent);
    run_call(fmt::format("{}(&{}, {}, stream)", api("MallocAsync"), unit_.name(block), bytes));
  }
  std::string reserve_threads(const std::string& hint, const Extent& wanted, bool may_lack) override {
    Extent extent = wanted;
    for (Poly& size : extent.shape)
      if (may_lack) size = poly_max(size, 0);
    scratch_.push_back(unit_.fresh(hint + "_of_threads"));
    const std::string bytes = checked_bytes(extent);
    run_call(fmt::format("{}(&{}, {}, stream)", api("MallocAsync"), scratch_.back(), bytes));
    return scratch_.back();
  }
  void release(const std::string& name) override {
    for (const auto& [block, result] : result_of_)
      if (unit_.name(block) == name) return;
    out_.line("if ({0} != NULL) {1}({0}, stream);", name, api("FreeAsync"));
    out_.line("{} = NULL;", name);
  }
  std::string block(Value b) override {
    for (Value param : unit_.function.params)
      if (const Type& type = table_.type(param); type.memory && type.memory->block == b) return unit_.name(param);
    const auto result = result_of_.find(b);
    return result == result_of_.end() ? unit_.name(b) : result->second;
  }
  void refuse_if(const ExprPtr& condition, apl_failure_code, Location, const std::string& message,
                 const std::vector<ExprPtr>&) override {
    out_.line("if ({}) return {};  // {}", text(condition), api("ErrorInvalidValue"), comment_text(message));
  }
  std::string failure_cell() const override { return "failure"; }

  void start_kernel(const Kernel& lowering, const Launched& made, const std::vector<std::string>& arguments) override {
    const kernel::Function& function = made.function;
    const std::string kernel = fmt::format(fmt::runtime(unit_.dialect().kernel_as),
                                           fmt::format("{}_kernels::{}", file_name(unit_.function), function.name));
    can_fail_ = can_fail_ || lowering.can_fail();
    out_.open("{{");
    pack_arguments(lowering, arguments);
    if (function.shared_bytes > unit_.dialect().usual_shared_bytes)
      run_call(fmt::format("{}({}, {}, {})", api("FuncSetAttribute"), kernel,
                           api("FuncAttributeMaxDynamicSharedMemorySize"), function.shared_bytes));
    out_.line("const int64_t blocks = {};", made.blocks);
    out_.line("if (blocks > INT32_MAX) return {};", api("ErrorInvalidConfiguration"));
    out_.open("if (blocks > 0) {{");
    run_call(fmt::format("{}({}, dim3(static_cast<unsigned>(blocks)), dim3({}), args, {}, stream)", api("LaunchKernel"),
                         kernel, function.threads, function.shared_bytes));
    out_.close("}}");
    out_.close("}}");
  }

  bool choose_plan(PlanKernels& plan_kernels) override {
    if (!plan_kernels.open && !is_known(plan_kernels)) return false;
    plan_kernels.open = true;
    return true;
  }
  void chosen_number(const PlanKernels& plan_kernels, Value v) override {
    for (std::size_t d = 0; d < plan_kernels.data.dims().size(); ++d) {
      const Schedule::Dim& dim = plan_kernels.data.dims()[d];
      if (v != parameter_of(dim.tile) && v != parameter_of(dim.reg)) continue;
      out_.line("[[maybe_unused]] const int64_t {} = {};", unit_.name(v),
                v == parameter_of(dim.tile) ? plan_kernels.plans[0].tile[d] : plan_kernels.plans[0].reg[d]);
    }
  }
  void launch_plan(const Stm& stm, const SegOp& op, const PlanKernels& plan_kernels) override {
    const Stm planned = with_plan(stm, plan_kernels.data, plan_kernels.plans[0], unit_);
    Kernel lowering(unit_, planned);
    Launched made = lower_kernel(lowering, op);
    made.function.resident = plan_kernels.resident[0];
    if (!lowering.scratch().empty()) unsupported(stm.location, "memory of threads in a tiled contraction");
    std::vector<std::string> arguments = arguments_of(lowering);
    if (lowering.can_fail()) arguments.push_back(failure_cell());
    out_.line("");
    start_kernel(lowering, made, arguments);
    describe(plan_kernels, made.function, table_.name(stm.pattern.front()));
    add_info(made.function, stm);
    result_.kernels.push_back(std::move(made.function));
  }

  // The contraction, how its operands lie, and its plan.
  void describe(const PlanKernels& plan_kernels, const kernel::Function& function, const std::string& result) {
    const PlanData& data = plan_kernels.data;
    const apl_plan& plan = plan_kernels.plans[0];
    std::vector<std::string> dims, space, reduced, operands, layouts, numbers;
    for (const Schedule::Dim& dim : data.dims()) {
      const Value tile = parameter_of(dim.tile);
      std::string name = tile ? apl::parameter_name(unit_.function, tile) : text(dim.size);
      if (tile) name = name.substr(name.rfind('.') + 3);  // "mm.T_a" is of a
      dims.push_back(name);
      (dims.size() <= data.space_rank ? space : reduced).push_back(name);
    }
    for (const Schedule::Operand& operand : data.schedule.operands) {
      std::vector<std::string> along, strides;
      for (std::size_t d = 0; d < dims.size(); ++d) {
        if (operand.strides[d] == Poly(0)) continue;
        along.push_back(dims[d]);
        strides.push_back(fmt::format("{} by {}", dims[d], text(operand.strides[d])));
      }
      operands.push_back(fmt::format("{}[{}]", operand.name, fmt::join(along, ", ")));
      layouts.push_back(fmt::format("{}: {}", operand.name, fmt::join(strides, ", ")));
    }
    for (std::size_t d = 0; d < dims.size(); ++d) {
      if (d >= data.space_rank) {
        numbers.push_back(fmt::format("{}: {} deep", dims[d], plan.tile[d]));
      } else if (parameter_of(data.dims()[d].tile)) {
        numbers.push_back(fmt::format("{}: {} threads x {} registers", dims[d], plan.tile[d], plan.reg[d]));
      }
    }
    comments_.push_back(fmt::format("{}: {}[{}] from {}, reduced over {}", function.name, result,
                                    fmt::join(space, ", "), fmt::join(operands, ", "), fmt::join(reduced, ", ")));
    comments_.push_back(fmt::format("  elements apart: {}", fmt::join(layouts, "; ")));
    comments_.push_back(fmt::format("  plan for {}: {}{}", device_.empty() ? unit_.target.device : device_,
                                    fmt::join(numbers, "; "),
                                    plan.stages > 0 ? fmt::format("; {} stages", plan.stages) : ""));
    comments_.push_back(
        fmt::format("  a block has {} threads and {} bytes of shared memory", function.threads, function.shared_bytes));
  }

  std::string device_;
  std::vector<std::string> results_;
  std::map<Value, std::string> result_of_;  // the caller's memory, by the block that it stands for
  std::vector<std::string> comments_;
  bool has_temporaries_ = false, can_fail_ = false;
};

// Where a word starts with `what`; not inside of a longer name.
std::size_t find_word(const std::string& text, std::string_view what, std::size_t from = 0) {
  const auto is_inside = [&](std::size_t at) {
    return at > 0 && (std::isalnum(static_cast<unsigned char>(text[at - 1])) != 0 || text[at - 1] == '_');
  };
  std::size_t at = text.find(what, from);
  while (at != std::string::npos && is_inside(at)) at = text.find(what, at + 1);
  return at;
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = find_word(text, from); at != std::string::npos; at = find_word(text, from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

// The dialect's own words instead of our macros.
std::string spelled_out(std::string text, const Dialect& dialect) {
  for (std::size_t at = find_word(text, "APL_KERNEL("); at != std::string::npos;
       at = find_word(text, "APL_KERNEL(", at)) {
    const std::size_t end = text.find(')', at);
    std::string bounds = text.substr(at + 11, end - at - 11);
    if (!dialect.bounds_have_blocks) bounds.resize(std::min(bounds.size(), bounds.find(',')));
    text.replace(at, text.find("void ", end) + 5 - at, fmt::format("__global__ void __launch_bounds__({}) ", bounds));
  }
  for (std::size_t at = find_word(text, "APL_EXPORT("); at != std::string::npos; at = find_word(text, "APL_EXPORT("))
    text.erase(at, text.find('\n', at) + 1 - at);
  for (std::size_t at = find_word(text, "APL_UNROLL_BY("); at != std::string::npos;
       at = find_word(text, "APL_UNROLL_BY(", at)) {
    text[text.find(')', at)] = ' ';
    text.replace(at, 14, "#pragma unroll ");
  }
  text = replaced(std::move(text), "APL_UNROLL", "#pragma unroll");
  return text;
}

// The functions of index arithmetic that host code uses.
std::string host_functions(const std::string& host, Location location) {
  static constexpr std::pair<std::string_view, std::string_view> kKnown[] = {
      {"apl_floor_div", "inline int64_t host_floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }"},
      {"apl_ceil_div", "inline int64_t host_ceil_div(int64_t a, int64_t b) { return a / b + (a % b > 0); }"},
      {"apl_index_min", "inline int64_t host_index_min(int64_t a, int64_t b) { return b < a ? b : a; }"},
      {"apl_index_max", "inline int64_t host_index_max(int64_t a, int64_t b) { return a < b ? b : a; }"},
      {"apl_bytes_of",
       "// The bytes of an array, or -1 if it has a negative size or more elements than there can be.\n"
       "inline int64_t host_bytes_of(int64_t width, const int64_t *shape, int rank) {\n"
       "  int64_t count = 1;\n"
       "  for (int d = 0; d < rank; ++d) {\n"
       "    if (shape[d] < 0) return -1;\n"
       "    if (shape[d] == 0) width = 0;\n"
       "  }\n"
       "  for (int d = 0; d < rank && width != 0; ++d) {\n"
       "    if (shape[d] > (int64_t{1} << 48) / count) return -1;\n"
       "    count *= shape[d];\n"
       "  }\n"
       "  return count * width;\n"
       "}"},
  };
  std::string result, rest = host;
  for (const auto& [name, text] : kKnown) {
    if (find_word(host, fmt::format("{}(", name)) != std::string::npos) result += std::string(text) + "\n";
    rest = replaced(std::move(rest), fmt::format("{}(", name), "(");
  }
  if (const std::size_t other = find_word(rest, "apl_"); other != std::string::npos)
    unsupported(location, fmt::format("a kernel file whose host code computes with {}",
                                      rest.substr(other, rest.find('(', other) - other)));
  return result;
}

// The function, with what it calls.
std::string host_text(const PlainHost& lowering, const apl::Function& function, const Dialect& dialect,
                      std::string text) {
  const std::string name = file_name(function);
  std::string helpers = host_functions(text, function.location);
  std::string uses;
  for (const char* helper : {"floor_div", "ceil_div", "index_min", "index_max", "bytes_of"}) {
    const std::string called = fmt::format("apl_{}(", helper);
    if (find_word(text, called) == std::string::npos) continue;
    text = replaced(std::move(text), called, fmt::format("host_{}(", helper));
    uses += fmt::format("  using {}_kernels::host_{};\n", name, helper);
  }
  text.insert(text.find("{\n") + 2, uses);
  Writer out;
  if (lowering.has_temporaries() || !helpers.empty()) {
    out.line("namespace {}_kernels {{", name);
    if (lowering.has_temporaries()) {
      out.open("struct release_at_end {{");
      out.line("void **data;");
      out.line("{}Stream_t stream;", dialect.api);
      out.open("~release_at_end() {{");
      out.line("if (*data != NULL) {}FreeAsync(*data, stream);", dialect.api);
      out.close("}}");
      out.close("}};");
    }
    out.raw(helpers);
    out.line("}}  // namespace {}_kernels", name);
    out.line("");
  }
  out.line("// Sizes, arguments and results as in the source; arrays are dense, row-major, in device memory{}.",
           std::ranges::any_of(function.results, [](const Type& t) { return t.is_scalar(); })
               ? ", scalar results in the host's"
               : "");
  out.raw(text);
  return out.take();
}

KernelFile kernel_file(const Module& module, const apl::Function& function, const Target& target,
                       const CodegenOptions& options) {
  FileScope scope(module);
  Unit unit(function, target, options.parameters, scope);
  PlainHost lowering(unit, options);
  HostText made = lowering.run_file();
  const std::string name = file_name(function);
  KernelFile file;
  for (const kernel::Function& one : made.kernels) file.kernels += kernel::print(one, unit.dialect()) + "\n";
  file.host = host_text(lowering, function, unit.dialect(), std::move(made.text));

  Writer out;
  out.line("// {} of {}, made by aplc{}. Nothing else is needed.", comment_text(function.entry->name),
           module.file.empty() ? "a module" : comment_text(module.file),
           function.location ? fmt::format(" from line {}", function.location.line) : "");
  for (const std::string& comment : lowering.comments()) out.line("// {}", comment_text(comment));
  if (lowering.can_fail()) {
    out.line(
        "// `failure` is 104 bytes of device memory, 0 before the call: a number of 32 bits that is not 0 when a "
        "check");
    out.line("// has failed, then the number of the first one that did:");
    for (std::size_t k = 0; k < scope.locations.size(); ++k) {
      const CheckLocation& check = scope.locations[k];
      if (check.message.empty()) continue;
      std::string lines = std::to_string(check.location.line);
      for (int call = check.call; call != 0; call = scope.locations[static_cast<std::size_t>(call) - 1].call)
        lines +=
            fmt::format(", called from line {}", scope.locations[static_cast<std::size_t>(call) - 1].location.line);
      out.line("//   {}: line {}: {}", k, lines, comment_text(check.message));
    }
  }
  out.line("#include <{}>", unit.dialect().header);
  if (file.host.find("__half") != std::string::npos) out.line("#include <{}>", unit.dialect().half_header);
  out.raw("#include <math.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <stdlib.h>\n#include <string.h>\n\n");
  out.line("namespace {}_kernels {{", name);
  out.line("");
  const std::string used = device_subset(device_header_text(), file.kernels, unit.dialect());
  std::string device;
  for (std::size_t at = 0; at < used.size();) {
    // The macros that are spelled out below.
    const std::size_t end = used.find('\n', at) + 1;
    const std::string line = used.substr(at, end - at);
    const bool is_ours = line.starts_with("#define APL_DEVICE") || line.starts_with("#define APL_UNROLL") ||
                         line.starts_with("#define APL_KERNEL") || line.starts_with("#define APL_EXPORT") ||
                         line.starts_with("// Threads of a block");
    if (!is_ours) device += line;
    at = end;
  }
  out.raw(replaced(std::move(device), "APL_DEVICE", "__device__ __forceinline__"));
  out.line("");
  out.raw(spelled_out(file.kernels, unit.dialect()));
  out.line("}}  // namespace {}_kernels", name);
  out.line("");
  out.raw(file.host);
  file.text = out.take();
  return file;
}

}  // namespace
}  // namespace apl::lower

namespace apl {

Result<KernelFile> generate_kernel_file(const Module& module, std::string_view entry, const CodegenOptions& options,
                                        const Target& target) {
  if (module.stage != Stage::memory)
    return make_error(Code::command_bad_pipeline, {}, "code generation wants a module at the memory stage");
  std::vector<std::string> names;
  const Function* found = nullptr;
  for (const FunctionPtr& function : module.functions) {
    if (!function->entry) continue;
    names.push_back(function->entry->name);
    if (entry.empty() || entry == names.back()) found = function.get();
  }
  if (!found || (entry.empty() && names.size() > 1))
    return make_error(
        Code::command_bad_argument, {},
        fmt::format("{}; there are: {}", entry.empty() ? "an entry is wanted" : fmt::format("no entry `{}`", entry),
                    fmt::join(names, ", ")));
  CodegenOptions one = options;
  one.one_plan = true;
  try {
    return lower::kernel_file(module, *found, target, one);
  } catch (const lower::Unsupported& stop) {
    return stop.diagnostic;
  }
}

}  // namespace apl
