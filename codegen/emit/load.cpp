#include "codegen/emit/load.h"

#include "ir/print.h"
#include "ir/sparse_soa.h"

namespace apl {

namespace {

std::vector<std::string> shape_text(const Type& type, const Function& function) {
  std::vector<std::string> shape;
  for (const Poly& size : type.shape) shape.push_back(print(size, function));
  return shape;
}

EntryType entry_type(const Function& function) {
  const EntryInfo& info = *function.entry;
  EntryType entry;
  entry.name = info.name;
  std::vector<ValueType> values;  // one for each of the function's values from outside
  for (const Value param : function.given_params())
    if (const Type& type = function.type(param); !type.is_memory())
      values.push_back(
          {type.element, type.rank(), false, {}, print(Operand(param), function), shape_text(type, function)});
  // Before sparsify an attribute says what is sparse.
  if (const auto requests = sparse_requests(function))
    for (const SparseRequest& request : *requests)
      if (request.value < values.size() && info.params[request.param].fields.empty())
        values[request.value].sparse = true;
  const std::vector<SparseSoa> soas = find_soas(function);
  std::vector<std::size_t> operands;  // which value of the entry each struct of arrays is
  std::size_t at = 0;
  for (std::size_t k = 0; k < info.params.size(); ++k) {
    const std::size_t count = k < info.param_values.size() ? info.param_values[k] : 1;
    std::size_t given = count;
    bool sparse = false;
    for (const SparseSoa& soa : soas)
      if (soa.param == k) {
        operands.push_back(entry.inputs.size());
        entry.inputs.push_back({soa.element, 2, true, {}, info.params[k].name, {}});
        sparse = true;
        given = 1;
      }
    for (std::size_t v = 0; v < count && !sparse && at + v < values.size(); ++v) entry.inputs.push_back(values[at + v]);
    at += count;
    entry.params.push_back({info.params[k].name, info.params[k].type, given});
  }
  for (const Type& result : function.results) {
    if (result.is_memory()) continue;
    entry.outputs.push_back({result.element, result.rank(), false, {}, {}, shape_text(result, function)});
    if (const auto soa = soa_of_result(function, entry.outputs.size() - 1); soa && *soa < operands.size())
      entry.outputs.back().pattern = operands[*soa];
  }
  for (const EntryInfo::Result& result : info.results) entry.result_types.push_back(result.type);
  return entry;
}

}  // namespace

std::vector<EntryType> entry_types(const Module& module) {
  std::vector<EntryType> entries;
  for (const FunctionPtr& function : module.functions)
    if (function->is_entry()) entries.push_back(entry_type(*function));
  return entries;
}

Result<Program> load_program(const Module& module, ProgramOptions options, CodegenOptions codegen) {
  // C compiles all kernels at once, the others each when it is chosen.
  constexpr int kCompiled = 4, kChosen = 12;
  const bool on_device = options.backend != "c";
  if (codegen.plans == 1) codegen.plans = on_device ? kChosen : kCompiled;
  if (codegen.device.empty()) codegen.device = options.device_record;
  Target target = on_device ? cuda_target() : c_target();
  if (!codegen.device.empty())
    if (auto asked = find_target(codegen.device); asked && asked->on_device() == on_device) target = *asked;
  auto text = generate(module, target, codegen);
  if (!text) return std::move(text).error();
  options.entries = entry_types(module);
  return Program::load(text->host, options);
}

}  // namespace apl
