// The library's one file: the runtime's headers one behind the other, the program, tables, and the C API.
#include "codegen/emit/library.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <initializer_list>
#include <set>

#include "codegen/emit/library/api_text.h"
#include "codegen/kernel/c_string.h"
#include "codegen/kernel/writer.h"
#include "codegen/sparse/products.h"
#include "ir/walk.h"
#include "machine/target/records.h"
#include "machine/texts.h"
#include "runtime/embed.h"
#include "runtime/names.h"

namespace apl {
namespace {

// A header's text without what only separate files need: its guard, and includes of our own.
std::string inlined(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  std::size_t guard = lines.size(), last = lines.size();
  for (std::size_t k = 0; k + 1 < lines.size() && guard == lines.size(); ++k)
    if (lines[k].starts_with("#ifndef ") && lines[k + 1] == fmt::format("#define {}", lines[k].substr(8))) guard = k;
  for (std::size_t k = lines.size(); k-- > 0 && last == lines.size();)
    if (lines[k] == "#endif") last = k;
  std::string result;
  for (std::size_t k = 0; k < lines.size(); ++k) {
    const bool is_guard = guard < lines.size() && (k == guard || k == guard + 1 || k == last);
    if (is_guard || lines[k].starts_with("#include \"")) continue;
    result += lines[k];
    result += '\n';
  }
  while (result.ends_with("\n\n")) result.pop_back();
  return result + "\n";
}

using Texts = std::initializer_list<std::string_view (*)()>;
void add(std::string& out, Texts texts) {
  for (const auto& text : texts) out += inlined(text()) + "\n";
}

std::string identifier(std::string name) {
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
}

// Between the quotes of an #include nothing can be escaped.
bool can_be_included(std::string_view name) {
  return std::ranges::none_of(
      name, [](unsigned char c) { return c < 0x20 || c == 0x7f || c == '"' || c == '\\' || c == '?'; });
}

std::string header_text(const library::Api& api, const LibraryOptions& options, const std::string& made_by) {
  const std::string guard = "FUTHARK_" + identifier(options.name) + "_H";
  std::string out = made_by + fmt::format("#ifndef {0}\n#define {0}\n\n", guard);
  out += "#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <stdio.h>\n\n";
  out += "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n";
  out += fmt::format("#define FUTHARK_BACKEND_{}\n", api.target.dialect->name);
  out += "#define FUTHARK_SUCCESS 0\n#define FUTHARK_PROGRAM_ERROR 2\n#define FUTHARK_OUT_OF_MEMORY 3\n\n";
  out += library_api_text();
  if (api.target.on_device()) out += library_api_cuda_text();
  out += "\n" + library::api_declarations(api);
  return out + "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n";
}

constexpr std::string_view kOfProducts = "\n# Of the model of sparse", kOfSearch = "\n# Of the search for sparse";

// A record with what is of sparse products, or without it.
std::string record_for(std::string text, bool has_products) {
  return text.substr(0, text.find(has_products ? kOfSearch : kOfProducts));
}

// A machine's own record may say nothing of sparse products: then those of any GPU count.
std::string with_products(std::string text) {
  if (text.find("sparse_fitted_on") != std::string::npos) return text;
  const std::string any = record_for(*device_record_text("gpu"), true);
  return text + any.substr(any.find(kOfProducts)) + "\n";
}

// All machines of the dialect.
std::string device_records(const Dialect& dialect, bool has_products) {
  std::string out = "static const struct apl_device_record apl_device_records[] = {\n";
  for (const std::string_view name : device_names()) {
    if (find_target(std::string(name))->dialect != &dialect) continue;
    const std::string text = *device_record_text(std::string(name));
    out += fmt::format("  {{\"{}\",\n  {}}},\n", name,
                       c_string(record_for(has_products ? with_products(text) : text, has_products)));
  }
  return out + "};\n\n";
}

// Numbers wrap with and without a sign: one kernel for both.
std::string kernel_type(ScalarType type, bool is_wide) {
  std::string name(apl::to_text(type));
  if (name[0] == 'u') name[0] = 'i';
  for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return is_wide ? name + "_WIDE" : name;
}

// The types of products over non-zeros that the runtime has kernels for, as these are called.
std::set<std::string> types_of_products(const Module& module) {
  std::set<std::string> types;
  const auto add_type = [&](const auto& found) {
    if (found) types.insert(kernel_type(found->type, found->is_wide));
  };
  const auto look = [&](const Function& function, const Stm& stm) {
    add_type(lower::find_host_product(stm, function));
    add_type(lower::find_host_sddmm(stm, function));
  };
  for (const FunctionPtr& function : module.functions)
    if (function->entry && function->body) for_each_stm(*function->body, [&](const Stm& stm) { look(*function, stm); });
  return types;
}

// A text in which headers that are there several times, once a type, stand where they are included; without the types
// that nobody wants.
std::string with_types(std::string_view text, const std::set<std::string>& types) {
  static constexpr std::pair<std::string_view, std::string_view (*)()> kParts[] = {
      {"cpu_types.h", sparse_cpu_types_header_text},
      {"cpu_kernels.h", sparse_cpu_kernels_header_text},
      {"cpu_sddmm.h", sparse_cpu_sddmm_header_text}};
  constexpr std::string_view kWants = "#if APL_SPARSE_WANTS_", kInclude = "#include \"runtime/sparse/";
  std::string result;
  int unwanted = 0;  // conditions that are open since one was not met
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (unwanted > 0 || (line.starts_with(kWants) && !types.contains(std::string(line.substr(kWants.size()))))) {
      unwanted += line.starts_with("#if") ? 1 : line.starts_with("#endif") ? -1 : 0;
      continue;
    }
    const auto* part = std::ranges::find_if(kParts, [&](const auto& p) {
      return line.starts_with(kInclude) && line.substr(kInclude.size()) == std::string(p.first) + "\"";
    });
    if (part != std::end(kParts))
      result += with_types(part->second(), types);
    else
      result += std::string(line) + "\n";
  }
  return result;
}

std::string products_text(const std::set<std::string>& types) {
  std::string out = "#define APL_SPARSE_SOME_TYPES\n";
  for (const std::string& type : types) out += fmt::format("#define APL_SPARSE_WANTS_{} 1\n", type);
  // These may fuse a product with a sum.
  out += "#pragma GCC diagnostic ignored \"-Wpsabi\"\n#if defined(__GNUC__) && !defined(__clang__)\n";
  out +=
      "#pragma GCC diagnostic ignored \"-Wmaybe-uninitialized\"\n#pragma GCC push_options\n#pragma GCC "
      "optimize(\"fp-contract=fast\")\n#endif\n\n";
  add(out, {sparse_cpu_header_text, sparse_cpu_operands_header_text, sparse_group_code_text, sparse_builtin_code_text,
            sparse_pack_code_text, sparse_cpu_pack_code_text});
  out += inlined(with_types(sparse_cpu_code_text(), types)) + "\n";
  add(out, {sparse_cpu_operands_code_text});
  return out + "#if defined(__GNUC__) && !defined(__clang__)\n#pragma GCC pop_options\n#endif\n\n";
}

// Kernels of sparse products for a GPU, as text, and what packs operands for them and chooses.
std::string device_products_text() {
  std::string out;
  add(out, {sparse_group_code_text, sparse_device_operand_header_text, sparse_device_kernel_header_text,
            sparse_operand_arrays_header_text, sparse_device_kernel_code_text, sparse_device_cost_code_text,
            sparse_device_pack_code_text, sparse_reorder_code_text, sparse_device_resolve_code_text,
            sparse_device_spmm_code_text, sparse_device_sddmm_code_text, sparse_device_sddmm_pack_code_text,
            sparse_device_operand_code_text});
  out += "static const char* apl_sparse_kernel_part(enum apl_sparse_text part) {\n";
  out += "  static const char* const parts[] = {\n";
  // In the order of the numbers.
  for (const auto& text :
       {device_warp_text, sparse_numbers_text, sparse_rows_text, sparse_windows_text, sparse_staged_text,
        sparse_spmm_text, sparse_sddmm_text, sparse_values_text, sparse_join_text, sparse_plain_windows_text})
    out += fmt::format("    {},\n", c_string(text()));
  out += "  };\n  return parts[part];\n}\n\n";
  add(out, {library_products_text});
  return out;
}

}  // namespace

