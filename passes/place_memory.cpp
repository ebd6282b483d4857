// place-memory: every array gets a memory block and an index function; kernel stage => memory stage.
//
//   let {Bt : [n][q]f32} = rearrange(B, (1, 0))
//   let {C : [m][n]f32} = segmap(thread) (i < m, j < n) { ... }
// =>
//   let {Bt : [n][q]f32 @ B_mem -> {offset: 0; strides: [1, n]}} = rearrange(B, (1, 0))
//   let {C_mem : mem} = alloc(4*m*n)
//   let {C : [m][n]f32 @ C_mem -> {offset: 0; strides: [n, 1]}} = segmap(thread) (i < m, j < n) { ... }
//
// Views (rearrange, reshape, slices) cost nothing: another index function on the same block. Shared arrays become
// shared blocks with the layout they declare. Private results of inblock SegMaps get one block a thread, and tiles and
// accumulators are updated in place. An array that a loop carries has one block for the whole loop: that of the array
// that it starts with, if nothing else there is read again. What branches give lies in the block of an array that one
// of them updated or left as it was, on the same condition. What other branches or an iteration yield is moved there
// (docs/ir.md, memory stage); it lies dense in a block that nobody else needs, so that moving can be swapping two
// pointers. A result of the function that is not row-major, or lies in the caller's memory, is copied by a SegMap.
// Then blocks are saved (place_memory/reuse.cpp): dead ones serve again, results are written over inputs that end or
// where they are yielded to, loops allocate before they start.
// Refuses (unsupported.construct): loops and branches that change the size of an array, arrays that a thread of a
// block makes beside its tiles.
// Deliberately not here: reuse of what a thread allocates for itself, and of parts of blocks.
#include <algorithm>

#include "ir/walk.h"
#include "passes/pass.h"
#include "passes/place_memory/placer.h"
#include "passes/place_memory/reuse.h"

namespace apl {
namespace {

Result<Change> run(Module& module, PassContext& context) {
  std::vector<FunctionPtr> placed;
  for (const FunctionPtr& function : module.functions) {
    auto result = memory::Placer(*function, module.file).run();
    if (!result) return std::move(result).error();
    if (context.flag("reuse")) memory::reuse_blocks(*result, context);
    placed.push_back(std::make_shared<const Function>(std::move(*result)));
  }
  module.functions = std::move(placed);
  module.stage = Stage::memory;
  return Change::yes;
}

}  // namespace

PassInfo place_memory_pass() {
  PassInfo pass;
  pass.name = "place-memory";
  pass.summary = "binds every array to a memory block through an index function";
  pass.takes = stage_bit(Stage::kernel);
  pass.gives = [](Stage) { return Stage::memory; };
  pass.options = {{"reuse", true, "let blocks serve for several arrays, and allocate before loops"}};
  pass.remark_codes = {
      {"at-target", "an array is made in the block into which its loop or branch yields it"},
      {"in-place", "a kernel's result is written over an input that ends there"},
      {"reused", "an array lies in a block that is dead"},
      {"hoisted", "a block is allocated once, before the loop that uses it"},
      {"read-elsewhere", "missed: the input that ends is read at other indices than the result's"},
      {"allocated-in-loop", "missed: the block's size is known only in the loop"},
  };
  pass.run = run;
  return pass;
}

}  // namespace apl
