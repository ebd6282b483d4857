// The fast form of a block-level contraction on a GPU (`core`), for any rank, map function, operator and element type.
//
// A kernel has it if its tiles have two sides: one dim of the space is `slow`, one `fast` (it holds the result's
// innermost dim), all others have one element in a block, and every operand's tile runs along one side and the depth.
// Then
//   - threads share the block's elements as 32-lane warps of register tiles, whatever T and R say of single threads;
//     neighbouring rows of a side are read from shared memory as vectors, by a pairing of lanes that takes two passes
//     for a warp's 128-bit load instead of four;
//   - where rows lie in memory is worked out once a block, in tables: a side may be many dims flattened;
//   - tiles are copied asynchronously, several stages ahead in a loop; where there are very many indices a block
//     walks through some of them, a turn each, and starts the copies of the next before it writes back;
//   - results are written as vectors from registers where they are aligned, else by way of shared memory, so that
//     neighbouring threads write neighbouring elements.
// Rows beyond the result hold copies of others, whose results are dropped; that is why their guards need no pad.
#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "codegen/contraction/mainloop.h"
#include "codegen/lower/lower.h"
#include "ir/walk.h"

namespace apl::lower {

using namespace kernel;
using KernelBlock = kernel::Block;

void Kernel::core_head(KernelBlock& out) {
  Core& core = *core_;
  const ValueTable& values = unit_.function.values;
  CoreSide &slow = core.sides[0], &fast = core.sides[1];
  core.thread = unit_.fresh("thread");
  out.push_back(declare(kInt, core.thread, call("apl_thread", {})));
  const ExprPtr thread = variable(core.thread);
  core.lane = unit_.fresh("lane");
  const std::string warp = unit_.fresh("warp");
  out.push_back(declare(kInt, core.lane, infix("%", thread, number_of(kWarp))));
  out.push_back(declare(kInt, warp, infix("/", thread, number_of(kWarp))));
  // Lanes i and i^1 share a row of one side, i and i^2 one of the other: a load is served two quarters at a time.
  const ExprPtr lane = variable(core.lane);
  const auto of_four = [&] {
    return plus(infix("%", lane, number_of(2)), mul(infix("/", lane, number_of(16)), number_of(2)));
  };
  const auto of_eight = [&] { return infix("%", infix("/", lane, number_of(2)), number_of(8)); };
  ExprPtr slow_lane = infix("/", lane, number_of(fast.lanes)), fast_lane = infix("%", lane, number_of(fast.lanes));
  if (slow.lanes == 4) slow_lane = of_four(), fast_lane = of_eight();
  if (slow.lanes == 8) slow_lane = of_eight(), fast_lane = of_four();
  const auto first_of = [&](CoreSide& side, const char* name, const ExprPtr& warp_at, const ExprPtr& lane_at) {
    side.warp_first = unit_.fresh(fmt::format("warp_{}", name));
    side.first = unit_.fresh(name);
    ExprPtr start = side.warps == 1 ? number_of(0) : mul(warp_at, number_of(side.lanes * side.each));
    out.push_back(declare(kInt, side.warp_first, start));
    ExprPtr within = side.lanes == 1 ? number_of(0) : mul(lane_at, number_of(side.vector));
    out.push_back(declare(kInt, side.first, plus(variable(side.warp_first), within)));
  };
  const ExprPtr slow_warp = fast.warps == 1 ? variable(warp) : infix("/", variable(warp), number_of(fast.warps));
  const ExprPtr fast_warp = slow.warps == 1 ? variable(warp) : infix("%", variable(warp), number_of(fast.warps));
  first_of(slow, "row", slow_warp, slow_lane);
  first_of(fast, "column", fast_warp, fast_lane);

  // Tables of positions, filled for each side together.
  const auto declare_table = [&](const std::string& hint, std::int64_t count) {
    Stmt shared;
    shared.kind = Stmt::Kind::shared;
    shared.name = unit_.fresh(hint);
    shared.type = kIndex;
    shared.count = count;
    shared.offset = shared_bytes_;
    shared_bytes_ += (count * 8 + 15) / 16 * 16;
    out.push_back(shared);
    return shared.name;
  };
  for (std::size_t s = 0; s < 2; ++s) {
    CoreSide& side = core.sides[s];
    for (auto& [block, tile] : core.tiles)
      if (tile.side == s) {
        std::string name = values.name(block);
        if (name.ends_with("_mem")) name.resize(name.size() - 4);
        tile.rows = declare_table(name + "_rows", s == 0 ? 2 * side.extent : side.extent);
      }
    side.results = declare_table(s == 0 ? "result_rows" : "result_columns", s == 0 ? 2 * side.extent : side.extent);
  }
}

// All of the kernel's body: turns, each for one index of the space.
void Kernel::core_turns(const SegOp& op, KernelBlock& out) {
  Core& core = *core_;
  for (const Stm& stm : op.body->stms)
    if (const Alloc* alloc = get_if<Alloc>(stm)) declare_shared(stm, *alloc, out);
  core_head(out);
  if (core.loop != nullptr) {
    core.tiles_name = unit_.fresh("tiles");
    out.push_back(declare(kIndex, core.tiles_name, values_.poly(core.loop->bound)));
    core.steps = core.tiles_name;
    if (core.rest != nullptr) {
      core.steps = unit_.fresh("steps");
      out.push_back(declare(
          kIndex, core.steps,
          plus(variable(core.tiles_name), select(values_.operand(core.rest->condition), number_of(1), number_of(0)))));
    }
  }
  // What stays the same in all turns: the batch and the fast side, which differs between neighbouring blocks.
  const std::size_t slow = core.sides[0].dim;
  const Value index = op.space[slow].index;
  ExprPtr many = values_.poly(op.space[slow].bound), walk = number_of(1);
  if (core.loop != nullptr) {
    walk = variable(unit_.fresh("walk"));
    out.push_back(declare(kIndex, walk->text, core_walk(values_, op)));
    many = infix("/", plus(many, infix("-", walk, number_of(1))), walk);
  }
  std::vector<std::size_t> order;
  for (std::size_t d = 0; d < op.space.size(); ++d)
    if (d != slow && d != core.sides[1].dim) order.push_back(d);
  order.push_back(slow);
  order.push_back(core.sides[1].dim);
  const std::string block = unit_.fresh("block"), first = unit_.fresh("first");
  std::vector<ExprPtr> sizes;
  std::vector<std::string> names;
  for (std::size_t d : order) {
    sizes.push_back(d == slow ? many : values_.poly(op.space[d].bound));
    names.push_back(d == slow ? first : unit_.name(op.space[d].index));
  }
  out.push_back(declare(kIndex, block, call("apl_block", {})));
  const std::vector<ExprPtr> at = unflatten(block, sizes, names, kIndex, out);
  for (std::size_t k = 0; k < order.size(); ++k) values_.scalars[op.space[order[k]].index] = at[k];
  const ExprPtr start = at[order.size() - 2];
  const auto body = [&](KernelBlock& inner) {
    for (const Stm& stm : op.body->stms)
      if (!get_if<Alloc>(stm) && (core.rest == nullptr || get_if<If>(stm) != core.rest)) statement(stm, inner);
  };
  core.half = number_of(0);
  if (core.loop == nullptr) {
    for (std::size_t s = 0; s < 2; ++s) fill_core_tables(op, s, out);
    out.push_back(barrier());
    body(out);
    core_write(op, out);
    return;
  }
  core.turn = unit_.name(index), core.next = unit_.fresh("next"), core.last = unit_.fresh("last");
  core.stage = unit_.fresh("stage");
  const std::string half = unit_.fresh("half"), begin = unit_.fresh("begin"), ahead = unit_.fresh("ahead");
  out.push_back(declare(kIndex, begin, mul(start, walk)));
  out.push_back(declare(kIndex, core.last,
                        call("apl_index_min", {plus(variable(begin), walk), values_.poly(op.space[slow].bound)})));
  values_.scalars[index] = variable(begin);
  for (std::size_t s = 0; s < 2; ++s) fill_core_tables(op, s, out);
  out.push_back(barrier());
  KernelBlock early{
      kernel::branch(infix("<", variable(ahead), variable(core.steps)), core_ahead(ahead, variable(ahead))),
      do_call("apl_cp_async_commit", {})};
  out.push_back(unrolled(ahead, core.stages - 1, std::move(early)));
  out.push_back(declare(kInt, core.stage, number_of(0), false));
  out.push_back(declare(kInt, half, number_of(0), false));
  core.half = variable(half);
  values_.scalars[index] = variable(core.turn);
  KernelBlock inner{declare(kIndex, core.next, plus(variable(core.turn), number_of(1)))};
  body(inner);
  core_write(op, inner);
  inner.push_back(assign(variable(half), infix("-", number_of(1), variable(half))));
  Stmt loop = for_loop(kIndex, core.turn, variable(core.last), std::move(inner));
  loop.from = variable(begin);
  out.push_back(std::move(loop));
}

// How many turns a block makes if there are so many indices; the host asks, too.
ExprPtr Kernel::core_walk(Values& values, const SegOp& op) {
  // Copies run into the next turn, but not beyond it.
  ExprPtr steps = values.poly(core_->loop->bound);
  if (core_->rest != nullptr)
    steps = plus(steps, select(values.operand(core_->rest->condition), number_of(1), number_of(0)));
  ExprPtr test = infix(">=", steps, number_of(core_->stages - 1));
  if (core_->walk_from > 0) {
    ExprPtr blocks = number_of(1);
    for (const SegDim& dim : op.space) blocks = mul(blocks, values.poly(dim.bound));
    test = infix("&&", test, infix(">=", blocks, number_of(core_->walk_from)));
  }
  return select(test, number_of(core_->walk), number_of(1));
}

// How many blocks the host starts, if that is not one for each index.
ExprPtr Kernel::walking_blocks(const SegOp& op, Values& host) {
  if (!core_ || core_->loop == nullptr) return nullptr;
  ExprPtr blocks = number_of(1);
  const ExprPtr walk = core_walk(host, op);
  for (std::size_t d = 0; d < op.space.size(); ++d) {
    ExprPtr count = host.poly(op.space[d].bound);
    if (d == core_->sides[0].dim) count = infix("/", plus(count, infix("-", walk, number_of(1))), walk);
    blocks = mul(blocks, count);
  }
  return blocks;
}

// The copies of one step of the loop, or of the rest behind it.
kernel::Block Kernel::core_ahead(const std::string& step, const ExprPtr& stage) {
  Core& core = *core_;
  const auto copies = [&](const CorePhase& phase) {
    KernelBlock made;
    for (const auto& [copy, copied] : phase.copies) core_copy(*copy, copied, stage, made);
    return made;
  };
  values_.scalars[core.loop->index] = variable(step);
  KernelBlock main = copies(core.main);
  values_.scalars.erase(core.loop->index);
  KernelBlock rest = copies(core.rest_phase);
  copies_pending_ = false;
  if (core.rest == nullptr) return main;
  return {kernel::branch(infix("<", variable(step), variable(core.tiles_name)), std::move(main), std::move(rest))};
}

// The loop over the depth, with the rest as its last step. Copies run ahead into the next turn.
void Kernel::core_loop(const SegOp& op, const Stm& stm, KernelBlock& out) {
  Core& core = *core_;
  const Value index = op.space[core.sides[0].dim].index;
  const std::string step = unit_.name(core.loop->index);
  KernelBlock body{do_call(fmt::format("apl_cp_async_wait<{}>", core.stages - 2), {}), barrier()};
  // The next turn's tables, as soon as all threads have written back what the last one's were for.
  const ExprPtr here = core.half, there = infix("-", number_of(1), core.half);
  KernelBlock tables;
  core.half = there;
  values_.scalars[index] = variable(core.next);
  fill_core_tables(op, 0, tables);
  tables.push_back(barrier());
  body.push_back(kernel::branch(
      infix("&&", infix("==", variable(step), number_of(0)), infix("<", variable(core.next), variable(core.last))),
      std::move(tables)));
  const std::string later = unit_.fresh("later"), over = unit_.fresh("over"), ahead = unit_.fresh("ahead"),
                    whose = unit_.fresh("whose"), half = unit_.fresh("half"), free = unit_.fresh("free_stage");
  const auto if_over = [&](const ExprPtr& yes, const ExprPtr& no) { return select(variable(over), yes, no); };
  body.push_back(declare(kIndex, later, plus(variable(step), number_of(core.stages - 1))));
  body.push_back(declare({ScalarType::boolean, false}, over, infix(">=", variable(later), variable(core.steps))));
  body.push_back(declare(kIndex, ahead, if_over(infix("-", variable(later), variable(core.steps)), variable(later))));
  body.push_back(declare(kIndex, whose, if_over(variable(core.next), variable(core.turn))));
  body.push_back(declare(kInt, half, if_over(there, here)));
  body.push_back(declare(kInt, free,
                         select(infix("==", variable(core.stage), number_of(0)), number_of(core.stages - 1),
                                infix("-", variable(core.stage), number_of(1)))));
  core.half = variable(half);
  values_.scalars[index] = variable(whose);
  body.push_back(kernel::branch(infix("<", variable(whose), variable(core.last)), core_ahead(ahead, variable(free))));
  core.half = here;
  values_.scalars[index] = variable(core.turn);
  body.push_back(do_call("apl_cp_async_commit", {}));
  KernelBlock main, rest;
  core_contract(*core.main.contract, stm, variable(core.stage), main);
  if (core.rest == nullptr) {
    append(body, std::move(main));
  } else {
    core_contract(*core.rest_phase.contract, stm, variable(core.stage), rest);
    body.push_back(
        kernel::branch(infix("<", variable(step), variable(core.tiles_name)), std::move(main), std::move(rest)));
  }
  body.push_back(assign(variable(core.stage), select(infix("==", variable(core.stage), number_of(core.stages - 1)),
                                                     number_of(0), plus(variable(core.stage), number_of(1)))));
  out.push_back(for_loop(kIndex, step, variable(core.steps), std::move(body)));
}

}  // namespace apl::lower
