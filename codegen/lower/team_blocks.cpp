// Reductions that several blocks share (ir/team.h), on GPUs: each has a part of an index' elements. What they have is
// in memory, and the last of them to come folds that, in order; how many came is counted in a cell that is 0 again
// then:
//
//   if (blocks > 1) {
//     if (lane == 0) {
//       parts(index * blocks + part) = s;
//       apl_fence();
//       last_s(0) = apl_ticket(cells, index, blocks - 1) == blocks - 1;
//       apl_fence();
//     }
//     apl_barrier();
//     if (!last_s(0)) return;
//     s = the fold of parts(index * blocks), ...
//   }
#include "codegen/lower/team.h"
#include "ir/team.h"

namespace apl::lower {

using namespace kernel;
using KernelBlock = kernel::Block;

// The elements that a block has of its index: all, or as many as others, a number that the team divides.
void Team::part_of_block(const ExprPtr& width, KernelBlock& out) {
  const ExprPtr blocks = variable(team_.blocks), shift = variable(team_.shift), one = number_of(1);
  const std::string each = unit_.fresh("each");
  team_.first = unit_.fresh("first"), team_.count = unit_.fresh("count");
  const ExprPtr several = infix(">", blocks, one);
  const ExprPtr share = infix("/", infix("-", width, one), infix("<<", cast(kIndex, blocks), shift));
  out.push_back(declare(kIndex, each, select(several, infix("<<", infix("+", share, one), shift), width)));
  out.push_back(
      declare(kIndex, team_.first, infix("*", variable(each), select(several, variable(team_.part), number_of(0)))));
  const ExprPtr left = infix("-", width, variable(team_.first));
  out.push_back(declare(kIndex, team_.count,
                        call("apl_index_max", {number_of(0), call("apl_index_min", {variable(each), left})})));
}

// The last block of an index to come folds what all have.
void Team::fold_blocks(const Screma& op, const std::vector<Value>& accumulators, KernelBlock& out) {
  const ExprPtr blocks = variable(team_.blocks), lane = variable(team_.lane), one = number_of(1);
  const auto type_of = [&](Value acc) { return CType{unit_.function.type(acc).element, false}; };
  const SegOp& kernel = std::get<SegOp>(stm_.op);
  const Poly several = poly_min(1, *kernel.blocks - 1);  // 0: there is one block, and nothing to publish
  std::vector<std::string> parts;
  for (const Value acc : accumulators) {
    parts.push_back(unit_.fresh(unit_.function.values.name(acc) + "_parts"));
    scratch_.push_back({parts.back(), type_of(acc).scalar, {*kernel.blocks * several}, false});
    function_.params.push_back({parts.back(), type_of(acc), BufferKind::global_out});
  }
  const CType counter{ScalarType::u32, false};
  const std::string cells = unit_.fresh("cells"), is_last = unit_.fresh("last_s"), each = unit_.fresh("each"),
                    from = unit_.fresh("from"), end = unit_.fresh("end"), part = unit_.fresh("part");
  Poly bytes = byte_size(ScalarType::u32);
  for (const SegDim& dim : kernel.space) bytes *= dim.bound;
  zeros_ = {bytes * several, {0}};
  function_.params.push_back({cells, counter, BufferKind::global_out});
  const ExprPtr first = infix("*", variable(team_.index), blocks);
  KernelBlock wide, leads, fold_one;
  out.push_back(shared_array(is_last, kInt, 1));
  for (std::size_t k = 0; k < accumulators.size(); ++k)
    leads.push_back(
        assign(element(parts[k], infix("+", first, variable(team_.part))), variable(unit_.name(accumulators[k]))));
  const ExprPtr last = cast(counter, infix("-", blocks, one));
  leads.push_back(fence());
  leads.push_back(assign(element(is_last, number_of(0)),
                         infix("==", call("apl_ticket", {variable(cells), variable(team_.index), last}), last)));
  leads.push_back(fence());
  wide.push_back(kernel::branch(infix("==", lane, number_of(0)), std::move(leads)));
  wide.push_back(barrier());
  Stmt leave;
  leave.kind = Stmt::Kind::leave;
  wide.push_back(kernel::branch(infix("==", element(is_last, number_of(0)), number_of(0)), {leave}));
  const ExprPtr above = infix("-", infix("+", blocks, number_of(threads_)), one);
  wide.push_back(declare(kInt, each, infix("/", above, number_of(threads_))));
  wide.push_back(declare(kInt, from, infix("*", lane, variable(each))));
  wide.push_back(declare(kInt, end, call("apl_index_min", {infix("+", variable(from), variable(each)), blocks})));
  std::size_t next = 0;
  for (const ReduceOp& reduce : op.reduces)
    for (const Operand& neutral : reduce.neutral)
      wide.push_back(assign(variable(unit_.name(accumulators[next++])), values_.operand(neutral)));
  next = 0;
  fold_with(
      op, accumulators, nullptr, [&](Value) { return element(parts[next++], infix("+", first, variable(part))); },
      fold_one);
  Stmt own_parts = for_loop(kInt, part, variable(end), std::move(fold_one));
  own_parts.from = variable(from);
  wide.push_back(std::move(own_parts));
  fold_warp(op, accumulators, false, wide);
  fold_warps(op, accumulators, wide);
  out.push_back(kernel::branch(infix(">", blocks, one), std::move(wide)));
}

}  // namespace apl::lower
