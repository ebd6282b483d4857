// What parts of a kernel's lowering have in common.
#include <algorithm>

#include "codegen/lower/lower.h"
#include "codegen/lower/scatter.h"

namespace apl::lower {

using namespace kernel;

KernelPart::KernelPart(Kernel& kernel)
    : unit_(kernel.unit_),
      stm_(kernel.stm_),
      values_(kernel.values_),
      function_(kernel.function_),
      outside_(kernel.outside_),
      scratch_(kernel.scratch_),
      zeros_(kernel.zeros_),
      threads_(kernel.threads_),
      shared_bytes_(kernel.shared_bytes_),
      kernel_(kernel) {}

void KernelPart::scatter_rows(const Scatter& op, const Stm& stm, Block& out) {
  kernel_.scatters_->write_rows(op, stm, true, out);
}

void KernelPart::scatter_scalars(const Scatter& op, const Stm& stm, const ExprPtr& at,
                                 const std::vector<ExprPtr>& values, Block& out) {
  kernel_.scatters_->write_scalars(op, stm, at, values, out);
}

// What changes inside the kernel is left out of a product: what stays must divide.
ExprPtr KernelPart::aligned(const std::vector<Poly>& positions, std::int64_t width) {
  std::vector<Poly> wanted;
  for (const Poly& position : positions) {
    const Poly known = position.substitute([&](Value v) -> std::optional<Poly> {
      if (auto number = unit_.tile(v)) return Poly(*number);
      return std::nullopt;
    });
    for (const Term& term : known.terms()) {
      if (term.coefficient % width == 0) continue;
      Poly remainder = term.coefficient;
      for (const Factor& factor : term.factors) {
        bool known_outside = true;
        Poly(factor).for_each_symbol(
            [&](Value v) { known_outside = known_outside && (outside_.contains(v) || unit_.tile(v)); });
        if (known_outside) remainder *= Poly(factor);
      }
      const bool implied = std::any_of(wanted.begin(), wanted.end(),
                                       [&](const Poly& p) { return remainder.divide_exact(p).has_value(); });
      if (!implied) wanted.push_back(remainder);
    }
  }
  ExprPtr all;
  for (const Poly& p : wanted) {
    const ExprPtr test = infix("==", infix("%", values_.poly(p), number_of(width)), number_of(0));
    all = all ? infix("&&", all, test) : test;
  }
  return all;
}

}  // namespace apl::lower
