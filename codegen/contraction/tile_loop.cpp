// The mainloop of a block-level contraction on a GPU, for any rank, map function, operator and element type.
//
// A kernel has it if its tiles have an M and an N dim: one dim of the space each (the N dim holds the result's
// innermost dim), all others have one element in a block, and every operand's tile runs along one of the two and the
// depth. Then
//   - threads share the block's elements as 32-lane warps of register tiles, whatever T and R say of single threads;
//     neighbouring rows of a tile are read from shared memory as vectors, by a pairing of lanes that takes two passes
//     for a warp's 128-bit load instead of four;
//   - where rows lie in memory is worked out once a block, in tables: an M or N dim may be many dims flattened;
//   - tiles are copied asynchronously, several stages ahead in a loop; where there are very many tiles a block
//     computes several along the M dim (the tile loop), and starts the copies of the next before it writes back;
//   - results are written as vectors from registers where they are aligned, else by way of shared memory, so that
//     neighbouring threads write neighbouring elements; those of matrix units through the last step's tiles.
// Rows beyond the result hold zeros, or rows of the tile before, and their results are dropped: no step copies them,
// and their guards need no pad.
#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "codegen/contraction/mainloop.h"
#include "codegen/lower/lower.h"
#include "ir/walk.h"

namespace apl::lower {

using namespace kernel;
using KernelBlock = kernel::Block;

namespace {

bool varies_along(const TileNumber& number, std::size_t axis) {
  return std::ranges::any_of(number.at.strides[axis], [](const Poly& stride) { return !stride.is_zero(); });
}

}  // namespace

// All that have tables.
std::vector<TileNumber*> MainloopLowering::numbers_of(OperandTile& tile) {
  std::vector<TileNumber*> numbers;
  for (TileNumber& condition : tile.conditions) numbers.push_back(&condition);
  for (TileNumber& read : tile.also) numbers.push_back(&read);
  if (!tile.resident) return numbers;
  numbers.push_back(&tile.position);
  for (TileNumber& position : tile.positions) numbers.push_back(&position);
  return numbers;
}

// The thread's lane, and where its rows and its warp's begin in the block.
void MainloopLowering::declare_positions(const ExprPtr& thread, KernelBlock& out) {
  Mainloop& mainloop = *mainloop_;
  MnDim &m_dim = mainloop.mn_dims[0], &n_dim = mainloop.mn_dims[1];
  mainloop.lane = unit_.fresh("lane");
  mainloop.warp = unit_.fresh("warp");
  out.push_back(declare(kInt, mainloop.lane, infix("%", thread, number_of(unit_.target.warp))));
  out.push_back(declare(kInt, mainloop.warp, infix("/", thread, number_of(unit_.target.warp))));
  // Of 32 lanes i and i^1 share a row of one dim, i and i^2 one of the other: a load is served two quarters at a time.
  const ExprPtr lane = variable(mainloop.lane);
  const auto of_four = [&] {
    return plus(infix("%", lane, number_of(2)), mul(infix("/", lane, number_of(16)), number_of(2)));
  };
  const auto of_eight = [&] { return infix("%", infix("/", lane, number_of(2)), number_of(8)); };
  ExprPtr m_lane = infix("/", lane, number_of(n_dim.lanes)), n_lane = infix("%", lane, number_of(n_dim.lanes));
  if (mainloop.matrix() || mainloop.has_fragments()) {
    // As the sums of a product of the matrix units lie.
    if (n_dim.lanes == 8) m_lane = infix("%", lane, number_of(4)), n_lane = infix("/", lane, number_of(4));
  } else if (m_dim.lanes == 4 && n_dim.lanes == 8) {
    m_lane = of_four(), n_lane = of_eight();
  } else if (m_dim.lanes == 8 && n_dim.lanes == 4) {
    m_lane = of_eight(), n_lane = of_four();
  }
  const auto first_of = [&](MnDim& mn, const char* name, const ExprPtr& warp_at, const ExprPtr& lane_at) {
    mn.warp_first = unit_.fresh(fmt::format("warp_{}", name));
    mn.first = unit_.fresh(name);
    ExprPtr start = mn.warps == 1 ? number_of(0) : mul(warp_at, number_of(mn.lanes * mn.each));
    out.push_back(declare(kInt, mn.warp_first, start));
    ExprPtr within = mn.lanes == 1 ? number_of(0) : mul(lane_at, number_of(mn.vector));
    out.push_back(declare(kInt, mn.first, plus(variable(mn.warp_first), within)));
  };
  const ExprPtr warp = variable(mainloop.warp);
  const ExprPtr m_warp = n_dim.warps == 1 ? warp : infix("/", warp, number_of(n_dim.warps));
  const ExprPtr n_warp = m_dim.warps == 1 ? warp : infix("%", warp, number_of(n_dim.warps));
  first_of(m_dim, "row", m_warp, m_lane);
  first_of(n_dim, "column", n_warp, n_lane);
}

void MainloopLowering::mainloop_head(KernelBlock& out) {
  Mainloop& mainloop = *mainloop_;
  const ValueTable& values = unit_.function.values;
  mainloop.thread = unit_.fresh("thread");
  out.push_back(declare(kInt, mainloop.thread, call("apl_thread", {})));
  // Matrix units know where their sums lie; code behind them declares positions itself.
  if (!mainloop.matrix()) declare_positions(variable(mainloop.thread), out);

  // Tables of positions, filled for M and for N together.
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
    MnDim& mn = mainloop.mn_dims[s];
    for (auto& [block, tile] : mainloop.tiles) {
      std::string name = values.name(block);
      if (name.ends_with("_mem")) name.resize(name.size() - 4);
      const std::int64_t count = s == 0 ? 2 * mn.extent : mn.extent;
      if (tile.mn == s) tile.rows = declare_table(name + "_rows", count);
      for (TileNumber* number : numbers_of(tile))
        if (tile.row_axes[s] && varies_along(*number, *tile.row_axes[s]))
          number->tables[s] = declare_table(name + (s == 0 ? "_row_numbers" : "_column_numbers"), count);
    }
    mn.results = declare_table(s == 0 ? "result_rows" : "result_columns", s == 0 ? 2 * mn.extent : mn.extent);
  }
  if (mainloop.matrix()) declare_matrix_copies(out);
}

