#include "aplc/sparse/constants.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "aplc/driver.h"
#include "aplc/sparse/plans.h"
#include "ir/attributes.h"
#include "ir/sparse_soa.h"
#include "runtime/program/known_matrix.h"

namespace aplc::sparse {

std::vector<std::pair<std::string, std::size_t>> constant_operands(const apl::Function& entry) {
  std::vector<std::pair<std::string, std::size_t>> found;
  const auto names = apl::find_attribute(entry.attributes, apl::attribute::constant);
  const auto requests = apl::sparse_requests(entry);
  if (!entry.entry || !names || !requests) return found;
  for (const apl::SparseRequest& request : *requests) {
    const std::string& name = entry.entry->params[request.param].name;
    if (std::ranges::find(std::get<0>(*names), name) != std::get<0>(*names).end())
      found.emplace_back(name, request.value);
  }
  return found;
}

void add_known(apl::Module& module, const std::string& entry, const std::vector<apl::HostValue>& values,
               const GivenMatrices& matrices) {
  const apl::Function* function = module.find_entry(entry);
  if (function == nullptr) return;
  for (const auto& [name, value] : constant_operands(*function)) {
    const auto given = matrices.find(value);
    if (given == matrices.end() && (value >= values.size() || values[value].rank() != 2)) continue;
    module.known.push_back(
        apl::known_matrix(entry, name, given != matrices.end() ? given->second : apl::to_csr(values[value])));
  }
}

apl::Status read_known(apl::Module& module, const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    const std::size_t equals = text.find("=@");
    const std::string operand = text.substr(0, equals);
    if (equals == std::string::npos || equals == 0)
      return apl::make_error(apl::Code::command_bad_argument, {}, fmt::format("{}: expected OPERAND=@FILE", text));
    std::set<std::string> names;
    bool found = false;
    for (const apl::FunctionPtr& function : module.functions)
      for (const auto& [name, value] : constant_operands(*function)) {
        names.insert(name);
        if (name != operand) continue;
        found = true;
        const std::string file = text.substr(equals + 2);
        const auto plain = read_unpacked_file(file);
        if (!plain) return plain.error();
        auto matrix = read_operand(*plain, function->type(function->params[value]).element);
        if (!matrix) {
          apl::Diagnostic error = std::move(matrix).error();
          error.file = file;
          return error;
        }
        module.known.push_back(apl::known_matrix(function->entry->name, name, std::move(*matrix)));
      }
    if (!found)
      return apl::make_error(
          apl::Code::command_bad_argument, {},
          fmt::format("{}: no entry has an operand `{}` that is sparse and constant; {}", text, operand,
                      names.empty() ? "none has any" : fmt::format("there is {}", fmt::join(names, ", "))));
  }
  return apl::Unit{};
}

void make_dense(apl::Module& module, const std::map<std::string, std::int64_t>& parameters,
                const apl::RemarkSink& remarks) {
  constexpr std::int64_t kDense = 3;
  for (apl::FunctionPtr& function : module.functions)
    for (const auto& [name, value] : constant_operands(*function)) {
      const std::string parameter = fmt::format("{}.{}.variant", function->entry->name, name);
      const auto found = parameters.find(parameter);
      if (found == parameters.end() || found->second != kDense) continue;
      apl::FunctionPtr without = has_its_result(*function, name) ? nullptr : without_request(*function, name);
      if (remarks)
        remarks({.kind = without ? apl::RemarkKind::applied : apl::RemarkKind::missed,
                 .pass = "sparse-plan",
                 .code = without ? "dense" : "dense-result",
                 .location = {},
                 .function = function->entry->name,
                 .message = without ? fmt::format("{}=3 says so: the dense product is compiled", parameter)
                                    : fmt::format("{}=3 says so, but the result has the pattern of `{}`: the product "
                                                  "stays sparse",
                                                  parameter, name),
                 .facts = {},
                 .suggestion = {}});
      if (without) function = std::move(without);
    }
}

void add_constant_parameters(const apl::Module& module, std::set<std::string>& names) {
  for (const apl::FunctionPtr& function : module.functions)
    for (const auto& [name, value] : constant_operands(*function))
      for (const char* number : {"variant", "rows", "columns", "pieces"})
        names.insert(fmt::format("{}.{}.{}", function->entry->name, name, number));
}

}  // namespace aplc::sparse
