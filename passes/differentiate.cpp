// differentiate: derivatives become statements.
//
//   let {y : f32, d : f32} = jvp({x}, {1.0f32}, \{a : f32} -> { let {b : f32} = mul(a, a) in {b} })
// =>
//   let {a : f32} = x
//   let {b : f32} = mul(a, a)
//   let {d1 : f32} = mul(1.0f32, a)
//   let {d2 : f32} = mul(1.0f32, a)
//   let {d3 : f32} = add(d1, d2)
//   let {y : f32} = b
//   let {d : f32} = d3
//
// The rewriting is ir/differentiate.h, which the interpreter uses too; it follows Schenck, Rønning, Henriksen, Oancea,
// AD for an Array Language with Nested Parallelism (SC 2022). Derivatives of derivatives are computed from the inside
// out, and calls inside of what is differentiated are inlined.
//
// Reverse mode computes bodies of maps and branches again where it goes back through them, instead of keeping what they
// computed; what nothing needs of them is removed at the end. Loops keep their parameters for each iteration. What goes
// back in a loop though it went forth in parallel gets a remark: scans of other operators than sums, histograms of
// others than sums, and operators that read what varies.
//
// Refuses (unsupported.construct) loops whose arrays change size, scalar functions without derivative here (gamma,
// lgamma), and histograms whose operator reads what varies. Deliberately takes no heed of speed otherwise: sums of
// cotangents over the indices of a map are arrays first, as fuse may like them.
#include "ir/differentiate.h"

#include <set>

#include "passes/analysis/simplified.h"
#include "passes/pass.h"

namespace apl {

namespace {

// Of the functions that are not among `before`. What a derivative computes again and does not need would count as its
// work: half of the multiplications of a product's.
void remove_unneeded(Module& module, const std::vector<FunctionPtr>& before) {
  const std::set<FunctionPtr> known(before.begin(), before.end());
  for (FunctionPtr& function : module.functions) {
    if (known.contains(function)) continue;
    Function copy = *function;
    if (remove_dead_code(copy, module)) function = std::make_shared<const Function>(std::move(copy));
  }
}

Result<Change> run_differentiate(Module& module, PassContext& context) {
  if (!holds_derivatives(module)) return Change::no;
  Result<Module> result = differentiate(module, context.remarks);
  if (!result) return std::move(result).error();
  remove_unneeded(*result, module.functions);
  module = *std::move(result);
  return Change::yes;
}

}  // namespace

PassInfo differentiate_pass() {
  return {.name = "differentiate",
          .summary = "replace derivatives by what computes them",
          .takes = stage_bit(Stage::soac),
          .remark_codes = {{"sequential-derivative", "a derivative is a loop where the function is parallel"}},
          .run = run_differentiate,
          .required = true};
}

}  // namespace apl