// All of the kernel's body: the tile loop, whose iterations are indices of the M dim.
void MainloopLowering::tile_loop(const SegOp& op, KernelBlock& out) {
  const auto top = static_cast<std::ptrdiff_t>(out.size());
  // What code makes where results are stored is never in registers as a whole.
  std::set<Value> unused;
  if (mainloop_->stored_stm != nullptr)
    for (const Value v : mainloop_->stored_stm->pattern) unused.insert(unit_.function.type(v).memory->block);
  for (const Stm& stm : op.body->stms)
    if (const Alloc* alloc = get_if<Alloc>(stm); alloc && !unused.contains(stm.pattern.front())) {
      const auto tile = mainloop_->tiles.find(stm.pattern.front());
      if (tile != mainloop_->tiles.end()) tile->second.offset = shared_bytes_;
      if (tile == mainloop_->tiles.end() || !tile->second.resident) declare_shared(stm, *alloc, out);
    }
  mainloop_head(out);
  Poly steps = 1;
  for (const Schedule::Dim& depth : op.schedule->dims)
    if (depth.role == Schedule::Role::depth) steps *= depth.size;
  const auto known = unit_.fold(steps);
  if (!known || *known <= 0) mainloop_->reduces = infix("<", number_of(0), values_.poly(steps));
  if (mainloop_->loop != nullptr) declare_steps(out);
  const ExprPtr start = locate_block(op, out);
  if (mainloop_->loop == nullptr) {
    one_tile(op, out);
  } else if (const ExprPtr aligned = all_aligned()) {
    KernelBlock vectors, others;
    mainloop_->aligned = true;
    loop_over_tiles(op, start, vectors);
    mainloop_->aligned = false;
    loop_over_tiles(op, start, others);
    out.push_back(kernel::branch(aligned, std::move(vectors), std::move(others)));
  } else {
    loop_over_tiles(op, start, out);
  }
  out.insert(out.begin() + top, mainloop_declarations_.begin(), mainloop_declarations_.end());
}

