#include "ir/constants.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "ir/walk.h"

namespace apl {

namespace {

// Replaces calls of the functions that make constants by parameters of the functions that call them.
class Passing {
 public:
  explicit Passing(Module& module) : module_(module) {
    for (const FunctionPtr& function : module.functions) functions_.emplace(function->name, function.get());
  }

  void run() {
    if (std::ranges::none_of(module_.functions, [](const FunctionPtr& f) { return f->is_constant(); })) return;
    std::vector<FunctionPtr> passed;
    for (const FunctionPtr& function : module_.functions)
      passed.push_back(needs(function->name).empty() ? function : std::make_shared<const Function>(with(*function)));
    module_.functions = std::move(passed);
  }

 private:
  // Of a constant: its sizes that only its function knows, and its values.
  struct Given {
    std::vector<Value> sizes, values;
  };

  const Function* find(const std::string& name) const {
    const auto found = functions_.find(name);
    return found == functions_.end() ? nullptr : found->second;
  }
  bool is_constant(const std::string& name) const {
    const Function* function = find(name);
    return function != nullptr && function->is_constant();
  }

  // The constants that a function reads itself or by functions that it calls, in the order of the module.
  const std::vector<std::string>& needs(const std::string& name) {
    const auto [place, is_new] = needs_.try_emplace(name);
    const Function* function = find(name);
    if (!is_new || function == nullptr) return place->second;
    std::set<std::string> found;
    for_each_stm(*function->body, [&](const Stm& stm) {
      const Apply* call = get_if<Apply>(stm);
      if (call == nullptr) return;
      if (is_constant(call->function)) {
        found.insert(call->function);
      } else {
        const std::vector<std::string>& inner = needs(call->function);
        found.insert(inner.begin(), inner.end());
      }
    });
    for (const FunctionPtr& each : module_.functions)
      if (found.contains(each->name)) place->second.push_back(each->name);
    return place->second;
  }

  Function with(const Function& source) {
    Function function = source;
    given_.clear();
    replaced_.clear();
    for (const std::string& name : needs(source.name)) given_.emplace(name, add(*find(name), function));
    function.body = substitute(body(source.body), replaced_, function.values);
    return function;
  }

  static Given add(const Function& constant, Function& function) {
    Given given;
    Substitution sizes;
    for (const Value size : constant.result_sizes) {
      given.sizes.push_back(function.values.add(Type::scalar(ScalarType::i64), constant.values.name(size)));
      sizes.emplace(size, given.sizes.back());
    }
    for (const Type& made : constant.results) {
      Type type = substitute(made, sizes);
      type.unique = false;
      given.values.push_back(function.values.add(std::move(type), constant.name));
    }
    function.sizes.insert(function.sizes.end(), given.sizes.begin(), given.sizes.end());
    function.params.insert(function.params.end(), given.values.begin(), given.values.end());
    if (function.entry) function.entry->constants.push_back({constant.name, given.values.size()});
    return given;
  }

  BodyPtr body(const BodyPtr& old) {
    std::vector<Stm> stms;
    for (const Stm& stm : old->stms) {
      const Apply* call = get_if<Apply>(stm);
      if (call != nullptr && is_constant(call->function)) {
        replace(stm, given_.at(call->function));
        continue;
      }
      stms.push_back(stm);
      if (call != nullptr && !needs(call->function).empty()) {
        stms.back().op = with_constants(*call);
      } else if (has_bodies(stm.op)) {
        stms.back().op = map_bodies(stm.op, [&](const BodyPtr& inner) { return body(inner); });
      }
    }
    return make_body(std::move(stms), old->results);
  }

  void replace(const Stm& call, const Given& given) {
    const std::size_t sizes = given.sizes.size();
    for (std::size_t k = 0; k < call.pattern.size(); ++k)
      replaced_.insert_or_assign(call.pattern[k], k < sizes ? given.sizes[k] : given.values[k - sizes]);
  }

  Apply with_constants(const Apply& call) {
    std::vector<Operand> sizes, values;
    for (const std::string& name : needs(call.function)) {
      const Given& given = given_.at(name);
      sizes.insert(sizes.end(), given.sizes.begin(), given.sizes.end());
      values.insert(values.end(), given.values.begin(), given.values.end());
    }
    Apply result = call;
    const auto after_sizes = static_cast<std::ptrdiff_t>(find(call.function)->sizes.size());
    result.arguments.insert(result.arguments.begin() + after_sizes, sizes.begin(), sizes.end());
    result.arguments.insert(result.arguments.end(), values.begin(), values.end());
    return result;
  }

