// The mainloop's data, from the kernel's schedule. That the kernel is as its schedule says holds by the verifier
// (ir/schedule.h): what is asked here is the tile numbers alone.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "codegen/contraction/mainloop.h"
#include "codegen/contraction/plan_data.h"
#include "codegen/lower/lower.h"
#include "ir/walk.h"
#include "machine/tiles/plan.h"

namespace apl::lower {

namespace {

// Whether warps share the tiles as the matrix units' products of f64 lie: 8 by 4 threads, with pairs of neighbours.
bool fits_doubles(const Mainloop& mainloop) {
  const MnDim &m_dim = mainloop.mn_dims[0], &n_dim = mainloop.mn_dims[1];
  const MnDim &p = m_dim.lanes == 8 ? m_dim : n_dim, &q = m_dim.lanes == 8 ? n_dim : m_dim;
  bool fits = p.lanes == 8 && q.lanes == 4 && p.each % 2 == 0 && q.vector == 2 && mainloop.tiles.size() == 2;
  std::array<int, 3> tiles{};
  for (const auto& [block, tile] : mainloop.tiles) {
    ++tiles[tile.mn];
    fits = fits && tile.element == ScalarType::f64;
  }
  return fits && tiles[0] == 1 && tiles[1] == 1;
}

// The same of f32 by tf32: lanes of N have four neighbours, those of M eight.
bool fits_floats(const Mainloop& mainloop) {
  const MnDim &q = mainloop.mn_dims[0], &p = mainloop.mn_dims[1];
  bool fits = p.lanes == 8 && p.vector == 4 && q.lanes == 4 && q.vector == 8 && mainloop.tiles.size() == 2;
  std::array<int, 3> tiles{};
  for (const auto& [block, tile] : mainloop.tiles) {
    ++tiles[tile.mn];
    fits = fits && tile.element == ScalarType::f32;
  }
  return fits && tiles[0] == 1 && tiles[1] == 1;
}

bool has_mainloop(Schedule::Unit unit) { return unit == Schedule::Unit::simt || unit == Schedule::Unit::matrix; }

}  // namespace

std::unique_ptr<MainloopPart> make_mainloop(Kernel& kernel, const SegOp& op) {
  auto made = std::make_unique<MainloopLowering>(kernel);
  if (!made->find(op)) return nullptr;
  return made;
}

bool MainloopLowering::find(const SegOp& op) {
  mainloop_ = make_mainloop(op);
  return mainloop_ != nullptr;
}

std::unique_ptr<Mainloop> MainloopLowering::make_mainloop(const SegOp& op) {
  if (!unit_.target.has_mainloop || !op.schedule || !has_mainloop(op.schedule->unit)) return nullptr;
  const Schedule& schedule = *op.schedule;
  const auto data = plan_data(stm_, unit_.function);
  if (!data) return nullptr;
  apl_plan plan{};
  auto mainloop = std::make_unique<Mainloop>();
  mainloop->threads = mainloop->registers = 1;
  for (std::size_t d = 0; d < schedule.dims.size(); ++d) {
    const auto tile = unit_.fold(schedule.dims[d].tile), reg = unit_.fold(schedule.dims[d].reg);
    if (!tile || !reg) return nullptr;
    plan.tile[d] = static_cast<std::int32_t>(*tile), plan.reg[d] = static_cast<std::int32_t>(*reg);
    if (d < data->space_rank) mainloop->threads *= *tile, mainloop->registers *= *reg;
  }
  apl_contraction contraction;
  constexpr std::int64_t kSomeSize = 2;  // the block does not depend on sizes
  fill_in(
      *data, [](Value) { return kSomeSize; }, contraction);
  apl_mn_dim shares[2];
  const int matrix_units = unit_.target.has_matrix_units ? 1 : 0;
  if (apl_plan_mainloop(&contraction, &plan, unit_.target.warp, matrix_units, &shares[0], &shares[1]) == 0)
    return nullptr;
  if (matrix_units != 0 && op.schedule->unit == Schedule::Unit::matrix)
    mainloop->matrix_rows = apl_matrix_rows(&shares[0], &shares[1]);

  mainloop->space_rank = op.space.size();
  mainloop->inner_depth = schedule.dims.size() - data->space_rank - 1;
  for (std::size_t s = 0; s < 2; ++s) {
    MnDim& mn = mainloop->mn_dims[s];
    mn.dim = op.space.size() - 2 + s;
    mn.extent = shares[s].extent;
    mn.warps = shares[s].warps, mn.lanes = shares[s].lanes, mn.each = shares[s].each, mn.vector = shares[s].vector;
  }
  if (schedule.stages > 0) mainloop->stages = schedule.stages;
  if (schedule.tiles_per_block > 0) mainloop->tiles_per_block = schedule.tiles_per_block, mainloop->tile_loop_from = 0;

  std::map<Value, const CopyTile*> copies;
  std::vector<const TileContract*> contracts;
  for_each_stm(*op.body, [&](const Stm& stm) {
    if (const CopyTile* copy = get_if<CopyTile>(stm)) copies[stm.pattern.front()] = copy;
    if (const TileContract* contract = get_if<TileContract>(stm)) contracts.push_back(contract);
  });
  for (const TileContract* contract : contracts)
    for (std::size_t o = 0; o < contract->operands.size(); ++o) {
      const TileOperand& operand = contract->operands[o];
      mainloop->readers[operand.tile] = contract;
      add_operand_tile(*mainloop, schedule.operands[o], operand, *copies.at(operand.tile),
                       is_resident(schedule, schedule.operands[o]));
    }
  if (matrix_units != 0 && op.schedule->unit == Schedule::Unit::matrix && !mainloop->matrix()) {
    mainloop->doubles = fits_doubles(*mainloop);
    if (fits_floats(*mainloop)) mainloop->tf32_products = data->matrix_products;
    // Lanes read four steps at once, which lie in the same banks if nothing moves them.
    for (auto& [block, tile] : mainloop->tiles)
      if (mainloop->has_fragments()) tile.swizzled = tile.may_swizzle;
  }
  if (mainloop->stages > 1) find_steps(*mainloop, *op.body);
  mainloop->stored_stm = stored_code(op, unit_.function.values);
  if (mainloop->stored_stm != nullptr)
    mainloop->stored_each = epilogue_map(std::get<SegOp>(mainloop->stored_stm->op), unit_.function.values);
  return mainloop;
}

void MainloopLowering::add_operand_tile(Mainloop& mainloop, const Schedule::Operand& scheduled,
                                        const TileOperand& operand, const CopyTile& copy, bool resident) {
  const ValueTable& table = unit_.function.values;
  const Value block = table.type(operand.tile).memory->block;
  mainloop.copied.emplace(operand.tile, block);
  OperandTile tile;
  tile.element = scheduled.element;
  tile.axes = operand.axes;
  tile.copy_bytes = scheduled.copy_bytes;
  tile.by_depth = unit_.fold(scheduled.strides.back()) == 1;
  tile.gathers = copy.gathers;
  for (const TileCondition& condition : copy.where) tile.conditions.push_back({condition.at, {}});
  for (const TileRead& read : copy.also) tile.also.push_back({read.at, {}});
  for (std::size_t k = 0; k < operand.axes.size(); ++k) {
    const auto axis = static_cast<std::size_t>(operand.axes[k]);
    for (std::size_t s = 0; s < 2; ++s)
      if (mainloop.mn_dims[s].dim == axis) tile.row_axes[s] = k;
    if (axis == mainloop.space_rank + mainloop.inner_depth) tile.depth = *unit_.fold(copy.window.dims()[k].size);
    for (std::size_t s = 0; s < 2; ++s)
      if (mainloop.mn_dims[s].dim == axis) tile.mn = s, tile.row_axis = k;
  }
  tile.resident = resident;
  if (resident) {
    tile.mn = kNoMnDim, tile.by_depth = false;
    for (const TileGather& gather : copy.gathers) tile.positions.push_back({gather.at, {}});
    TileAffine& position = tile.position.at;
    position.start = copy.window.offset();
    for (std::size_t k = 0; k < copy.guards.size(); ++k) {
      std::vector<Poly>& strides = position.strides.emplace_back();
      for (const TileGuard::Part& part : copy.guards[k].split) strides.push_back(part.stride);
      if (strides.empty()) strides.push_back(copy.window.dims()[k].stride);
    }
  } else if (tile.mn == kNoMnDim) {
    // Neighbouring threads take neighbouring steps.
    tile.by_depth = false;
  } else {
    tile.stride = copy.window.dims()[tile.row_axis].stride;
    tile.split = copy.guards[tile.row_axis].split;
    tile.may_swizzle = scheduled.swizzled && mainloop.mn_dims[tile.mn].extent % kSwizzled == 0;
    tile.swizzled = tile.may_swizzle && tile.by_depth;
    const Poly& neighbour = tile.split.empty() ? tile.stride : tile.split.back().stride;
    tile.by_row = unit_.fold(neighbour) == 1;
    // Rows that an array of indices names are no neighbours.
    for (const TileGather& gather : copy.gathers)
      for (const Poly& stride : gather.at.strides[tile.row_axis]) tile.by_row = tile.by_row && stride.is_zero();
  }
  mainloop.tiles.emplace(block, std::move(tile));
}

std::int64_t MainloopLowering::mainloop_stages(Value block) const {
  return mainloop_->tiles.contains(block) ? mainloop_->stages : 1;
}

// The loops over the depth, if they are such, and the step behind the innermost one.
void MainloopLowering::find_steps(Mainloop& mainloop, const Body& body) {
  std::vector<const Loop*> around;
  const auto is_fixed = [&](const Poly& bound) {
    return std::ranges::none_of(around, [&](const Loop* loop) { return bound.mentions(loop->index); });
  };
  const auto is_step = [&](const Stm& stm) { return get_if<Loop>(stm) || get_if<If>(stm); };
  for (const Body* level = &body; level != nullptr;) {
    const Body* inside = nullptr;
    for (const Stm& stm : level->stms) {
      if (const Loop* loop = get_if<Loop>(stm)) {
        auto step = schedule_step(*loop->body);
        if (!is_fixed(loop->bound)) return;
        if (step) {
          mainloop.loop = loop;
          mainloop.main = std::move(*step);
          mainloop.around = around;
        } else if (std::ranges::all_of(loop->body->stms, is_step)) {
          around.push_back(loop);
          inside = loop->body.get();
        } else {
          return;
        }
      } else if (const If* remainder = get_if<If>(stm); remainder && mainloop.loop != nullptr) {
        auto step = schedule_step(*remainder->then_body);
        if (!step || !remainder->condition.is_value() || !outside_.contains(remainder->condition.value())) continue;
        mainloop.remainder = remainder;
        mainloop.remainder_step = std::move(*step);
      }
    }
    level = mainloop.loop != nullptr ? nullptr : inside;
  }
}

}  // namespace apl::lower