// Steps of the innermost loop, one more where there is a remainder, and of all loops. The host asks, too.
ExprPtr MainloopLowering::count_inner_steps(Values& values) const {
  const ExprPtr tiles = values.poly(mainloop_->loop->bound);
  if (mainloop_->remainder == nullptr) return tiles;
  return plus(tiles, select(values.operand(mainloop_->remainder->condition), number_of(1), number_of(0)));
}
ExprPtr MainloopLowering::count_steps(Values& values) const {
  ExprPtr steps = count_inner_steps(values);
  for (const Loop* loop : mainloop_->around) steps = mul(values.poly(loop->bound), steps);
  return steps;
}

// Variables: tiles of the depth, and steps.
void MainloopLowering::declare_steps(KernelBlock& out) {
  Mainloop& mainloop = *mainloop_;
  mainloop.tiles_name = unit_.fresh("tiles");
  out.push_back(declare(kIndex, mainloop.tiles_name, values_.poly(mainloop.loop->bound)));
  mainloop.inner_steps = mainloop.tiles_name;
  if (mainloop.remainder != nullptr) {
    mainloop.inner_steps = unit_.fresh(mainloop.around.empty() ? "steps" : "inner_steps");
    out.push_back(declare(kIndex, mainloop.inner_steps,
                          plus(variable(mainloop.tiles_name),
                               select(values_.operand(mainloop.remainder->condition), number_of(1), number_of(0)))));
  }
  mainloop.steps = mainloop.inner_steps;
  if (mainloop.around.empty()) return;
  mainloop.steps = unit_.fresh("steps");
  ExprPtr steps = variable(mainloop.inner_steps);
  for (const Loop* loop : mainloop.around) steps = mul(values_.poly(loop->bound), steps);
  out.push_back(declare(kIndex, mainloop.steps, steps));
  mainloop.ahead.inner = unit_.fresh(unit_.name(mainloop.loop->index) + "_ahead");
  for (const Loop* loop : mainloop.around)
    mainloop.ahead.around.push_back(unit_.fresh(unit_.name(loop->index) + "_ahead"));
  out.push_back(declare(kIndex, mainloop.ahead.inner, number_of(0), false));
  for (const std::string& name : mainloop.ahead.around) out.push_back(declare(kIndex, name, number_of(0), false));
}

// The step behind it; behind the last one the first.
kernel::Block MainloopLowering::next_step(const StepPosition& position) {
  KernelBlock made;
  const auto count = [&](const std::string& name, const ExprPtr& bound) {
    KernelBlock wrapped{assign(variable(name), number_of(0))};
    append(wrapped, std::move(made));
    made = {assign(variable(name), plus(variable(name), number_of(1))),
            kernel::branch(infix("==", variable(name), bound), std::move(wrapped))};
  };
  for (std::size_t k = 0; k < position.around.size(); ++k)
    count(position.around[k], values_.poly(mainloop_->around[k]->bound));
  count(position.inner, variable(mainloop_->inner_steps));
  return made;
}

// What stays the same for all tiles of a block: the batch and the N dim, which differs between neighbouring blocks.
// The result says which of the parts of the M dim is the block's.
ExprPtr MainloopLowering::locate_block(const SegOp& op, KernelBlock& out) {
  Mainloop& mainloop = *mainloop_;
  const std::size_t m_dim = mainloop.mn_dims[0].dim;
  ExprPtr many = values_.poly(op.space[m_dim].bound);
  if (mainloop.loop != nullptr) {
    mainloop.per_block = unit_.fresh("tiles_per_block");
    const ExprPtr per_block = variable(mainloop.per_block);
    out.push_back(declare(kIndex, mainloop.per_block, tile_loop_length(values_, op)));
    many = infix("/", plus(many, infix("-", per_block, number_of(1))), per_block);
  }
  std::vector<std::size_t> order;
  for (std::size_t d = 0; d < op.space.size(); ++d)
    if (d != m_dim && d != mainloop.mn_dims[1].dim) order.push_back(d);
  order.push_back(m_dim);
  order.push_back(mainloop.mn_dims[1].dim);
  const std::string block = unit_.fresh("block"), first = unit_.fresh("first");
  std::vector<ExprPtr> sizes;
  std::vector<std::string> names;
  for (std::size_t d : order) {
    sizes.push_back(d == m_dim ? many : values_.poly(op.space[d].bound));
    names.push_back(d == m_dim ? first : unit_.name(op.space[d].index));
  }
  out.push_back(declare(kIndex, block, call("apl_block", {})));
  const std::vector<ExprPtr> at = unflatten(block, sizes, names, kIndex, out);
  for (std::size_t k = 0; k < order.size(); ++k) values_.scalars[op.space[order[k]].index] = at[k];
  return at[order.size() - 2];
}

