// Types of results, and of the symbols in sizes.
#include <fmt/format.h>

#include <string_view>
#include <unordered_set>

#include "ir/constants.h"
#include "ir/sparse_soa.h"
#include "ir/verify/check.h"

namespace apl::verifier {
namespace {

// Where a size may be known by another name than the operation gives it: what is proved different is refused.
bool coerces(const Op& op) {
  return is_branch(op) || std::holds_alternative<Loop>(op) || std::holds_alternative<Apply>(op) ||
         std::holds_alternative<Reshape>(op) || std::holds_alternative<Use>(op);
}

}  // namespace

void check_result_types(Check& check, const Stm& stm) {
  const std::vector<Type> types = result_types(stm.op, check.values(), &check.module, stm.pattern);
  if (types.size() != stm.pattern.size())
    return check.broken(
        stm, fmt::format("{} values are bound, but {} gives {}", stm.pattern.size(), op_name(stm.op), types.size()));
  for (std::size_t k = 0; k < types.size(); ++k) {
    const Type& bound = check.type(stm.pattern[k]);
    if (coerces(stm.op) ? check.compatible(bound, types[k]) : check.same(bound, types[k])) continue;
    check.broken(stm, fmt::format("{} has type {}, but {} gives {}", check.name(stm.pattern[k]), check.text(bound),
                                  op_name(stm.op), check.text(types[k])));
  }
  for (Value v : stm.pattern)
    for (const Poly& size : check.type(v).shape) check_size(check, stm, size);
}

void check_size(Check& check, const Stm& stm, const Poly& poly) {
  poly.for_each_symbol([&](Value v) {
    if (!check.type(v).same(Type::scalar(ScalarType::i64)))
      check.broken(stm, fmt::format("{} of type {} stands in a size, where only i64 may", check.name(v),
                                    check.text(check.type(v))));
  });
}

void check_operation(Check& check, const Stm& stm) {
  for (Value v : stm.certificates)
    if (!check.type(v).same(Type::scalar(ScalarType::unit)))
      check.broken(stm, fmt::format("certificate {} has type {}", check.name(v), check.text(check.type(v))));
  std::visit(
      [&](const auto& op) {
        if constexpr (!std::is_same_v<std::decay_t<decltype(op)>, std::monostate>) check_op(check, stm, op);
      },
      stm.op);
}

void check_names(const Module& module, std::vector<Diagnostic>& out) {
  std::unordered_set<std::string_view> functions, entries;
  for (const FunctionPtr& pointer : module.functions) {
    const Function& f = *pointer;
    if (!functions.insert(f.name).second)
      out.push_back(
          make_error(Code::ir_invalid, f.location, fmt::format("`{}`: two functions have this name.", f.name)));
    if (f.entry && !entries.insert(f.entry->name).second)
      out.push_back(
          make_error(Code::ir_invalid, f.location, fmt::format("`{}`: two entries have this name.", f.entry->name)));
  }
}

void check_function(Check& check) {
  const Function& function = check.function;
  for (const auto* sizes : {&function.sizes, &function.result_sizes})
    for (Value size : *sizes)
      if (!check.type(size).same(Type::scalar(ScalarType::i64)))
        check.broken(fmt::format("size {} has type {}", check.name(size), check.text(check.type(size))));
  for (Value param : function.params)
    for (const Poly& dim : check.type(param).shape)
      dim.for_each_symbol([&](Value v) {
        if (!check.type(v).same(Type::scalar(ScalarType::i64)))
          check.broken(fmt::format("{} of type {} stands in the shape of {}", check.name(v), check.text(check.type(v)),
                                   check.name(param)));
      });
  const std::vector<Operand>& results = function.body->results;
  if (results.size() != function.results.size())
    return check.broken(
        fmt::format("the body gives {} results, {} are declared", results.size(), function.results.size()));
  for (std::size_t k = 0; k < results.size(); ++k)
    if (Type type = check.type(results[k]); !check.compatible(type, function.results[k]))
      check.broken(fmt::format("result {} has type {}, but {} is declared", k + 1, check.text(type),
                               check.text(function.results[k])));
  if (!function.entry) return;
  const EntryInfo& entry = *function.entry;
  std::size_t params = 0;  // blocks are not seen from outside
  for (Value param : function.params) params += check.type(param).is_memory() ? 0 : 1;
  std::size_t named = 0;
  for (std::size_t count : entry.param_values) named += count;
  for (const EntryInfo::Constant& constant : entry.constants) named += constant.values;
  if (entry.params.size() != entry.param_values.size())
    check.broken(fmt::format("the entry has {} parameters, but says for {} how many values they are",
                             entry.params.size(), entry.param_values.size()));
  if (named != params)
    return check.broken(fmt::format("the entry's parameters are {} values, but the function has {}", named, params));
  if (const auto wrong = check_constants(check.module, function)) return check.broken(*wrong);
  if (const auto requests = sparse_requests(function); !requests) check.broken(requests.error().message);
  if (const auto wrong = check_soas(function)) check.broken(*wrong);
}

}  // namespace apl::verifier
