// simplify: makes every statement as plain as it can be, and drops what nothing needs.
//
//   let {n2 : i64} = mul(n, 2i64)
//   let {Bt : [q][n]f32} = rearrange(B, (1, 0))
//   let {xs : [q]f32} = Bt[:, j]
//   let {x : f32} = xs[k]
//   let {y : f32} = mul(x, 1.0f32)
// =>
//   let {y : f32} = B[j, k]
//
// One walk forwards applies the rules to each statement with its operands already simplified; the rules are grouped by
// operation: scalars, sizes (i64 arithmetic becomes polynomials where it is used as a size or index), indices (an
// index of a view becomes an index of what is viewed; checks are proved away), views, branches and loops, soacs
// (inputs and results that need no array), hoist (invariant code leaves loops, lambdas and kernels). One walk
// backwards then removes what is dead. Both repeat until nothing changes.
//
// At the memory stage only scalars and sizes are simplified. There an array is a part of a block that others have,
// too: a part of an array is written under a name that nobody reads, and what has been copied is overwritten. So what
// binds an array or block stays where and what it is, none stands for another, and none is dead but an unused view or
// block.
//
// Refuses nothing, and so gives no remarks. Never done: rewrites that are not exact for the type (floats are not
// reassociated, x*0 stays), and removing what can fail. Two arrays are never made one where one of them is
// overwritten in place (passes/analysis/consumption).
#include "passes/analysis/simplified.h"
#include "passes/functions.h"
#include "passes/pass.h"
#include "passes/simplify/simplifier.h"

namespace apl {

bool simplify_once(Function& function, const Module& module) {
  const bool simpler = Simplifier(function, module).run();
  const bool smaller = remove_dead_code(function, module);
  return simpler || smaller;
}

namespace {

// Chains longer than this are possible but not seen; what is left is correct, only less simple.
constexpr int kMaxRounds = 16;

Result<Change> simplify(Module& module, PassContext&) {
  return change_functions(module, [&](Function& function) {
    bool changed = false;
    for (int round = 0; round < kMaxRounds; ++round) {
      if (!simplify_once(function, module)) break;
      changed = true;
    }
    return changed;
  });
}

}  // namespace

PassInfo simplify_pass() {
  return {.name = "simplify",
          .summary = "fold constants and sizes, resolve views, hoist invariant code, remove dead code",
          .run = simplify};
}

}  // namespace apl