void MainloopLowering::tile_statements(const SegOp& op, KernelBlock& out) {
  for (const Stm& stm : op.body->stms)
    if (!get_if<Alloc>(stm) && (mainloop_->remainder == nullptr || get_if<If>(stm) != mainloop_->remainder))
      statement(stm, out);
}

// No loop over the depth: a block has one tile.
void MainloopLowering::one_tile(const SegOp& op, KernelBlock& out) {
  mainloop_->half = number_of(0);
  for (std::size_t s = 0; s < 2; ++s) fill_mainloop_tables(op, s, out);
  zero_outside(op, plus(values_.scalars.at(op.space[mainloop_->mn_dims[0].dim].index), number_of(1)), out);
  out.push_back(barrier());
  if (mainloop_->matrix()) place_matrix_copies(out);
  tile_statements(op, out);
  mainloop_write(op, out);
}

void MainloopLowering::loop_over_tiles(const SegOp& op, const ExprPtr& start, KernelBlock& out) {
  Mainloop& mainloop = *mainloop_;
  const SegDim& dim = op.space[mainloop.mn_dims[0].dim];
  mainloop.tile_index = unit_.name(dim.index), mainloop.next = unit_.fresh("next"), mainloop.last = unit_.fresh("last");
  mainloop.stage = unit_.fresh("stage");
  const std::string half = unit_.fresh("half"), begin = unit_.fresh("begin"), ahead = unit_.fresh("ahead");
  const ExprPtr per_block = variable(mainloop.per_block);
  out.push_back(declare(kIndex, begin, mul(start, per_block)));
  out.push_back(declare(kIndex, mainloop.last,
                        call("apl_index_min", {plus(variable(begin), per_block), values_.poly(dim.bound)})));
  for_tile(op, begin, number_of(0));
  for (std::size_t s = 0; s < 2; ++s) fill_mainloop_tables(op, s, out);
  zero_outside(op, variable(mainloop.last), out);
  out.push_back(barrier());
  KernelBlock early{
      kernel::branch(infix("<", variable(ahead), variable(mainloop.steps)), mainloop_prefetch(ahead, variable(ahead))),
      do_call("apl_cp_async_commit", {})};
  out.push_back(unrolled(ahead, mainloop.copies_ahead(), std::move(early)));
  // Copies through registers would be half of the kernel.
  if (mainloop.matrix()) out.back().unroll_by = 1;
  out.push_back(declare(kInt, mainloop.stage, number_of(0), false));
  out.push_back(declare(kInt, half, number_of(0), false));
  for_tile(op, mainloop.tile_index, variable(half));
  KernelBlock inner{declare(kIndex, mainloop.next, plus(variable(mainloop.tile_index), number_of(1)))};
  tile_statements(op, inner);
  mainloop_write(op, inner);
  inner.push_back(assign(variable(half), infix("-", number_of(1), variable(half))));
  Stmt loop = for_loop(kIndex, mainloop.tile_index, variable(mainloop.last), std::move(inner));
  loop.from = variable(begin);
  out.push_back(std::move(loop));
}

// What is made from here on is for that tile of the M dim, whose tables are in that half.
void MainloopLowering::for_tile(const SegOp& op, const std::string& tile, ExprPtr half) {
  mainloop_->half = std::move(half);
  values_.scalars[op.space[mainloop_->mn_dims[0].dim].index] = variable(tile);
}

