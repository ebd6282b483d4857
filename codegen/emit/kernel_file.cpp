#include "codegen/emit/kernel_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "codegen/emit/device_subset.h"
#include "codegen/emit/host_subset.h"
#include "codegen/emit/plain_host.h"
#include "codegen/emit/words.h"
#include "ir/sparse_soa.h"
#include "runtime/embed.h"

namespace apl::lower {
namespace {

using namespace kernel;

// Where a word starts with `what`; not inside of a longer name.
std::size_t find_word(const std::string& text, std::string_view what, std::size_t from = 0) {
  const auto is_inside = [&](std::size_t at) { return at > 0 && is_word(text[at - 1]); };
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

// What host code calls beside the header's scalar operations: calls of the runtime's API where `@` stands, which begins
// all of its names. Floats of 16 bits are here, too: f16 is the dialect's type, bf16 is its bits.
struct Helper {
  std::string_view name, text;
  bool comes_first = false;  // the header's operations call it
};
constexpr Helper kHelpers[] = {
    {"apl_from_half", "inline float apl_from_half(__half a) { return __half2float(a); }\n", true},
    {"apl_to_half", "inline __half apl_to_half(float x) { return __float2half(x); }\n", true},
    {"apl_to_bits_f16",
     "inline uint16_t apl_to_bits_f16(__half a) {\n"
     "  uint16_t bits;\n"
     "  memcpy(&bits, &a, sizeof bits);\n"
     "  return bits;\n"
     "}\n",
     true},
    {"apl_from_bits_f16",
     "inline __half apl_from_bits_f16(uint16_t bits) {\n"
     "  __half a;\n"
     "  memcpy(&a, &bits, sizeof a);\n"
     "  return a;\n"
     "}\n",
     true},
    {"apl_to_half_of_f64",
     "inline __half apl_to_half_of_f64(double x) { return apl_to_half(apl_float_to_be_rounded(x)); }\n"},
    {"apl_from_bf16",
     "inline float apl_from_bf16(uint16_t bits) { return apl_from_bits_f32(static_cast<uint32_t>(bits) << 16); }\n"},
    {"apl_to_bf16",
     "inline uint16_t apl_to_bf16(float x) {\n"
     "  const uint32_t bits = apl_to_bits_f32(x);\n"
     "  return static_cast<uint16_t>(x != x ? 0x7fc0 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);\n"
     "}\n"},
    {"apl_to_bf16_of_f64",
     "inline uint16_t apl_to_bf16_of_f64(double x) { return apl_to_bf16(apl_float_to_be_rounded(x)); }\n"},
    {"apl_floor_div", "inline int64_t host_floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }\n"},
    {"apl_ceil_div", "inline int64_t host_ceil_div(int64_t a, int64_t b) { return a / b + (a % b > 0); }\n"},
    {"apl_index_min", "inline int64_t host_index_min(int64_t a, int64_t b) { return b < a ? b : a; }\n"},
    {"apl_index_max", "inline int64_t host_index_max(int64_t a, int64_t b) { return a < b ? b : a; }\n"},
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
     "}\n"},
    {"apl_allocate",
     "// Memory for so many bytes, which may be none.\n"
     "inline @Error_t host_allocate(size_t bytes, void **data, @Stream_t stream) {\n"
     "  return bytes == 0 ? @Success : @MallocAsync(data, bytes, stream);\n"
     "}\n"},
    {"apl_reserve",
     "// Memory for so many bytes: what is there, if it suffices.\n"
     "inline @Error_t host_reserve(size_t bytes, void **data, int64_t *capacity, @Stream_t stream) {\n"
     "  if (bytes <= static_cast<size_t>(*capacity)) return @Success;\n"
     "  if (*data != NULL) @FreeAsync(*data, stream);\n"
     "  *data = NULL;\n"
     "  *capacity = 0;\n"
     "  const @Error_t status = @MallocAsync(data, bytes, stream);\n"
     "  if (status == @Success) *capacity = static_cast<int64_t>(bytes);\n"
     "  return status;\n"
     "}\n"},
    {"apl_swap",
     "inline void host_swap(void **a, int64_t *a_capacity, void **b, int64_t *b_capacity) {\n"
     "  void *const data = *a;\n"
     "  const int64_t capacity = *a_capacity;\n"
     "  *a = *b;\n"
     "  *a_capacity = *b_capacity;\n"
     "  *b = data;\n"
     "  *b_capacity = capacity;\n"
     "}\n"},
    {"apl_synchronise",
     "// Waits, as the host needs a number that kernels made; a check that failed may be why it is none.\n"
     "inline @Error_t host_synchronise(const void *failure, @Stream_t stream) {\n"
     "  int32_t failed = 0;\n"
     "  @Error_t status = @StreamSynchronize(stream);\n"
     "  if (status == @Success) status = @Memcpy(&failed, failure, sizeof failed, @MemcpyDeviceToHost);\n"
     "  return status == @Success && failed != 0 ? @ErrorInvalidValue : status;\n"
     "}\n"},
};

std::string replaced_api(std::string_view text, const Dialect& dialect) {
  std::string result;
  for (const char c : text) result += c == '@' ? std::string(dialect.api) : std::string(1, c);
  return result;
}

// Types of floats of 16 bits in host code, and what they are in the file.
constexpr std::pair<std::string_view, std::string_view> kNarrowTypes[] = {{"apl_half", "__half"},
                                                                          {"apl_bfloat", "uint16_t"}};

// The names that begin so, of which a helper or an operation of the header may be called.
std::set<std::string> names_of_ours(const std::string& text) {
  std::set<std::string> names;
  for (std::string& word : words_in(text))
    if (word.starts_with("apl_")) names.insert(std::move(word));
  for (const auto& [type, spelling] : kNarrowTypes) names.erase(std::string(type));
  return names;
}

// What host code calls: helpers, and operations of the header between those that come first and the others.
std::string called_functions(const apl::Function& function, const Dialect& dialect, std::set<std::string> names) {
  std::set<std::string> operations, known;
  std::string operations_text;
  while (known != names) {
    known = names;
    for (const std::string& name : known) {
      const auto* helper = std::ranges::find(kHelpers, name, &Helper::name);
      if (helper == std::end(kHelpers)) {
        operations.insert(name);
      } else {
        names.merge(names_of_ours(std::string(helper->text)));
      }
    }
    operations_text = host_subset(scalar_header_text(), operations);
    for (const std::string& name : names_of_ours(operations_text))
      if (std::ranges::find(kHelpers, name, &Helper::name) != std::end(kHelpers)) names.insert(name);
  }
  std::string first, last;
  for (const Helper& helper : kHelpers)
    if (names.contains(std::string(helper.name)))
      (helper.comes_first ? first : last) += replaced_api(helper.text, dialect);
  std::string text = first + operations_text + last;
  for (const std::string& called : operations)
    if (find_word(text, called + "(") == std::string::npos)
      unsupported(function.location, fmt::format("a kernel file whose host code computes with {}", called));
  return text;
}

// Which parameters are a sparse operand's.
std::vector<std::string> sparse_comments(const apl::Function& function) {
  std::vector<std::string> lines;
  for (const SparseSoa& soa : find_soas(function)) {
    std::vector<std::string_view> fields;
    for (const SoaField field : soa.fields)
      if (field != SoaField::shape) fields.push_back(to_text(field));
    lines.push_back(fmt::format("{0} is sparse: {0}_{1}.", function.entry->params[soa.param].name,
                                fmt::join(fields, fmt::format(", {}_", function.entry->params[soa.param].name))));
  }
  return lines;
}

// The function, with what it calls.
std::string host_text(const PlainHost& lowering, const apl::Function& function, const Dialect& dialect,
                      std::string text) {
  const std::string name = name_in_kernel_file(function);
  if (!lowering.can_fail())
    text = replaced(std::move(text), "apl_synchronise(failure, stream)",
                    fmt::format("{}StreamSynchronize(stream)", dialect.api));
  const std::set<std::string> called = names_of_ours(text);
  std::string uses;
  for (const std::string& one : called) uses += fmt::format("  using {}_kernels::host_{};\n", name, one.substr(4));
  std::string helpers = called_functions(function, dialect, called);
  for (const auto& [type, spelling] : kNarrowTypes) {
    helpers = replaced(std::move(helpers), type, spelling);
    text = replaced(std::move(text), type, spelling);
  }
  for (const std::string& ours : names_of_ours(helpers + text)) {
    helpers = replaced(std::move(helpers), ours, "host_" + ours.substr(4));
    text = replaced(std::move(text), ours, "host_" + ours.substr(4));
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
  for (const std::string& line : sparse_comments(function)) out.line("// {}", line);
  if (lowering.allocates_results())
    out.line("// Results with a shape of their own are allocated: their memory is the caller's, for {}FreeAsync.",
             dialect.api);
  out.raw(text);
  return out.take();
}

// What the kernels of the chosen plans spill, by kernel; none: nobody was asked.
using Spilled = std::optional<std::map<std::string, int>>;

std::string spill_comment(const PlainHost::Contraction& contraction, const Spilled& spilled) {
  if (!spilled) return "  no compiler was asked whether its registers spill";
  const auto found = spilled->find(contraction.kernel);
  const int bytes = found == spilled->end() ? 0 : found->second;
  const std::vector<int>& over = contraction.passed_over;
  if (bytes > 0) return fmt::format("  its kernel spills {} bytes a thread, and so do those of all other plans", bytes);
  if (over.empty()) return "  no registers spill, by ptxas";
  return fmt::format("  no registers spill, by ptxas, as {} that the model prefers do: {} bytes a thread",
                     over.size() == 1 ? "those of a plan" : fmt::format("those of {} plans", over.size()),
                     fmt::join(over, ", "));
}

struct Made {
  KernelFile file;
  std::vector<PlainHost::Contraction> contractions;
};

Made kernel_file(const Module& module, const apl::Function& function, const Target& target,
                 const CodegenOptions& options, const Spilled& spilled) {
  FileScope scope(module, &function);
  Unit unit(function, target, options.parameters, scope);
  PlainHost lowering(unit, options);
  HostText made = lowering.run_file();
  const std::string name = name_in_kernel_file(function);
  KernelFile file;
  for (const kernel::Function& one : made.kernels) file.kernels += kernel::print(one, unit.dialect()) + "\n";
  file.host = host_text(lowering, function, unit.dialect(), std::move(made.text));

  Writer out;
  out.line("// {} of {}, made by aplc{}. Nothing else is needed.", comment_text(function.entry->name),
           module.file.empty() ? "a module" : comment_text(module.file),
           function.location ? fmt::format(" from line {}", function.location.line) : "");
  for (const PlainHost::Contraction& contraction : lowering.contractions()) {
    for (const std::string& comment : contraction.comments) out.line("// {}", comment_text(comment));
    out.line("// {}", spill_comment(contraction, spilled));
  }
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
                         line.starts_with("#define APL_PRAGMA") || line.starts_with("#define APL_KERNEL") ||
                         line.starts_with("#define APL_EXPORT") || line.starts_with("// Threads of a block");
    if (!is_ours) device += line;
    at = end;
  }
  out.raw(replaced(spelled_out(std::move(device), unit.dialect()), "APL_DEVICE", "__device__ __forceinline__"));
  out.line("");
  out.raw(spelled_out(file.kernels, unit.dialect()));
  out.line("}}  // namespace {}_kernels", name);
  out.line("");
  out.raw(file.host);
  file.text = out.take();
  return {std::move(file), lowering.contractions()};
}

// The file with the best plans whose kernels do not spill.
Result<KernelFile> checked_file(const Module& module, const apl::Function& function, const Target& target,
                                CodegenOptions options, const SpillCheck& check) {
  std::set<std::string> hopeless;  // contractions of which all plans spill: they have the best one
  for (;;) {
    Made made = kernel_file(module, function, target, options, std::nullopt);
    if (!check || made.contractions.empty()) return std::move(made.file);
    Result<std::map<std::string, int>> spilled = check(made.file.kernels);
    if (!spilled && spilled.error().code == Code::unsupported_backend) return std::move(made.file);
    if (!spilled) return std::move(spilled).error();
    bool again = false;
    for (const PlainHost::Contraction& contraction : made.contractions) {
      const auto found = spilled->find(contraction.kernel);
      if (found == spilled->end() || found->second == 0 || hopeless.contains(contraction.name)) continue;
      std::vector<int>& over = options.passed_over[contraction.name];
      over.push_back(found->second);
      again = true;
      if (contraction.has_next) continue;
      hopeless.insert(contraction.name);
      over.clear();
    }
    if (!again) return kernel_file(module, function, target, options, std::move(*spilled)).file;
  }
}

}  // namespace
}  // namespace apl::lower

