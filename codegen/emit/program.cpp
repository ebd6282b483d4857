// The program's text: headers, locations, kernels, entries.
#include "codegen/codegen.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "codegen/kernel/c_string.h"
#include "codegen/kernel/writer.h"
#include "codegen/lower/lower.h"
#include "ir/sparse_arguments.h"
#include "runtime/names.h"

namespace apl {

Result<ProgramText> generate(const Module& module, Target target, const CodegenOptions& options) {
  return lower::generate_edited(module, target, options, {});
}

Result<ProgramText> lower::generate_edited(const Module& module, Target target, const CodegenOptions& options,
                                           const KernelEdit& edit) {
  if (module.stage != Stage::memory)
    return make_error(Code::command_bad_pipeline, {}, "code generation wants a module at the memory stage");
  ProgramText program;
  lower::FileScope file(module);
  file.proxy = options.proxy;
  std::string kernels, entries;
  std::vector<std::pair<std::string, std::string>> lazy_kernels;  // kernels that are compiled when they are chosen
  const Dialect& dialect = *target.dialect;
  std::string functions, called;
  try {
    const auto lower_host = [&](const apl::Function& function) {
      lower::Unit unit(function, target, options.parameters, file);
      lower::HostText text = lower::lower_host(unit, options);
      for (kernel::Function& made : text.kernels) {
        if (edit) edit(made);
        kernels += kernel::print(made, dialect) + "\n";
      }
      for (kernel::Function& made : text.lazy_kernels) {
        if (edit) edit(made);
        lazy_kernels.emplace_back(made.name, kernel::print(made, dialect) + "\n");
      }
      (function.entry ? entries : functions) += text.declarations + text.text + "\n";
      // For whoever calls the entry with dense matrices (ir/sparse_arguments.h).
      if (const SoaInterface sparse = soa_interface(function); function.entry && !sparse.empty())
        entries += fmt::format("APL_PROGRAM const char apl_operands_{}[] = {};\n\n", symbol_part(function.entry->name),
                               c_string(sparse.to_text()));
      program.kernel_infos.insert(program.kernel_infos.end(), text.infos.begin(), text.infos.end());
      program.parameters.insert(program.parameters.end(), text.parameters.begin(), text.parameters.end());
      program.has_plans = program.has_plans || text.has_plans;
    };
    for (const apl::FunctionPtr& function : module.functions)
      if (function->is_entry()) lower_host(*function);
    // Constants that they read, and those that these read.
    for (std::size_t k = 0; k < file.constants.size(); ++k) lower_host(*file.functions.at(file.constants[k]));
    // What they call, and what that calls.
    for (std::size_t k = 0; k < file.host_order.size(); ++k) lower_host(*file.functions.at(file.host_order[k]));
    std::string prototypes;
    for (const std::string& name : file.host_order)
      prototypes += fmt::format(
          "static int {}(struct apl_context *ctx, const struct apl_value *inputs, struct apl_value *outputs);\n",
          file.host_names.at(name));
    if (!prototypes.empty()) entries = prototypes + "\n" + functions + entries;
    if (!file.constants.empty()) {
      program.has_constants = true;
      Writer table;
      table.open("APL_PROGRAM const struct apl_constant apl_constants[] = {{");
      for (const std::string& name : file.constants) {
        const apl::Function& function = *file.functions.at(name);
        table.line("{{{}, {}, {}}},", c_string(name), lower::constant_function(function), function.results.size());
      }
      table.line("{{NULL, NULL, 0}},");
      table.close("}};");
      entries += table.take() + "\n";
    }
    for (const std::string& name : file.called_order) called += kernel::print(file.called.at(name), dialect) + "\n";
  } catch (const lower::Unsupported& stop) {
    return stop.diagnostic;
  }
  std::string head =
      fmt::format("// Made by aplc from {}.\n", module.file.empty() ? "a module" : comment_text(module.file));
  const std::string kernel_head = head + fmt::format("#define APL_WARP {}\n#include \"device.h\"\n\n", target.warp);
  kernels = called + kernels;
  if (target.on_device()) program.kernels = kernel_head + kernels;
  program.has_kernels = target.on_device() && !kernels.empty();
  program.has_lazy_kernels = !lazy_kernels.empty();
  Writer out;
  out.raw(head);
  out.raw("#include <stdio.h>\n#include <stdlib.h>\n\n#include \"scalar.h\"\n");
  const auto mentions = [&](const char* name) {
    return kernels.find(name) != std::string::npos || entries.find(name) != std::string::npos;
  };
  const bool has_packed = !target.on_device() && (mentions("apl_packed") || mentions("APL_SECTION"));
  const auto runs_threads = [&] {
    return std::ranges::any_of(std::array{"apl_loop(", "apl_sparse_run(", "apl_columns_at_once("}, mentions);
  };
  program.has_threads = has_packed || (!target.on_device() && runs_threads());
  if (program.has_threads) out.raw("#include \"threads.h\"\n");
  if (has_packed) out.raw("#include \"packed.h\"\n");
  out.raw("\n");
  out.open("APL_PROGRAM const struct apl_location apl_locations[] = {{");
  for (const lower::CheckLocation& check : file.locations)
    out.line("{{{}, {}, {}, {}}},", check.location.line, check.location.column, check.call,
             check.message.empty() ? "NULL" : c_string(check.message));
  out.line("{{0, 0, 0, NULL}},");
  out.close("}};");
  out.line("");
  if (!target.on_device()) {
    out.raw(kernels);
  } else {
    // Nothing is compiled where all kernels wait to be chosen.
    out.raw(fmt::format("APL_PROGRAM const char apl_kernel_text[] =\n  {};\n\n",
                        c_string(kernels.empty() && !lazy_kernels.empty() ? "" : program.kernels)));
    if (!lazy_kernels.empty()) {
      out.open("APL_PROGRAM const struct apl_lazy_kernel apl_lazy_kernels[] = {{");
      for (const auto& [name, text] : lazy_kernels)
        out.line("{{\"{}\",\n  {}}},", name, c_string(kernel_head + called + text));
      out.line("{{NULL, NULL}},");
      out.close("}};");
      out.line("");
      for (const auto& [name, text] : lazy_kernels) program.kernels += text;
    }
  }
  out.raw(entries);
  program.host = out.take();
  return program;
}

}  // namespace apl