// How many tiles a block computes; the host asks, too.
ExprPtr MainloopLowering::tile_loop_length(Values& values, const SegOp& op) const {
  // Copies run into the next tile, but not beyond it.
  ExprPtr test = infix(">=", count_steps(values), number_of(mainloop_->copies_ahead()));
  if (mainloop_->tile_loop_from > 0) {
    ExprPtr blocks = number_of(1);
    for (const SegDim& dim : op.space) blocks = mul(blocks, values.poly(dim.bound));
    test = infix("&&", test, infix(">=", blocks, number_of(mainloop_->tile_loop_from)));
  }
  return select(test, number_of(mainloop_->tiles_per_block), number_of(1));
}

// How many blocks the host starts, if that is not one for each index.
ExprPtr MainloopLowering::tile_loop_blocks(const SegOp& op, Values& host) const {
  if (mainloop_->loop == nullptr) return nullptr;
  ExprPtr blocks = number_of(1);
  const ExprPtr tiles_per_block = tile_loop_length(host, op);
  for (std::size_t d = 0; d < op.space.size(); ++d) {
    ExprPtr count = host.poly(op.space[d].bound);
    if (d == mainloop_->mn_dims[0].dim)
      count = infix("/", plus(count, infix("-", tiles_per_block, number_of(1))), tiles_per_block);
    blocks = mul(blocks, count);
  }
  return blocks;
}

// The copies of one step of the loops, or of the remainder behind the innermost one: of `step`, or where loops are
// around it of the position ahead, which then is the next step's.
kernel::Block MainloopLowering::mainloop_prefetch(const std::string& step, const ExprPtr& stage) {
  Mainloop& mainloop = *mainloop_;
  const auto copies = [&](const ScheduleStep& phase) {
    KernelBlock made;
    for (const auto& [copy, copied] : phase.copies) mainloop_copy(*copy, copied, stage, made);
    return made;
  };
  const ExprPtr inner = variable(mainloop.around.empty() ? step : mainloop.ahead.inner);
  for (std::size_t k = 0; k < mainloop.around.size(); ++k)
    values_.scalars[mainloop.around[k]->index] = variable(mainloop.ahead.around[k]);
  values_.scalars[mainloop.loop->index] = inner;
  KernelBlock main = copies(mainloop.main);
  values_.scalars.erase(mainloop.loop->index);
  KernelBlock remainder = copies(mainloop.remainder_step);
  for (const Loop* loop : mainloop.around) values_.scalars.erase(loop->index);
  copies_pending_ = false;
  KernelBlock all;
  if (mainloop.matrix()) {
    KernelBlock places;
    place_matrix_copies(places);
    all.push_back(kernel::branch(infix("==", variable(step), number_of(0)), std::move(places)));
  }
  if (mainloop.remainder == nullptr) {
    append(all, std::move(main));
  } else {
    all.push_back(
        kernel::branch(infix("<", inner, variable(mainloop.tiles_name)), std::move(main), std::move(remainder)));
  }
  if (!mainloop.around.empty()) append(all, next_step(mainloop.ahead));
  return all;
}

// Of two warps that share a scheduler one copies first and the other multiplies: units are busy all the time, though
// all warps begin a step together.
kernel::Block MainloopLowering::take_turns(KernelBlock copies, KernelBlock products) {
  const std::string turn = unit_.fresh("turn");
  const std::int64_t group = kTurnWarps * unit_.target.warp;
  const ExprPtr mine = infix("%", infix("/", variable(mainloop_->thread), number_of(group)), number_of(2));
  Stmt turns = for_loop(kInt, turn, number_of(2),
                        {kernel::branch(infix("==", variable(turn), mine), std::move(copies), std::move(products))});
  turns.unroll = true, turns.unroll_by = 1;
  return {std::move(turns)};
}

