// The law of derivatives: what a derivative costs beside the function that it is of. Its operations are at most
// 5 times those of the function, and it allocates at most 3 times what the arguments and results have and the function
// allocates; of a loop in reverse also what the loop carries, once for each iteration (the tape). Each derivative in a
// derivative multiplies both again.
//
// The function is made from the same text: a derivative is replaced by its function on its arguments; a copy of an
// argument is in place of its cotangent, a copy of a result in place of its tangent, and in loops a copy of what they
// carry in place of the tape.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/walk.h"
#include "tests/work/law.h"

namespace apl::work_tests {

namespace {

constexpr double kOperations = 5, kAllocated = 3;

class Without {
 public:
  explicit Without(Function& function) : function_(function) {}

  BodyPtr body(const BodyPtr& from, bool taped) {
    std::vector<Stm> stms;
    for (const Stm& stm : from->stms) statement(stm, taped, stms);
    return make_body(std::move(stms), from->results);
  }
  int depth() const { return deepest_; }

 private:
  void statement(const Stm& stm, bool taped, std::vector<Stm>& out) {
    if (const Derivative* derivative = get_if<Derivative>(stm)) return replace(stm, *derivative, out);
    Stm made = stm;
    made.op = map_bodies(stm.op, [&](const BodyPtr& inner) { return body(inner, taped); });
    if (Loop* loop = std::get_if<Loop>(&made.op); loop != nullptr && taped) {
      std::vector<Stm> stms;
      for (const Value param : loop->params) keep(param, stms);
      stms.insert(stms.end(), loop->body->stms.begin(), loop->body->stms.end());
      loop->body = make_body(std::move(stms), loop->body->results);
    }
    out.push_back(std::move(made));
  }

  void replace(const Stm& stm, const Derivative& derivative, std::vector<Stm>& out) {
    const bool reverse = derivative.mode == Derivative::Mode::reverse;
    deepest_ = std::max(deepest_, ++depth_);
    const Lambda& f = derivative.function;
    for (std::size_t k = 0; k < f.params.size(); ++k) bind(f.params[k], derivative.arguments[k], out);
    const BodyPtr inner = body(f.body, reverse);
    out.insert(out.end(), inner->stms.begin(), inner->stms.end());
    const std::size_t results = inner->results.size();
    for (std::size_t k = 0; k < stm.pattern.size(); ++k) {
      if (k < results)
        bind(stm.pattern[k], inner->results[k], out);
      else
        copy(stm.pattern[k], reverse ? derivative.arguments[k - results] : inner->results[k - results], out);
    }
    --depth_;
  }

  void bind(Value to, const Operand& from, std::vector<Stm>& out) { out.push_back({{to}, Use{from}, {}, {}, {}}); }
  void copy(Value to, const Operand& from, std::vector<Stm>& out) {
    if (!function_.values.type(from).is_array()) return bind(to, from, out);
    out.push_back({{to}, Copy{from.value()}, {}, {}, {}});
  }
  void keep(Value carried, std::vector<Stm>& out) {
    Type type = function_.type(carried);
    if (type.is_array()) return copy(function_.values.add(type, "tape"), carried, out);
    type.shape = {1};
    out.push_back({{function_.values.add(type, "tape")}, Replicate{{1}, carried}, {}, {}, {}});
  }

  Function& function_;
  int depth_ = 0, deepest_ = 0;
};

struct Primal {
  Module module;
  int depth = 0;
};

Primal without_derivatives(Module module) {
  int depth = 0;
  for (FunctionPtr& function : module.functions) {
    Function copy = *function;
    Without without(copy);
    copy.body = without.body(function->body, false);
    depth = std::max(depth, without.depth());
    function = std::make_shared<const Function>(std::move(copy));
  }
  return {std::move(module), depth};
}

bool is_more(std::int64_t cost, double factor, std::int64_t allowed) {
  return static_cast<double>(cost) > factor * static_cast<double>(allowed) + kSlack;
}

}  // namespace

bool has_derivatives(const Module& module, const std::string& entry) {
  bool found = false;
  for (const FunctionPtr& function : alone(module, entry).functions)
    for_each_stm(*function->body, [&](const Stm& stm) { found = found || get_if<Derivative>(stm) != nullptr; });
  return found;
}

Outcome check_derivatives(const Module& module, const std::string& entry) {
  Outcome outcome;
  const auto inlined = run_passes(alone(module, entry), "inline", PassRegistry::builtin());
  const auto derived = inlined ? run_passes(*inlined, "differentiate", PassRegistry::builtin()) : inlined;
  if (!derived) {
    outcome.left_out.push_back(derived.error().message);
    return outcome;
  }
  const Primal function = without_derivatives(*inlined);
  std::string why;
  const auto inputs = Inputs::find(*derived, entry, why);
  if (!inputs) {
    outcome.left_out.push_back("its derivative: " + why);
    return outcome;
  }
  const double operations = std::pow(kOperations, function.depth), allocated = std::pow(kAllocated, function.depth);
  for (const std::string& size : inputs->names()) {
    const auto arguments = inputs->arguments(size, kSizeFactor * inputs->size());
    const auto f = arguments ? measure(function.module, entry, *arguments) : arguments.error();
    const auto d = f ? measure(*derived, entry, *arguments) : f;
    if (!d) {
      outcome.left_out.push_back(fmt::format("its derivative: {}: {}", size, d.error().message));
      continue;
    }
    ++outcome.compared;
    const Work of_f = work_of_text(function.module, *f), of_d = work_of_text(*derived, *d);
    const auto check = [&](const char* what, double factor, std::int64_t cost, std::int64_t allowed) {
      if (!is_more(cost, factor, allowed)) return;
      outcome.violations.push_back(
          {size,
           fmt::format("its derivative, {} = {}: {} {}, which is {:.1f} times those of the function ({}); {} are "
                       "allowed",
                       size, kSizeFactor * inputs->size(), cost, what,
                       static_cast<double>(cost) / std::max(1.0, static_cast<double>(allowed)), allowed, factor)});
    };
    check("operations", operations, of_d.operations, of_f.operations);
    std::int64_t made = of_d.allocated;
    if (is_more(made, allocated, of_f.allocated)) {
      // Rows that are only added are arrays until they are fused with their sums.
      const auto fused =
          run_passes(alone(module, entry), standard_pipeline(Stage::soac, Machine::cpu), PassRegistry::builtin());
      const auto run = fused ? measure(*fused, entry, *arguments) : fused.error();
      if (run) made = std::min(made, work_of_version(*fused, *run).allocated);
    }
    check("elements allocated", allocated, made, of_f.allocated);
  }
  return outcome;
}

}  // namespace apl::work_tests
