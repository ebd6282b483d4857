// Functions, modules, and the entry points of ir/print.h.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "ir/print/printer.h"
#include "ir/print/words.h"

namespace apl {

void Printer::put_entry(const EntryInfo& entry) {
  put(entry.is_constant ? "constant " : "entry ");
  put(name_or_quote(entry.name));
  put(" (");
  for (std::size_t k = 0; k < entry.params.size(); ++k) {
    if (k > 0) put(", ");
    const EntryInfo::Param& param = entry.params[k];
    put(name_or_quote(param.name) + " : ");
    if (!param.fields.empty()) list("sparse(", param.fields, ") ", [&](SoaField field) { put(to_text(field)); });
    put(quote(param.type));
    const std::size_t count = k < entry.param_values.size() ? entry.param_values[k] : 1;
    if (count != std::max<std::size_t>(param.fields.size(), 1))
      fmt::format_to(std::back_inserter(out_), " as {}", count);
  }
  list(") : {", entry.results, "}", [&](const EntryInfo::Result& result) {
    if (result.pattern && *result.pattern < entry.params.size())
      put("sparse(" + name_or_quote(entry.params[*result.pattern].name) + ") ");
    put(quote(result.type));
  });
  if (!entry.constants.empty())
    list(" constants (", entry.constants, ")", [&](const EntryInfo::Constant& constant) {
      put(name_or_quote(constant.function));
      if (constant.values != 1) fmt::format_to(std::back_inserter(out_), " as {}", constant.values);
    });
  new_line();
}

void Printer::put_function() {
  for (const Attribute& attribute : function_.attributes) {
    put(attribute);
    new_line();
  }
  if (function_.entry) put_entry(*function_.entry);
  put("fun ");
  put(name_or_quote(function_.name));
  list(" [", function_.sizes, "]");
  list(" (", function_.params, ")", [&](Value param) { put_binder(param); });
  put(" : ");
  if (!function_.result_sizes.empty()) list("exists [", function_.result_sizes, "] ");
  list("{", function_.results, "} = ");
  put_block(function_.body);
  put(function_.location);
}

namespace {

std::string print_function(const Function& function, const PrintOptions& options, const std::vector<Location>* calls) {
  Printer printer(function, options, calls);
  printer.put_function();
  return printer.take() + "\n";
}

}  // namespace

std::string print(const Function& function, const PrintOptions& options) {
  return print_function(function, options, nullptr);
}

std::string print(const Module& module, const PrintOptions& options) {
  std::string text = fmt::format("stage {}", to_text(module.stage));
  if (!module.file.empty()) text += " of " + quote(module.file);
  text += "\n";
  for (const FunctionPtr& function : module.functions) text += "\n" + print_function(*function, options, &module.calls);
  return text;
}

namespace {

template <class Piece>
std::string print_piece(const Piece& piece, const Function& function) {
  Printer printer(function, {});
  printer.put(piece);
  return printer.take();
}

}  // namespace

std::string print(const Stm& stm, const Function& function) { return print_piece(stm, function); }
std::string print(const Type& type, const Function& function) { return print_piece(type, function); }
std::string print(const Poly& poly, const Function& function) { return print_piece(poly, function); }
std::string print(const Operand& operand, const Function& function) { return print_piece(operand, function); }

}  // namespace apl
