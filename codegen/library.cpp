// The library's one file: the runtime's headers one behind the other, the program, tables, and the C API.
#include "codegen/library.h"

#include <fmt/format.h>

#include <functional>
#include <initializer_list>

#include "codegen/c_string.h"
#include "codegen/library/api_text.h"
#include "codegen/runtime/devices.h"
#include "codegen/runtime/embed.h"
#include "codegen/writer.h"
#include "ir/sparse_arguments.h"

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

std::string header_text(const library::Api& api, const LibraryOptions& options, const std::string& made_by) {
  const std::string guard = "FUTHARK_" + identifier(options.name) + "_H";
  std::string out = made_by + fmt::format("#ifndef {0}\n#define {0}\n\n", guard);
  out += "#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <stdio.h>\n\n";
  out += "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n";
  out += fmt::format("#define FUTHARK_BACKEND_{}\n", api.target == Target::c ? "c" : "cuda");
  out += "#define FUTHARK_SUCCESS 0\n#define FUTHARK_PROGRAM_ERROR 2\n#define FUTHARK_OUT_OF_MEMORY 3\n\n";
  out += library_api_text();
  if (api.target == Target::cuda) out += library_api_cuda_text();
  out += "\n" + library::api_declarations(api);
  return out + "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n";
}

std::string device_records() {
  std::string out = "static const struct apl_device_record apl_device_records[] = {\n";
  const std::pair<const char*, std::string_view> records[] = {{"a100", device_a100_text()},
                                                              {"h100", device_h100_text()},
                                                              {"h200", device_h200_text()},
                                                              {"gpu", device_gpu_text()}};
  for (const auto& [name, text] : records) out += fmt::format("  {{\"{}\",\n  {}}},\n", name, c_string(text));
  return out + "};\n\n";
}

}  // namespace

Result<LibraryText> generate_library(const Module& module, Target target, const CodegenOptions& codegen,
                                     const LibraryOptions& options) {
  for (const FunctionPtr& function : module.functions)
    if (function->entry && !bundle_interface(*function).empty())
      return make_error(
          Code::unsupported_construct, function->location,
          fmt::format("a library with sparse operands cannot be made yet: entry `{}`", function->entry->name));
  auto program = generate(module, target, codegen);
  if (!program) return std::move(program).error();
  std::string device;
  if (!codegen.device.empty() || target == Target::c) {
    auto text = device_record_text(codegen.device.empty() ? "cpu" : codegen.device);
    if (!text) return std::move(text).error();
    device = std::move(*text);
  }
  library::Api api{target, {}, {}, program->parameters};
  for (const FunctionPtr& function : module.functions)
    if (function->entry) api.entries.push_back(library::api_entry(*function, api.types));

  const std::string made_by = fmt::format("// Made by aplc from {}.\n", module.file.empty() ? "a module" : module.file);
  LibraryText made;
  made.header = header_text(api, options, made_by);
  made.manifest = library::api_manifest(api, options.version);

  std::string& out = made.source;
  const bool is_cuda = target == Target::cuda;
  out = made_by;
  out += fmt::format("//   cc -O3{} -c {}.c\n", is_cuda ? "" : " -fopenmp", options.name);
  out += fmt::format("// and -lm{} for the linker. Signed integers wrap: clang wants -fwrapv for that.\n",
                     is_cuda ? ", -ldl, -lpthread" : "");
  out += "#if defined(__GNUC__) && !defined(__clang__)\n";
  out += "#pragma GCC optimize(\"wrapv\", \"no-math-errno\", \"no-trapping-math\", \"fp-contract=off\")\n";
  out += "#endif\n#pragma GCC diagnostic ignored \"-Wunused-function\"\n#define _GNU_SOURCE\n\n";
  out +=
      options.artifact == Artifact::library ? fmt::format("#include \"{}.h\"\n\n", options.name) : made.header + "\n";
  out += "// ---- the runtime: none of it is seen outside of this file ----\n\n";
  out += fmt::format("#define APL_PROGRAM static\n#define APL_PLAN_API static\n#define APL_HAS_PLANS {}\n\n",
                     program->has_plans ? 1 : 0);
  add(out, {plan_header_text, context_header_text, scalar_header_text});
  if (program->has_plans)
    add(out, {plan_shape_header_text, plan_shape_text, plan_cost_text, plan_enumerate_text, plan_select_text,
              plan_variant_text, plan_device_text});
  add(out, {library_object_text, library_choose_text});
  if (is_cuda) {
    out += fmt::format("static const char apl_device_header[] =\n  {};\n\n", c_string(device_header_text()));
    if (program->has_plans) out += device_records();
    add(out, {cuda_functions_text, library_nvrtc_text, library_cuda_text, library_cuda_context_text});
  } else {
    add(out, {library_host_text});
  }
  add(out, {library_context_text, library_values_text, library_store_text});
  out += "// ---- the program ----\n\n";
  out += inlined(program->host);
  out += "// ---- what it says of itself ----\n\n";
  out += library::api_tables(api);
  Writer self;
  self.open("static const struct apl_api_program apl_this_program = {{");
  self.line(".file = {},", c_string(module.file));
  self.line(".places = apl_places,");
  self.line(".kernels = {},", is_cuda && program->has_kernels ? "apl_kernel_text" : "NULL");
  self.line(".forms = {},", program->has_forms ? "apl_kernel_forms" : "NULL");
  self.line(".device = {},", c_string(device));
  self.line(".entries = apl_entries,");
  self.line(".types = apl_types,");
  self.line(".parameters = apl_parameters,");
  self.line(".parameter_count = {},", api.parameters.size());
  self.close("}};");
  out += self.take();
  out += "\n// ---- the C API ----\n\n";
  out += library::api_definitions(api);
  if (options.artifact == Artifact::library) return made;
  out += "\n// ---- the program around it ----\n\n";
  add(out, {library_text_text, library_options_text,
            options.artifact == Artifact::server ? library_server_text : library_executable_text});
  return made;
}

}  // namespace apl
