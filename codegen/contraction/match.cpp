// Whether a block-level kernel has the mainloop (codegen/contraction/tile_loop.cpp).
#include <algorithm>

#include <fmt/format.h>

#include "codegen/contraction/mainloop.h"
#include "codegen/lower/lower.h"
#include "ir/walk.h"
#include "machine/tiles/plan.h"

namespace apl::lower {

using namespace kernel;
using KernelBlock = kernel::Block;

// Threads of a warp and rows of a thread along M and N, as the choice of plans counts on them.
static bool share(MnDim& m_dim, MnDim& n_dim, std::int64_t warp, std::int64_t threads, std::int64_t registers,
                  std::int64_t vector) {
  apl_mn_dim mn_dims[2] = {{.extent = m_dim.extent}, {.extent = n_dim.extent}};
  if (apl_mn_share(warp, threads, registers, vector, &mn_dims[0], &mn_dims[1]) == 0) return false;
  const auto take = [](MnDim& mn, const apl_mn_dim& shared) {
    mn.warps = shared.warps, mn.lanes = shared.lanes, mn.each = shared.each, mn.vector = shared.vector;
  };
  take(m_dim, mn_dims[0]);
  take(n_dim, mn_dims[1]);
  return true;
}

const Screma* find_epilogue(const SegOp& op, const ValueTable& values) {
  const std::vector<Stm>& stms = op.body->stms;
  const Screma* each = nullptr;
  for (const Stm& stm : stms) {
    if (each != nullptr) return nullptr;
    if (const Index* row = get_if<Index>(stm)) {
      // What the thread has of an accumulator.
      bool whole = row->dims.size() == op.space.size() && values.type(stm.pattern.front()).is_array();
      for (std::size_t d = 0; whole && d < op.space.size(); ++d)
        whole = !row->dims[d].is_slice() && row->dims[d].start == Poly(op.space[d].index);
      if (!whole) return nullptr;
    } else if (!get_if<Alloc>(stm)) {
      each = get_if<Screma>(stm);
      if (each == nullptr || !each->reduces.empty() || each->widths.size() != op.space.size()) return nullptr;
      if (op.body->results.size() != stm.pattern.size()) return nullptr;
      for (std::size_t k = 0; k < stm.pattern.size(); ++k)
        if (op.body->results[k] != Operand(stm.pattern[k])) return nullptr;
    }
  }
  return each;
}

// Numbers that only the mainloop depends on, given as ENTRY.NAME: enumerations are numbered from 1.
static std::map<std::string, std::int64_t> mainloop_numbers(const Stm& stm) {
  std::map<std::string, std::int64_t> numbers;
  for (const Attribute& attribute : stm.attributes)
    if (attribute.arguments.size() == 1 && std::atoi(attribute.arguments[0].c_str()) > 0)
      numbers[attribute.name] = std::atoi(attribute.arguments[0].c_str());
  return numbers;
}

std::shared_ptr<Mainloop> Kernel::find_mainloop(const SegOp& op) {
  if (!unit_.target.has_mainloop || op.results.empty()) return nullptr;
  const ValueTable& table = unit_.function.values;
  auto mainloop = std::make_shared<Mainloop>();
  for (const auto& [name, number] : mainloop_numbers(stm_)) {
    if (name == "mainloop" && number == 1) return nullptr;  // 2: the mainloop
    if (name == "copy" && number < 3) mainloop->copy_bytes = number == 1 ? 0 : 4;
    if (name == "swizzle") mainloop->swizzle = number != 1;
    if (name == "stages") mainloop->stages = number;
    if (name == "tiles_per_block") mainloop->tiles_per_block = number, mainloop->tile_loop_from = 0;
  }
  std::vector<const TileContract*> contracts;
  std::map<Value, const CopyTile*> copies;
  std::map<Value, Poly> bytes;
  bool fits = true;
  for_each_stm(*op.body, [&](const Stm& stm) {
    if (const TileContract* contract = get_if<TileContract>(stm)) contracts.push_back(contract);
    if (const CopyTile* copy = get_if<CopyTile>(stm)) copies[stm.pattern.front()] = copy;
    if (const Alloc* alloc = get_if<Alloc>(stm)) bytes[stm.pattern.front()] = alloc->bytes;
    if (const SegOp* inner = get_if<SegOp>(stm); inner != nullptr && find_epilogue(*inner, table) == nullptr) {
      // All threads do the same: it does not matter which of them has which element.
      const std::set<Value> free = free_values(*inner->body, table);
      for (const SegDim& dim : inner->space) fits = fits && !free.contains(dim.index);
      for (Value v : stm.pattern) fits = fits && table.type(v).memory && !free.contains(v);
    }
  });
  if (!fits || contracts.empty()) return nullptr;

  // The M and N dims.
  const std::vector<TileDim>& space = contracts[0]->space;
  const std::vector<TileExtent>& extents = op.results[0].extents;
  if (extents.size() != space.size()) return nullptr;
  std::int64_t threads = 1, registers = 1;
  std::vector<MnDim> mn_dims;
  for (std::size_t d = 0; d < space.size(); ++d) {
    const auto tile = unit_.fold(space[d].tile), reg = unit_.fold(space[d].reg);
    if (!tile || !reg || *tile < 1 || *reg < 1) return nullptr;
    threads *= *tile, registers *= *reg;
    if (*tile * *reg == 1) continue;
    MnDim mn;
    mn.dim = d;
    mn.extent = *tile * *reg;
    mn.last_axis = static_cast<int>(d);
    if (!extents[d].split.empty()) mn.last_axis = 0;
    for (const TileExtent::Part& part : extents[d].split) mn.last_axis = std::max(mn.last_axis, part.axis);
    mn_dims.push_back(mn);
  }
  if (mn_dims.size() != 2 || threads % unit_.target.warp != 0) return nullptr;
  if (mn_dims[1].last_axis < mn_dims[0].last_axis) std::swap(mn_dims[0], mn_dims[1]);
  std::copy(mn_dims.begin(), mn_dims.end(), mainloop->mn_dims.begin());
  mainloop->threads = threads;
  mainloop->registers = registers;
  mainloop->space_rank = space.size();
  mainloop->inner_depth = contracts[0]->depth.size() - 1;

  // Results: alike in extents and layout, accumulators in registers.
  int widest = 1;
  for (std::size_t k = 0; k < op.results.size(); ++k) {
    const KernelResult& result = op.results[k];
    const MemoryBinding& where = *table.type(stm_.pattern[k]).memory;
    if (result.kind != KernelResult::Kind::regtile || result.extents.size() != space.size()) return nullptr;
    if (where.layout != table.type(stm_.pattern[0]).memory->layout) return nullptr;
    for (std::size_t d = 0; d < space.size(); ++d) {
      const TileExtent& extent = result.extents[d];
      if (extent.tile != space[d].tile || extent.reg != space[d].reg || extent.bound != extents[d].bound)
        return nullptr;
      if (extent.split.size() != extents[d].split.size()) return nullptr;
      for (std::size_t p = 0; p < extent.split.size(); ++p)
        if (extent.split[p].axis != extents[d].split[p].axis) return nullptr;
    }
    const ScalarType element = table.type(stm_.pattern[k]).element;
    widest = std::max(widest, byte_size(element));
    const Value acc = op.body->results[k].is_value() ? op.body->results[k].value() : Value{};
    if (!acc || !table.type(acc).memory || element == ScalarType::unit) return nullptr;
    const Value block = table.type(acc).memory->block;
    if (table.type(block).space != Space::thread || !bytes.contains(block)) return nullptr;
    if (unit_.fold(bytes[block]) != registers * static_cast<std::int64_t>(byte_size(element))) return nullptr;
  }

  for (const TileContract* contract : contracts) {
    if (contract->space.size() != space.size() || contract->depth.size() != mainloop->inner_depth + 1) return nullptr;
    for (std::size_t d = 0; d < space.size(); ++d)
      if (contract->space[d].tile != space[d].tile || contract->space[d].reg != space[d].reg) return nullptr;
    for (const TileOperand& operand : contract->operands) {
      const auto copy = copies.find(operand.tile);
      if (copy == copies.end() || !add_operand_tile(*mainloop, op, *copy->second, operand)) return nullptr;
      widest = std::max(widest, byte_size(table.type(operand.tile).element));
      mainloop->readers[operand.tile] = contract;
      copies.erase(copy);
    }
  }
  if (!copies.empty()) return nullptr;  // a copy for something else
  const auto vector = std::clamp<std::int64_t>(16 / widest, 1, 4);
  if (!share(mainloop->mn_dims[0], mainloop->mn_dims[1], unit_.target.warp, threads, registers, vector)) return nullptr;
  find_mainloop_steps(*mainloop, op);
  return mainloop;
}

// A copy into the tile of one operand; copies into one block agree on where the rows lie.
bool Kernel::add_operand_tile(Mainloop& mainloop, const SegOp& op, const CopyTile& copy, const TileOperand& operand) {
  const ValueTable& table = unit_.function.values;
  const Type& type = table.type(operand.tile);
  if (!type.memory || table.type(type.memory->block).space != Space::shared || !type.memory->layout.offset().is_zero())
    return false;
  if (type.element == ScalarType::unit || !table.type(copy.source).memory) return false;
  const std::size_t rank = op.space.size();
  OperandTile tile;
  tile.element = type.element;
  tile.axes = operand.axes;
  for (std::size_t k = 0; k < operand.axes.size(); ++k) {
    const auto d = static_cast<std::size_t>(operand.axes[k]);
    const TileGuard& guard = copy.guards[k];
    const auto size = unit_.fold(copy.window.dims()[k].size);
    const auto stride = unit_.fold(type.memory->layout.dims()[k].stride);
    if (!size || !stride) return false;
    if (d >= rank) {
      if (!guard.split.empty()) return false;
      if (d - rank == mainloop.inner_depth) tile.depth = *size;
      if (d - rank == mainloop.inner_depth) tile.by_depth = unit_.fold(copy.window.dims()[k].stride) == 1;
      continue;
    }
    // What is out of range in the space is dropped with the result.
    const TileExtent& extent = op.results[0].extents[d];
    if (guard.bound &&
        (*guard.bound != extent.bound || guard.start != Poly(op.space[d].index) * extent.tile * extent.reg))
      return false;
    for (std::size_t s = 0; s < 2; ++s) {
      if (mainloop.mn_dims[s].dim != d) continue;
      if (tile.mn != kNoMnDim || *stride != 1 || *size != mainloop.mn_dims[s].extent) return false;
      tile.mn = s;
      tile.row_axis = k;
    }
    if (d != mainloop.mn_dims[0].dim && d != mainloop.mn_dims[1].dim && (*size != 1 || !guard.split.empty()))
      return false;
    if (guard.split.empty()) continue;
    if (guard.split.size() != extent.split.size()) return false;
    for (std::size_t p = 0; p < guard.split.size(); ++p)
      if (guard.split[p].bound != extent.split[p].bound) return false;
  }
  if (tile.mn == kNoMnDim) {
    // Neighbouring threads take neighbouring steps.
    tile.by_depth = false;
  } else {
    const TileGuard& rows = copy.guards[tile.row_axis];
    tile.stride = copy.window.dims()[tile.row_axis].stride;
    tile.split = rows.split;
    tile.swizzled = mainloop.swizzle && tile.by_depth && mainloop.mn_dims[tile.mn].extent % kSwizzled == 0;
    const Poly& neighbour = tile.split.empty() ? tile.stride : tile.split.back().stride;
    tile.by_row = unit_.fold(neighbour) == 1;
  }
  auto [known, added] = mainloop.tiles.emplace(type.memory->block, tile);
  mainloop.copied.emplace(operand.tile, type.memory->block);
  if (added) return true;
  const OperandTile& first = known->second;
  if (first.axes != tile.axes || first.stride != tile.stride || first.split.size() != tile.split.size()) return false;
  for (std::size_t p = 0; p < tile.split.size(); ++p)
    if (first.split[p].stride != tile.split[p].stride) return false;
  return first.by_depth == tile.by_depth && first.depth == tile.depth;
}

// Copies of all tiles, then the contraction, which leaves everything where it was.
static std::optional<MainloopPhase> phase_of(const Body& body) {
  MainloopPhase phase;
  for (const Stm& stm : body.stms) {
    if (phase.contract != nullptr) return std::nullopt;
    if (const CopyTile* copy = get_if<CopyTile>(stm)) {
      phase.copies.emplace_back(copy, stm.pattern.front());
    } else if ((phase.contract = get_if<TileContract>(stm)) == nullptr) {
      return std::nullopt;
    }
  }
  if (phase.contract == nullptr) return std::nullopt;
  return phase;
}

std::int64_t Kernel::mainloop_stages(Value block) const {
  return mainloop_ && mainloop_->tiles.contains(block) ? mainloop_->stages : 1;
}

bool Kernel::is_mainloop(const Loop& loop) const { return mainloop_ && mainloop_->loop == &loop; }

void Kernel::find_mainloop_steps(Mainloop& mainloop, const SegOp& op) {
  const ValueTable& table = unit_.function.values;
  const auto stays = [&](const Operand& from, Value to) {
    return from.is_value() && table.type(from.value()).memory && table.type(to).memory &&
           *table.type(from.value()).memory == *table.type(to).memory;
  };
  for (const Stm& stm : op.body->stms) {
    if (const Loop* loop = get_if<Loop>(stm); loop && mainloop.stages > 1) {
      auto phase = phase_of(*loop->body);
      if (mainloop.loop != nullptr || !phase || !loop->index) return mainloop.loop = nullptr, void();
      for (std::size_t k = 0; k < loop->params.size(); ++k)
        if (!stays(loop->initial[k], loop->params[k]) || !stays(loop->body->results[k], loop->params[k])) return;
      mainloop.loop = loop;
      mainloop.main = std::move(*phase);
    } else if (const If* remainder = get_if<If>(stm);
               remainder && mainloop.loop != nullptr && mainloop.remainder == nullptr) {
      auto phase = phase_of(*remainder->then_body);
      const bool known = remainder->condition.is_value() && outside_.contains(remainder->condition.value());
      if (!phase || !known || !remainder->else_body->stms.empty()) continue;
      bool all = true;
      for (std::size_t k = 0; k < stm.pattern.size(); ++k)
        all = all && stays(remainder->then_body->results[k], stm.pattern[k]) &&
              stays(remainder->else_body->results[k], stm.pattern[k]);
      if (!all) continue;
      mainloop.remainder = remainder;
      mainloop.remainder_phase = std::move(*phase);
    }
  }
}

}  // namespace apl::lower