namespace apl {

std::string with_calls_expanded(std::string pipeline) {
  constexpr std::string_view kStep = "inline,";
  for (std::size_t at = pipeline.find(kStep); at != std::string::npos; at = pipeline.find(kStep, at + 1))
    if (at == 0 || pipeline[at - 1] == ',') return pipeline.replace(at, kStep.size(), "inline{all},");
  return pipeline;
}

Result<KernelFile> generate_kernel_file(const Module& module, std::string_view entry, const CodegenOptions& options,
                                        const Target& target, const SpillCheck& check) {
  if (module.stage != Stage::memory)
    return make_error(Code::command_bad_pipeline, {}, "code generation wants a module at the memory stage");
  std::vector<std::string> names;
  const Function* found = nullptr;
  for (const FunctionPtr& function : module.functions) {
    if (!function->is_entry()) continue;
    names.push_back(function->entry->name);
    if (entry.empty() || entry == names.back()) found = function.get();
  }
  if (!found || (entry.empty() && names.size() > 1))
    return make_error(
        Code::command_bad_argument, {},
        fmt::format("{}; there are: {}", entry.empty() ? "an entry is wanted" : fmt::format("no entry `{}`", entry),
                    fmt::join(names, ", ")));
  if (!found->entry->constants.empty())
    return make_error(Code::command_bad_pipeline, found->location,
                      fmt::format("a kernel file has no context that could keep the constant `{}`: the pipeline wants "
                                  "inline{{all}}",
                                  found->entry->constants.front().function));
  CodegenOptions one = options;
  one.one_plan = true;
  try {
    return lower::checked_file(module, *found, target, one, check);
  } catch (const lower::Unsupported& stop) {
    return stop.diagnostic;
  }
}

}  // namespace apl