// The loop over the depth, with the remainder as its last step. Copies run ahead into the next tile.
void MainloopLowering::mainloop_steps(const SegOp& op, const Stm& stm, KernelBlock& out) {
  Mainloop& mainloop = *mainloop_;
  const std::string inner = unit_.name(mainloop.loop->index);
  std::string step = inner;
  StepPosition now{inner, {}};
  if (!mainloop.around.empty()) {
    step = unit_.fresh("step");
    for (const Loop* loop : mainloop.around) now.around.push_back(unit_.name(loop->index));
    out.push_back(declare(kIndex, inner, number_of(0), false));
    for (const std::string& name : now.around) out.push_back(declare(kIndex, name, number_of(0), false));
  }
  KernelBlock body{do_call(fmt::format("apl_cp_async_wait<{}>", mainloop.copies_ahead() - 1), {})};
  if (mainloop.matrix()) body.push_back(do_call("apl_matrix_publish", {}));
  body.push_back(barrier());
  // The next tile's tables, as soon as all threads have written back what the last one's were for.
  const ExprPtr here = mainloop.half, there = infix("-", number_of(1), mainloop.half);
  KernelBlock tables;
  for_tile(op, mainloop.next, there);
  fill_mainloop_tables(op, 0, tables);
  tables.push_back(barrier());
  body.push_back(kernel::branch(infix("&&", infix("==", variable(step), number_of(0)),
                                      infix("<", variable(mainloop.next), variable(mainloop.last))),
                                std::move(tables)));
  const std::string later = unit_.fresh("later"), over = unit_.fresh("over"), ahead = unit_.fresh("ahead"),
                    whose = unit_.fresh("whose"), half = unit_.fresh("half"), free = unit_.fresh("free_stage");
  const auto if_over = [&](const ExprPtr& yes, const ExprPtr& no) { return select(variable(over), yes, no); };
  body.push_back(declare(kIndex, later, plus(variable(step), number_of(mainloop.copies_ahead()))));
  body.push_back(declare({ScalarType::boolean, false}, over, infix(">=", variable(later), variable(mainloop.steps))));
  // Of loops in loops the position ahead says what is copied.
  if (mainloop.around.empty() || mainloop.matrix())
    body.push_back(
        declare(kIndex, ahead, if_over(infix("-", variable(later), variable(mainloop.steps)), variable(later))));
  body.push_back(declare(kIndex, whose, if_over(variable(mainloop.next), variable(mainloop.tile_index))));
  body.push_back(declare(kInt, half, if_over(there, here)));
  const std::int64_t behind = mainloop.stages - mainloop.copies_ahead();
  const ExprPtr stage = variable(mainloop.stage);
  const ExprPtr wraps = behind == 1 ? infix("==", stage, number_of(0)) : infix("<", stage, number_of(behind));
  const ExprPtr wrapped = plus(behind == 1 ? number_of(0) : stage, number_of(mainloop.copies_ahead()));
  body.push_back(declare(kInt, free, select(wraps, wrapped, infix("-", stage, number_of(behind)))));
  KernelBlock main, remainder, copies;
  mainloop_contract(*mainloop.main.contract, stm, variable(mainloop.stage), main);
  for_tile(op, whose, variable(half));
  copies.push_back(
      kernel::branch(infix("<", variable(whose), variable(mainloop.last)), mainloop_prefetch(ahead, variable(free))));
  for_tile(op, mainloop.tile_index, here);
  copies.push_back(do_call("apl_cp_async_commit", {}));
  if (mainloop.remainder != nullptr && !mainloop.matrix()) {
    mainloop_contract(*mainloop.remainder_step.contract, stm, variable(mainloop.stage), remainder);
    main = {kernel::branch(infix("<", variable(inner), variable(mainloop.tiles_name)), std::move(main),
                           std::move(remainder))};
  }
  if (mainloop.matrix()) {
    // Units multiply while threads copy. What is left of the depth is one more step, on zeros.
    append(body, std::move(main));
    append(body, std::move(copies));
    body.push_back(do_call(fmt::format("apl_matrix_wait<{}>", mainloop.in_flight()), {}));
  } else if (mainloop.takes_turns()) {
    append(body, take_turns(std::move(copies), std::move(main)));
  } else {
    append(body, std::move(copies));
    append(body, std::move(main));
  }
  if (!mainloop.around.empty()) append(body, next_step(now));
  body.push_back(
      assign(variable(mainloop.stage), select(infix("==", variable(mainloop.stage), number_of(mainloop.stages - 1)),
                                              number_of(0), plus(variable(mainloop.stage), number_of(1)))));
  if (mainloop.matrix()) start_products(stm, out);
  out.push_back(for_loop(kIndex, step, variable(mainloop.steps), std::move(body)));
  if (mainloop.matrix()) finish_products(stm, out);
}

}  // namespace apl::lower
