// The order of the checks: each may rely on those before it.
#include "ir/verify.h"

#include <fmt/format.h>

#include "ir/verify/check.h"

namespace apl {

std::vector<Diagnostic> verify(const Module& module) {
  std::vector<Diagnostic> out;
  bool whole = true;
  verifier::Functions functions;
  for (const FunctionPtr& function : module.functions)
    if (function) functions.emplace(function->name, function.get());
  for (const FunctionPtr& function : module.functions) {
    if (!function) {
      out.push_back(make_error(Code::ir_invalid, {}, "a function of the module is missing."));
      return out;
    }
    verifier::Check check(module, functions, *function, out);
    whole = verifier::check_structure(check) && whole;
  }
  whole = verifier::check_calls(module, out) && whole;
  // Calls look into other functions, so no function is read further unless all are whole.
  if (!whole) return out;
  verifier::check_names(module, out);
  for (const FunctionPtr& function : module.functions) {
    verifier::Check check(module, functions, *function, out);
    check.learn_sizes();
    verifier::check_function(check);
    verifier::check_scopes(check);
    const std::size_t before = check.count();
    verifier::walk(*function, [&](const Stm& stm, const verifier::Surroundings& around) {
      verifier::check_stage(check, stm, around);
      verifier::check_levels(check, stm, around);
      const std::size_t so_far = check.count();
      verifier::check_operation(check, stm);
      if (check.count() == so_far) verifier::check_result_types(check, stm);
    });
    if (check.count() == before)
      verifier::walk(*function, [&](const Stm& stm, const verifier::Surroundings&) { check_schedule(check, stm); });
    verifier::check_memory(check);
    if (check.count() == before) verifier::check_consumption(check);
  }
  return out;
}

}  // namespace apl
