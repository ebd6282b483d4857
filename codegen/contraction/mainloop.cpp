// The mainloop's data, from the kernel's schedule. That the kernel is as its schedule says holds by the verifier
// (ir/schedule.h): what is asked here is the tile numbers alone.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "codegen/contraction/mainloop.h"
#include "codegen/contraction/plan_data.h"
#include "codegen/lower/lower.h"
#include "ir/walk.h"
#include "machine/tiles/plan.h"

namespace apl::lower {

namespace {

// x * y of two numbers, each widened to f32.
bool is_widened_product(const Lambda& map) {
  std::map<Value, Value> widened;
  const Binary* product = nullptr;
  for (const Stm& stm : map.body->stms) {
    if (const Convert* convert = get_if<Convert>(stm);
        convert && convert->to == ScalarType::f32 && !convert->same_bits && convert->x.is_value()) {
      widened.emplace(stm.pattern.front(), convert->x.value());
    } else if (const Binary* binary = get_if<Binary>(stm); binary && product == nullptr) {
      product = binary;
      if (map.body->results.size() != 1 || !map.body->results[0].is_value() ||
          map.body->results[0].value() != stm.pattern.front())
        return false;
    } else {
      return false;
    }
  }
  if (product == nullptr || product->op != BinaryOp::mul || map.params.size() != 2 || widened.size() != 2) return false;
  if (!product->x.is_value() || !product->y.is_value()) return false;
  const auto x = widened.find(product->x.value()), y = widened.find(product->y.value());
  if (x == widened.end() || y == widened.end()) return false;
  const std::set<Value> factors{x->second, y->second};
  return factors.size() == 2 && factors.contains(map.params[0]) && factors.contains(map.params[1]);
}

bool is_sum_of_f32(const Lambda& op, const ValueTable& values) {
  if (op.params.size() != 2 || op.body->stms.size() != 1 || op.body->results.size() != 1) return false;
  const Binary* sum = get_if<Binary>(op.body->stms[0]);
  if (sum == nullptr || sum->op != BinaryOp::add || !sum->x.is_value() || !sum->y.is_value()) return false;
  const Value result = op.body->stms[0].pattern.front();
  if (values.type(result).element != ScalarType::f32 || !op.body->results[0].is_value() ||
      op.body->results[0].value() != result)
    return false;
  const std::set<Value> terms{sum->x.value(), sum->y.value()};
  return terms.size() == 2 && terms.contains(op.params[0]) && terms.contains(op.params[1]);
}

}  // namespace

// Whether the machine's matrix units can do it: sums in f32 of products of two f16 or of two bf16, one along M, one
// along N, by warps of 8 by 4 threads that have neighbouring rows and columns.
bool Kernel::fits_matrix_units(const Mainloop& mainloop, const TileContract& contract) {
  if (contract.operands.size() != 2 || contract.accumulators.size() != 1 || !is_widened_product(contract.map) ||
      !is_sum_of_f32(contract.reduce.op, unit_.function.values))
    return false;
  const OperandTile& x = mainloop.tiles.at(mainloop.copied.at(contract.operands[0].tile));
  const OperandTile& y = mainloop.tiles.at(mainloop.copied.at(contract.operands[1].tile));
  if (x.element != y.element || (x.element != ScalarType::f16 && x.element != ScalarType::bf16)) return false;
  if (x.mn == kNoMnDim || y.mn == kNoMnDim || x.mn == y.mn || x.depth % kMatrixDepth != 0) return false;
  const MnDim &m_dim = mainloop.mn_dims[0], &n_dim = mainloop.mn_dims[1];
  return m_dim.lanes * n_dim.lanes == 32 && (m_dim.lanes == 8 || n_dim.lanes == 8) && m_dim.vector >= 2 &&
         n_dim.vector >= 2;
}

std::shared_ptr<Mainloop> Kernel::make_mainloop(const SegOp& op) {
  if (!unit_.target.has_mainloop || !op.schedule || op.schedule->unit != Schedule::Unit::simt) return nullptr;
  const Schedule& schedule = *op.schedule;
  const auto data = plan_data(stm_, unit_.function);
  if (!data) return nullptr;
  apl_plan plan{};
  auto mainloop = std::make_shared<Mainloop>();
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
  if (apl_plan_mainloop(&contraction, &plan, unit_.target.warp, &shares[0], &shares[1]) == 0) return nullptr;

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
      add_operand_tile(*mainloop, schedule.operands[o], operand, *copies.at(operand.tile));
    }
  mainloop->matrix_units = unit_.target.has_matrix_units && contracts.size() > 0 &&
                           std::ranges::all_of(contracts, [&](const TileContract* contract) {
                             return fits_matrix_units(*mainloop, *contract);
                           });
  if (mainloop->stages > 1) find_steps(*mainloop, *op.body);
  return mainloop;
}

void Kernel::add_operand_tile(Mainloop& mainloop, const Schedule::Operand& scheduled, const TileOperand& operand,
                              const CopyTile& copy) {
  const ValueTable& table = unit_.function.values;
  const Value block = table.type(operand.tile).memory->block;
  mainloop.copied.emplace(operand.tile, block);
  OperandTile tile;
  tile.element = scheduled.element;
  tile.axes = operand.axes;
  tile.copy_bytes = scheduled.copy_bytes;
  tile.by_depth = unit_.fold(scheduled.strides.back()) == 1;
  for (std::size_t k = 0; k < operand.axes.size(); ++k) {
    const auto axis = static_cast<std::size_t>(operand.axes[k]);
    if (axis == mainloop.space_rank + mainloop.inner_depth) tile.depth = *unit_.fold(copy.window.dims()[k].size);
    for (std::size_t s = 0; s < 2; ++s)
      if (mainloop.mn_dims[s].dim == axis) tile.mn = s, tile.row_axis = k;
  }
  if (tile.mn == kNoMnDim) {
    // Neighbouring threads take neighbouring steps.
    tile.by_depth = false;
  } else {
    tile.stride = copy.window.dims()[tile.row_axis].stride;
    tile.split = copy.guards[tile.row_axis].split;
    tile.swizzled = scheduled.swizzled && tile.by_depth && mainloop.mn_dims[tile.mn].extent % kSwizzled == 0;
    const Poly& neighbour = tile.split.empty() ? tile.stride : tile.split.back().stride;
    tile.by_row = unit_.fold(neighbour) == 1;
  }
  mainloop.tiles.emplace(block, std::move(tile));
}

std::int64_t Kernel::mainloop_stages(Value block) const {
  return mainloop_ && mainloop_->tiles.contains(block) ? mainloop_->stages : 1;
}

bool Kernel::is_mainloop(const Loop& loop) const { return mainloop_ && mainloop_->loop == &loop; }

// The loop over the depth, if it is one, and the step behind it.
void Kernel::find_steps(Mainloop& mainloop, const Body& body) {
  for (const Stm& stm : body.stms) {
    if (const Loop* loop = get_if<Loop>(stm)) {
      auto step = schedule_step(*loop->body);
      if (!step) return;
      mainloop.loop = loop;
      mainloop.main = std::move(*step);
    } else if (const If* remainder = get_if<If>(stm); remainder && mainloop.loop != nullptr) {
      auto step = schedule_step(*remainder->then_body);
      if (!step || !remainder->condition.is_value() || !outside_.contains(remainder->condition.value())) continue;
      mainloop.remainder = remainder;
      mainloop.remainder_step = std::move(*step);
    }
  }
}

}  // namespace apl::lower
