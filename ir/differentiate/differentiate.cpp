#include "ir/differentiate.h"

#include <fmt/format.h>
#include <range/v3/view/zip.hpp>

#include <unordered_map>

#include "ir/calls.h"
#include "ir/differentiate/forward.h"
#include "ir/differentiate/prepare.h"
#include "ir/differentiate/reverse.h"

namespace apl {

namespace {

using namespace differentiation;

// Deeper calls are taken for recursion, which ends nowhere.
constexpr int kMaxCalls = 1000;

bool holds_derivatives(const Body& body) {
  bool found = false;
  for_each_stm(body, [&](const Stm& stm) { found = found || get_if<Derivative>(stm) != nullptr; });
  return found;
}

class Differentiation {
 public:
  Differentiation(const Module& module, const RemarkSink& remarks) : module_(module), remarks_(remarks) {
    for (const FunctionPtr& function : module.functions) by_name_.emplace(function->name, function.get());
  }

  Module run() {
    Module result = module_;
    for (FunctionPtr& pointer : result.functions) {
      if (!holds_derivatives(*pointer->body)) continue;
      Function function = *pointer;
      function_ = &function;
      function.body = body(function.body);
      pointer = std::make_shared<const Function>(std::move(function));
    }
    return result;
  }

 private:
  // The innermost derivative first: what another one differentiates holds none.
  BodyPtr body(const BodyPtr& old) {
    if (!holds_derivatives(*old)) return old;
    Builder b(function_->values, &module_);
    Substitution renamed;
    for (const Stm& stm : old->stms) {
      b.set_location(stm.location);
      if (const Derivative* op = get_if<Derivative>(stm)) {
        const std::vector<Operand> results = derivative(b, *op);
        for (const auto& [made, result] : ranges::views::zip(stm.pattern, results))
          b.append({.pattern = {made},
                    .op = Use{result},
                    .location = stm.location,
                    .certificates = stm.certificates,
                    .attributes = {}});
        continue;
      }
      Stm copy = stm;
      copy.op = map_bodies(stm.op, [&](const BodyPtr& inner) { return body(inner); });
      b.append(std::move(copy));
    }
    return b.finish(old->results);
  }

  std::vector<Operand> derivative(Builder& b, Derivative op) {
    const bool reverse = op.mode == Derivative::Mode::reverse;
    op.function.body = body(without_calls(op.function.body));
    op.function.body = prepare(op.function.body, function_->values, reverse);
    return reverse ? Reverse(function_->values, remarks_, function_->name).run(b, op) : forward(b, op);
  }

  BodyPtr without_calls(const BodyPtr& old) {
    bool calls = false;
    for_each_stm(*old, [&](const Stm& stm) { calls = calls || get_if<Apply>(stm) != nullptr; });
    if (!calls) return old;
    Builder b(function_->values, &module_);
    for (const Stm& stm : old->stms) {
      b.set_location(stm.location);
      const Apply* apply = get_if<Apply>(stm);
      if (apply == nullptr) {
        Stm copy = stm;
        copy.op = map_bodies(stm.op, [&](const BodyPtr& inner) { return without_calls(inner); });
        b.append(std::move(copy));
        continue;
      }
      const Function& callee = *by_name_.at(apply->function);
      if (++depth_ > kMaxCalls)
        throw Refusal{make_error(
            Code::unsupported_construct, stm.location,
            fmt::format("the derivative of the recursive function \"{}\" cannot be compiled yet", callee.name))};
      Substitution map;
      for (std::size_t k = 0; k < apply->arguments.size(); ++k) {
        const bool is_size = k < callee.sizes.size();
        map.insert_or_assign(is_size ? callee.sizes[k] : callee.params[k - callee.sizes.size()], apply->arguments[k]);
      }
      const BodyPtr inside = without_calls(copy_fresh(callee.body, map, callee.values, function_->values));
      --depth_;
      b.append_all(inside->stms);
      b.append_all(bind_call(stm, callee, *inside, function_->values));
    }
    return b.finish(old->results);
  }

  const Module& module_;
  const RemarkSink& remarks_;
  std::unordered_map<std::string_view, const Function*> by_name_;
  Function* function_ = nullptr;
  int depth_ = 0;
};

}  // namespace

bool holds_derivatives(const Module& module) {
  for (const FunctionPtr& function : module.functions)
    if (holds_derivatives(*function->body)) return true;
  return false;
}

Result<Module> differentiate(const Module& module, const RemarkSink& remarks) {
  try {
    return Differentiation(module, remarks).run();
  } catch (Refusal& refusal) {
    return std::move(refusal.diagnostic);
  }
}

}  // namespace apl