Result<LibraryText> generate_library(const Module& module, Target target, const CodegenOptions& codegen,
                                     const LibraryOptions& options) {
  for (const FunctionPtr& function : module.functions)
    for (const SparseSoa& soa : find_soas(*function))
      if (has_tiles(soa.fields))
        return make_error(Code::unsupported_construct, function->location,
                          fmt::format("libraries, executables and servers do not make tiles: `{}` of the entry `{}` "
                                      "wants them.",
                                      function->entry->params[soa.param].name, function->entry->name));
  if (!target.dialect->embeds)
    return make_error(Code::unsupported_backend, {},
                      fmt::format("libraries, executables and servers for {} are not made: kernels are, see `aplc {}`",
                                  target.dialect->title, target.dialect->name));
  auto program = generate(module, target, codegen);
  if (!program) return std::move(program).error();
  std::string device;
  if (!codegen.device.empty() || !target.on_device()) {
    auto text = device_record_text(codegen.device.empty() ? "cpu" : codegen.device);
    if (!text) return std::move(text).error();
    device = std::move(*text);
  }
  library::Api api{target, {}, {}, program->parameters};
  for (const FunctionPtr& function : module.functions)
    for (const SparseSoa& soa : find_soas(*function)) api.types.want(soa);
  for (const FunctionPtr& function : module.functions)
    if (function->is_entry()) api.entries.push_back(library::api_entry(*function, api.types));

  const std::string made_by =
      fmt::format("// Made by aplc from {}.\n", module.file.empty() ? "a module" : comment_text(module.file));
  LibraryText made;
  made.header = header_text(api, options, made_by);
  made.manifest = library::api_manifest(api, options.version);

  std::string& out = made.source;
  const bool is_cuda = target.on_device();
  out = made_by;
  out += fmt::format("//   cc -O3{} -c {}.c\n", is_cuda ? "" : " -fopenmp", comment_text(options.name));
  out += fmt::format("// and -lm{} for the linker. Signed integers wrap: clang wants -fwrapv for that.\n",
                     is_cuda ? ", -ldl, -lpthread" : "");
  out += "#if defined(__GNUC__) && !defined(__clang__)\n";
  out += "#pragma GCC optimize(\"wrapv\", \"no-math-errno\", \"no-trapping-math\", \"fp-contract=off\")\n";
  out += "#endif\n#pragma GCC diagnostic ignored \"-Wunused-function\"\n";
  // Who includes the file may compile without OpenMP, and have asked for all of the C library.
  out += "#ifndef _OPENMP\n#pragma GCC diagnostic ignored \"-Wunknown-pragmas\"\n#endif\n";
  out += "#ifndef _GNU_SOURCE\n#define _GNU_SOURCE\n#endif\n\n";
  out += options.artifact == Artifact::library && !options.one_file && can_be_included(options.name)
             ? fmt::format("#include \"{}.h\"\n\n", options.name)
             : made.header + "\n";
  out += "// ---- the runtime: none of it is seen outside of this file ----\n\n";
  // Kernels are chosen for a device, too.
  const bool has_device_products = is_cuda && program->host.find("backend->sparse_") != std::string::npos;
  const bool has_plans = program->has_plans || has_device_products;
  if (has_device_products && !device.empty()) device = with_products(std::move(device));
  out += fmt::format("#define APL_PROGRAM static\n#define APL_PLAN_API static\n#define APL_HAS_PLANS {}\n\n",
                     has_plans ? 1 : 0);
  // A program in process has the pool of the process.
  if (program->has_threads) out += "#define APL_WITH_THREAD_POOL 1\n\n";
  add(out, {context_header_text, scalar_header_text, threads_header_text, packed_header_text});
  if (has_plans)
    add(out, {plan_shape_header_text, plan_shape_text, plan_cost_text, plan_enumerate_text, plan_select_text,
              plan_variant_text, plan_device_text});
  // Of every target: a plan is held against its matrix even where no kernel follows it.
  const bool has_sparse = std::ranges::any_of(api.types.all(), [](const auto& type) { return !type.soa.empty(); });
  out += fmt::format("#define APL_HAS_SPARSE_TYPES {}\n#define APL_SPARSE_API static\n\n", has_sparse ? 1 : 0);
  add(out, {sparse_csr_header_text});
  if (has_sparse) add(out, {sparse_sparse_header_text, sparse_plan_code_text});
  add(out, {library_object_text, library_choose_text});
  // Where a matrix is known that the program has code for.
  const bool has_known = program->host.find("apl_known_matrix ") != std::string::npos;
  out += fmt::format("#define APL_HAS_KNOWN {}\n\n", has_known ? 1 : 0);
  if (has_known) add(out, {sparse_known_header_text, sparse_known_code_text, library_known_text});
  if (is_cuda) {
    out += fmt::format("static const char apl_device_header[] =\n  {};\n\n", c_string(device_header_text()));
    if (has_plans) out += device_records(*target.dialect, has_device_products);
    out += fmt::format("#define APL_POOL_API static\n#define APL_HAS_PRODUCTS {}\n\n", has_device_products ? 1 : 0);
    if (has_device_products) out += device_products_text();
    add(out, {cuda_functions_text, cuda_heap_text, cuda_pool_header_text, cuda_pool_text, library_nvrtc_text,
              library_cuda_text, library_cuda_context_text});
  } else {
    const std::set<std::string> types = types_of_products(module);
    out += fmt::format("#define APL_HAS_PRODUCTS {}\n\n", types.empty() ? 0 : 1);
    if (!types.empty()) out += products_text(types);
    add(out, {host_blocks_text, library_host_text});
  }
  add(out, {library_context_text, library_values_text, library_items_text, library_sums_text,
            library_sparse_values_text, library_store_text});
  if (has_sparse) add(out, {library_sparse_plan_text});
  out += "// ---- the program ----\n\n";
  out += inlined(program->host);
  // After the program, whose names may be macros of the C library's headers for threads and signals.
  if (program->has_threads) add(out, {thread_pool_text});
  out += "// ---- what it says of itself ----\n\n";
  out += library::api_tables(api);
  Writer self;
  self.open("static const struct apl_api_program apl_this_program = {{");
  self.line(".file = {},", c_string(module.file));
  self.line(".locations = apl_locations,");
  self.line(".kernels = {},", is_cuda && program->has_kernels ? "apl_kernel_text" : "NULL");
  self.line(".lazy_kernels = {},", program->has_lazy_kernels ? "apl_lazy_kernels" : "NULL");
  self.line(".device = {},", c_string(device));
  self.line(".entries = apl_entries,");
  self.line(".types = apl_types,");
  self.line(".parameters = apl_parameters,");
  self.line(".parameter_count = {},", api.parameters.size());
  self.line(".constants = {},", program->has_constants ? "apl_constants" : "NULL");
  self.close("}};");
  out += self.take();
  out += "\n// ---- the C API ----\n\n";
  out += library::api_definitions(api);
  if (options.artifact == Artifact::library) return made;
  out += "\n// ---- the program around it ----\n\n";
  add(out, {library_text_text, library_matrix_text, library_options_text});
  if (options.artifact == Artifact::server) {
    add(out, {library_server_state_text, library_server_values_text, library_server_text});
  } else {
    add(out, {library_executable_text});
  }
  return made;
}

}  // namespace apl