  Module& module_;
  std::map<std::string, const Function*> functions_;
  std::map<std::string, std::vector<std::string>> needs_;
  // Of the function that is rewritten.
  std::map<std::string, Given> given_;
  Substitution replaced_;
};

// The size of a constant's shape that the function gets with its value.
std::optional<Value> given_size(const Function& constant, Value size, const Function& function,
                                std::span<const Value> values) {
  for (std::size_t k = 0; k < values.size(); ++k)
    for (std::size_t d = 0; d < constant.results[k].rank(); ++d)
      if (constant.results[k].shape[d] == Poly(size)) return function.type(values[k]).shape[d].symbol();
  return std::nullopt;
}

Function with_calls(const Module& module, const Function& source) {
  Function function = source;
  std::vector<Stm> stms;
  std::span<const Value> rest(source.params);
  rest = rest.subspan(source.given_params().size());
  for (const EntryInfo::Constant& use : source.entry->constants) {
    const Function& constant = *module.find(use.function);
    const std::span<const Value> values = rest.first(use.values);
    rest = rest.subspan(use.values);
    Stm call{.pattern = {}, .op = Apply{use.function, {}}, .location = source.location};
    for (const Value size : constant.result_sizes) {
      const std::optional<Value> here = given_size(constant, size, source, values);
      call.pattern.push_back(here ? *here : function.values.add(Type::scalar(ScalarType::i64), "d"));
      std::erase(function.sizes, call.pattern.back());
    }
    call.pattern.insert(call.pattern.end(), values.begin(), values.end());
    stms.push_back(std::move(call));
  }
  function.params.resize(source.given_params().size());
  function.entry->constants.clear();
  stms.insert(stms.end(), source.body->stms.begin(), source.body->stms.end());
  function.body = make_body(std::move(stms), source.body->results);
  return function;
}

}  // namespace

std::span<const Value> Function::given_params() const {
  std::size_t constants = 0;
  if (entry)
    for (const EntryInfo::Constant& constant : entry->constants) constants += constant.values;
  return std::span(params).first(params.size() - std::min(constants, params.size()));
}

void pass_constants(Module& module) { Passing(module).run(); }

void expand_constants(Module& module) {
  std::vector<FunctionPtr> expanded;
  for (const FunctionPtr& source : module.functions) {
    if (!source->entry || (source->entry->constants.empty() && !source->is_constant())) {
      expanded.push_back(source);
      continue;
    }
    Function function = with_calls(module, *source);
    if (source->is_constant()) function.entry.reset();
    expanded.push_back(std::make_shared<const Function>(std::move(function)));
  }
  module.functions = std::move(expanded);
}

std::optional<std::string> check_constants(const Module& module, const Function& function) {
  if (!function.entry) return std::nullopt;
  if (function.is_constant() && !function.given_params().empty())
    return "the function makes a constant, and has parameters";
  std::size_t at = function.given_params().size();
  for (const EntryInfo::Constant& use : function.entry->constants) {
    const Function* constant = module.find(use.function);
    if (constant == nullptr || !constant->is_constant())
      return fmt::format("no function `{}` makes a constant", use.function);
    if (constant->results.size() != use.values || at + use.values > function.params.size())
      return fmt::format("the constant `{}` has {} values, {} are read", use.function, constant->results.size(),
                         use.values);
    for (std::size_t k = 0; k < use.values; ++k, ++at) {
      const Type &made = constant->results[k], &read = function.type(function.params[at]);
      if (made.element != read.element || made.rank() != read.rank())
        return fmt::format("value {} of the constant `{}` is read with another type", k + 1, use.function);
      for (std::size_t d = 0; d < made.rank(); ++d)
        if (const auto number = read.shape[d].constant(); number && made.shape[d].constant() != number)
          return fmt::format("value {} of the constant `{}` is read with another shape", k + 1, use.function);
    }
  }
  // A constant that needs itself is never there.
  std::set<const Function*> seen;
  std::vector<const Function*> rest = {&function};
  while (!rest.empty()) {
    const Function* next = rest.back();
    rest.pop_back();
    if (next == nullptr || !next->entry) continue;
    for (const EntryInfo::Constant& use : next->entry->constants) {
      if (use.function == function.name) return fmt::format("the constant `{}` reads itself", use.function);
      if (const Function* inner = module.find(use.function); seen.insert(inner).second) rest.push_back(inner);
    }
  }
  return std::nullopt;
}

}  // namespace apl
