// The fast form of a block-level contraction on a GPU (`core`), for any rank, map function, operator and element type.
//
// A kernel has it if its tiles have two sides: one dim of the space is `slow`, one `fast` (it holds the result's
// innermost dim), all others have one element in a block, and every operand's tile runs along one side and the depth.
// Then
//   - threads share the block's elements as 32-lane warps of register tiles, whatever T and R say of single threads;
//     neighbouring rows of a side are read from shared memory as vectors, by a pairing of lanes that takes two passes
//     for a warp's 128-bit load instead of four;
//   - where rows lie in memory is worked out once a block, in tables: a side may be many dims flattened;
//   - tiles are copied asynchronously, several stages ahead in a loop;
//   - results are written as vectors from registers where they are aligned, else by way of shared memory, so that
//     neighbouring threads write neighbouring elements.
// Rows beyond the result hold copies of others, whose results are dropped; that is why their guards need no pad.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "codegen/core.h"
#include "codegen/lower.h"
#include "codegen/register_loops.h"
#include "ir/walk.h"

namespace apl::lower {

using namespace kernel;
using KernelBlock = kernel::Block;

namespace {

constexpr std::int64_t kWarp = 32;
constexpr std::int64_t kSwizzled = 32;  // rows that apl_swizzle permutes
constexpr std::int64_t kUnrolled = 8;   // of the depth; the period of apl_swizzle
constexpr int kDefaultStages = 3;

ExprPtr number_of(std::int64_t n) { return literal(n); }

Stmt do_call(std::string function, std::vector<ExprPtr> arguments) {
  Stmt s;
  s.kind = Stmt::Kind::call;
  s.value = call(std::move(function), std::move(arguments));
  return s;
}

Stmt barrier() {
  Stmt s;
  s.kind = Stmt::Kind::barrier;
  return s;
}

Stmt unrolled(std::string name, std::int64_t count, KernelBlock body) {
  Stmt loop = for_loop(kInt, std::move(name), number_of(count), std::move(body));
  loop.unroll = true;
  return loop;
}

void append(KernelBlock& out, KernelBlock more) {
  out.insert(out.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

// Threads of a warp and rows of a thread along both sides: fewest rows loaded for a step of the depth.
bool share(CoreSide& slow, CoreSide& fast, std::int64_t registers, std::int64_t vector) {
  constexpr std::int64_t kLanes[][2] = {{4, 8}, {8, 4}, {2, 16}, {16, 2}, {1, 32}, {32, 1}};
  std::int64_t best = 0;
  for (const auto& [slow_lanes, fast_lanes] : kLanes)
    for (std::int64_t each = 1; each <= registers; each *= 2) {
      const std::int64_t other = registers / each;
      if ((other & (other - 1)) != 0 || each * other != registers) continue;
      if (slow.extent % (slow_lanes * each) != 0 || fast.extent % (fast_lanes * other) != 0) continue;
      const std::int64_t cost =
          each + other + (each < vector ? 4 * (vector - each) : 0) + (other < vector ? 4 * (vector - other) : 0);
      if (best != 0 && best <= cost) continue;
      best = cost;
      slow.lanes = slow_lanes, slow.each = each, slow.vector = std::min(vector, each);
      fast.lanes = fast_lanes, fast.each = other, fast.vector = std::min(vector, other);
    }
  if (best == 0) return false;
  slow.warps = slow.extent / (slow.lanes * slow.each);
  fast.warps = fast.extent / (fast.lanes * fast.each);
  return true;
}

}  // namespace

// ---- is this a kernel for it? -------------------------------------------------------------------------------------

std::shared_ptr<Core> Kernel::find_core(const SegOp& op) {
  if (unit_.target != Target::cuda || op.results.empty()) return nullptr;
  const ValueTable& table = unit_.function.values;
  auto core = std::make_shared<Core>();
  std::vector<const TileContract*> contracts;
  std::map<Value, const CopyTile*> copies;
  std::map<Value, Poly> bytes;
  bool fits = true;
  for_each_stm(*op.body, [&](const Stm& stm) {
    if (const TileContract* contract = get_if<TileContract>(stm)) contracts.push_back(contract);
    if (const CopyTile* copy = get_if<CopyTile>(stm)) copies[stm.pattern.front()] = copy;
    if (const Alloc* alloc = get_if<Alloc>(stm)) bytes[stm.pattern.front()] = alloc->bytes;
    if (const SegOp* inner = get_if<SegOp>(stm)) {
      // All threads do the same: it does not matter which of them has which element.
      const std::set<Value> free = free_values(*inner->body, table);
      for (const SegDim& dim : inner->space) fits = fits && !free.contains(dim.index);
      for (Value v : stm.pattern) fits = fits && table.type(v).memory && !free.contains(v);
    }
  });
  if (!fits || contracts.empty()) return nullptr;

  // The two sides.
  const std::vector<TileDim>& space = contracts[0]->space;
  const std::vector<TileExtent>& extents = op.results[0].extents;
  if (extents.size() != space.size()) return nullptr;
  std::int64_t threads = 1, registers = 1;
  std::vector<CoreSide> sides;
  for (std::size_t d = 0; d < space.size(); ++d) {
    const auto tile = unit_.fold(space[d].tile), reg = unit_.fold(space[d].reg);
    if (!tile || !reg || *tile < 1 || *reg < 1) return nullptr;
    threads *= *tile, registers *= *reg;
    if (*tile * *reg == 1) continue;
    CoreSide side;
    side.dim = d;
    side.extent = *tile * *reg;
    side.last_axis = static_cast<int>(d);
    if (!extents[d].split.empty()) side.last_axis = 0;
    for (const TileExtent::Part& part : extents[d].split) side.last_axis = std::max(side.last_axis, part.axis);
    sides.push_back(side);
  }
  if (sides.size() != 2 || threads % kWarp != 0) return nullptr;
  if (sides[1].last_axis < sides[0].last_axis) std::swap(sides[0], sides[1]);
  std::copy(sides.begin(), sides.end(), core->sides.begin());
  core->threads = threads;
  core->registers = registers;
  core->space_rank = space.size();
  core->inner_depth = contracts[0]->depth.size() - 1;

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
    if (contract->space.size() != space.size() || contract->depth.size() != core->inner_depth + 1) return nullptr;
    for (std::size_t d = 0; d < space.size(); ++d)
      if (contract->space[d].tile != space[d].tile || contract->space[d].reg != space[d].reg) return nullptr;
    for (const TileOperand& operand : contract->operands) {
      const auto copy = copies.find(operand.tile);
      if (copy == copies.end() || !add_core_tile(*core, op, *copy->second, operand)) return nullptr;
      widest = std::max(widest, byte_size(table.type(operand.tile).element));
      copies.erase(copy);
    }
  }
  if (!copies.empty()) return nullptr;  // a copy for something else
  const auto vector = std::clamp<std::int64_t>(16 / widest, 1, 4);
  if (!share(core->sides[0], core->sides[1], registers, vector)) return nullptr;
  core->stages = kDefaultStages;
  for (const Attribute& attribute : stm_.attributes)
    if (attribute.name == "stages" && attribute.arguments.size() == 1)
      core->stages = std::max(1, std::atoi(attribute.arguments[0].c_str()));
  return core;
}

// A copy into a tile of one side; copies into one block agree on where the rows lie.
bool Kernel::add_core_tile(Core& core, const SegOp& op, const CopyTile& copy, const TileOperand& operand) {
  const ValueTable& table = unit_.function.values;
  const Type& type = table.type(operand.tile);
  if (!type.memory || table.type(type.memory->block).space != Space::shared || !type.memory->layout.offset().is_zero())
    return false;
  if (type.element == ScalarType::unit || !table.type(copy.source).memory) return false;
  const std::size_t rank = op.space.size();
  CoreTile tile;
  tile.element = type.element;
  tile.axes = operand.axes;
  tile.side = 2;
  for (std::size_t k = 0; k < operand.axes.size(); ++k) {
    const auto d = static_cast<std::size_t>(operand.axes[k]);
    const TileGuard& guard = copy.guards[k];
    const auto size = unit_.fold(copy.window.dims()[k].size);
    const auto stride = unit_.fold(type.memory->layout.dims()[k].stride);
    if (!size || !stride) return false;
    if (d >= rank) {
      if (!guard.split.empty()) return false;
      if (d - rank == core.inner_depth) tile.by_depth = unit_.fold(copy.window.dims()[k].stride) == 1;
      continue;
    }
    // What is out of range in the space is dropped with the result.
    const TileExtent& extent = op.results[0].extents[d];
    if (guard.bound &&
        (*guard.bound != extent.bound || guard.start != Poly(op.space[d].index) * extent.tile * extent.reg))
      return false;
    for (std::size_t s = 0; s < 2; ++s) {
      if (core.sides[s].dim != d) continue;
      if (tile.side != 2 || *stride != 1 || *size != core.sides[s].extent) return false;
      tile.side = s;
      tile.row_axis = k;
    }
    if (d != core.sides[0].dim && d != core.sides[1].dim && (*size != 1 || !guard.split.empty())) return false;
    if (guard.split.empty()) continue;
    if (guard.split.size() != extent.split.size()) return false;
    for (std::size_t p = 0; p < guard.split.size(); ++p)
      if (guard.split[p].bound != extent.split[p].bound) return false;
  }
  if (tile.side == 2) return false;
  const TileGuard& rows = copy.guards[tile.row_axis];
  tile.stride = copy.window.dims()[tile.row_axis].stride;
  tile.split = rows.split;
  tile.swizzled = tile.by_depth && core.sides[tile.side].extent % kSwizzled == 0;
  const Poly& neighbour = tile.split.empty() ? tile.stride : tile.split.back().stride;
  tile.by_row = unit_.fold(neighbour) == 1;
  auto [known, added] = core.tiles.emplace(type.memory->block, tile);
  core.copied.emplace(operand.tile, type.memory->block);
  if (added) return true;
  const CoreTile& first = known->second;
  if (first.axes != tile.axes || first.stride != tile.stride || first.split.size() != tile.split.size()) return false;
  for (std::size_t p = 0; p < tile.split.size(); ++p)
    if (first.split[p].stride != tile.split[p].stride) return false;
  return first.by_depth == tile.by_depth;
}

// ---- before the body: who this thread is, where rows lie ------------------------------------------------------------

void Kernel::core_head(const SegOp& op, KernelBlock& out) {
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
        tile.rows = declare_table(name + "_rows", side.extent);
      }
    side.results = declare_table(s == 0 ? "result_rows" : "result_columns", side.extent);
  }
  for (std::size_t s = 0; s < 2; ++s) fill_core_tables(op, s, out);
  out.push_back(barrier());
  core.staging = shared_bytes_;
}

void Kernel::fill_core_tables(const SegOp& op, std::size_t s, KernelBlock& out) {
  Core& core = *core_;
  const CoreSide& side = core.sides[s];
  const TileExtent& extent = op.results[0].extents[side.dim];
  const Lmad& layout = unit_.function.type(stm_.pattern[0]).memory->layout;
  const std::string m = unit_.fresh("m"), at = unit_.fresh("at");
  KernelBlock inner;
  const ExprPtr start = values_.poly(Poly(op.space[side.dim].index) * extent.tile * extent.reg);
  inner.push_back(declare(kIndex, at, plus(start, variable(m))));
  const std::string inside = unit_.fresh("inside");
  inner.push_back(declare({ScalarType::boolean, false}, inside, infix("<", variable(at), values_.poly(extent.bound))));
  // One index for each dim that is flattened into the side.
  std::vector<ExprPtr> digits{variable(at)};
  std::vector<std::size_t> axes{side.dim};
  if (!extent.split.empty()) {
    std::vector<ExprPtr> sizes;
    std::vector<std::string> names;
    axes.clear();
    for (const TileExtent::Part& part : extent.split) {
      sizes.push_back(values_.poly(part.bound));
      names.push_back(unit_.fresh("i"));
      axes.push_back(static_cast<std::size_t>(part.axis));
    }
    digits = unflatten(at, sizes, names, kIndex, inner);
  }
  for (auto& [block, tile] : core.tiles) {
    if (tile.side != s) continue;
    ExprPtr position = mul(variable(m), values_.poly(tile.stride));
    if (!tile.split.empty()) {
      position = number_of(0);
      for (std::size_t p = 0; p < tile.split.size(); ++p)
        position = plus(position, mul(digits[p], values_.poly(tile.split[p].stride)));
    }
    inner.push_back(assign(kernel::element(tile.rows, variable(m)), select(variable(inside), position, number_of(0))));
  }
  // The slow side's table has what is the same for the whole block, too.
  ExprPtr position = number_of(0);
  for (std::size_t p = 0; p < axes.size(); ++p)
    position = plus(position, mul(digits[p], values_.poly(layout.dims()[axes[p]].stride)));
  if (s == 0) {
    Poly fixed = layout.offset();
    for (std::size_t d = 0; d < op.space.size(); ++d) {
      if (d == core.sides[0].dim || d == core.sides[1].dim) continue;
      const auto& split = op.results[0].extents[d].split;
      fixed +=
          Poly(op.space[d].index) * layout.dims()[split.empty() ? d : static_cast<std::size_t>(split[0].axis)].stride;
    }
    position = plus(values_.poly(fixed), position);
  }
  inner.push_back(
      assign(kernel::element(side.results, variable(m)), select(variable(inside), position, number_of(-1))));
  Stmt loop = for_loop(kInt, m, number_of(side.extent), std::move(inner));
  loop.from = variable(core.thread);
  loop.step = number_of(core.threads);
  out.push_back(std::move(loop));
}

// Whether positions made of these are multiples of `width` elements, as a condition on the sizes. What changes inside
// the kernel is left out of a product: the rest must divide.
ExprPtr Kernel::aligned(const std::vector<Poly>& positions, std::int64_t width) {
  std::vector<Poly> wanted;
  for (const Poly& position : positions) {
    const Poly known = position.substitute([&](Value v) -> std::optional<Poly> {
      if (auto number = unit_.tile(v)) return Poly(*number);
      return std::nullopt;
    });
    for (const Term& term : known.terms()) {
      if (term.coefficient % width == 0) continue;
      Poly rest = term.coefficient;
      for (const Factor& factor : term.factors) {
        bool known_outside = true;
        Poly(factor).for_each_symbol(
            [&](Value v) { known_outside = known_outside && (outside_.contains(v) || unit_.tile(v)); });
        if (known_outside) rest *= Poly(factor);
      }
      const bool implied =
          std::any_of(wanted.begin(), wanted.end(), [&](const Poly& p) { return rest.divide_exact(p).has_value(); });
      if (!implied) wanted.push_back(rest);
    }
  }
  ExprPtr all;
  for (const Poly& p : wanted) {
    const ExprPtr test = infix("==", infix("%", values_.poly(p), number_of(width)), number_of(0));
    all = all ? infix("&&", all, test) : test;
  }
  return all;
}

// ---- copies -------------------------------------------------------------------------------------------------------

ExprPtr Kernel::core_stage(Value block, const ExprPtr& stage) {
  return mul(stage, number_of(buffer(block, stm_.location).count / core_->stages));
}

void Kernel::core_copy(const CopyTile& op, Value copied, const ExprPtr& stage, KernelBlock& out) {
  Core& core = *core_;
  const ValueTable& values = unit_.function.values;
  const Value block = core.copied.at(copied);
  const CoreTile& tile = core.tiles.at(block);
  const CoreSide& side = core.sides[tile.side];
  const Lmad& layout = values.type(copied).memory->layout;
  const MemoryBinding& source = *values.type(op.source).memory;
  const std::string target = buffer(block, stm_.location).name, from = buffer(source.block, stm_.location).name;
  const auto bytes = static_cast<std::int64_t>(byte_size(tile.element));
  out.push_back(comment(fmt::format("tile of {}", values.name(op.source))));
  const std::string start = unit_.fresh("from");
  out.push_back(declare(kIndex, start, values_.poly(source.layout.offset() + op.window.offset())));

  // The depth: loops over the outer dims, the innermost shared out among threads.
  const std::size_t rank = core.space_rank;
  std::int64_t depth = 1;  // of the innermost dim
  struct Axis {
    std::size_t at;
    std::string name;
    std::int64_t size;
  };
  std::vector<Axis> outer;
  std::size_t inner_axis = tile.axes.size();
  for (std::size_t k = 0; k < tile.axes.size(); ++k) {
    const auto d = static_cast<std::size_t>(tile.axes[k]);
    if (d < rank) continue;
    const std::int64_t size = *unit_.fold(op.window.dims()[k].size);
    if (d - rank == core.inner_depth) {
      inner_axis = k;
      depth = size;
    } else {
      outer.push_back({k, size == 1 ? "" : unit_.fresh("q"), size});
    }
  }
  // `width` elements at row m and depth q.
  const auto element = [&](const ExprPtr& m, const ExprPtr& q, std::int64_t width) {
    ExprPtr to = core_stage(block, stage), position = plus(variable(start), kernel::element(tile.rows, m));
    ExprPtr inside;
    const auto along = [&](std::size_t k, const ExprPtr& i) {
      to = plus(to, mul(i, number_of(*unit_.fold(layout.dims()[k].stride))));
      position = plus(position, mul(i, values_.poly(op.window.dims()[k].stride)));
      const TileGuard& guard = op.guards[k];
      if (!guard.bound) return;
      const ExprPtr test = infix("<", plus(values_.poly(guard.start), i), values_.poly(*guard.bound));
      inside = inside ? infix("&&", inside, test) : test;
    };
    for (const Axis& axis : outer) along(axis.at, axis.size == 1 ? number_of(0) : variable(axis.name));
    if (inner_axis < tile.axes.size()) along(inner_axis, q);
    to = plus(to, tile.swizzled ? infix("^", m, call("apl_swizzle", {q})) : m);
    KernelBlock copy;
    if (width * bytes >= 4) {
      copy.push_back(
          do_call(fmt::format("apl_cp_async{}", width * bytes), {variable(target), to, variable(from), position}));
    } else {
      copy.push_back(assign(kernel::element(target, to), kernel::element(from, position)));
    }
    if (!inside) return copy;
    KernelBlock pads;
    for (std::int64_t e = 0; e < width; ++e)
      pads.push_back(assign(kernel::element(target, plus(to, number_of(e))), values_.operand(op.pad)));
    return KernelBlock{kernel::branch(inside, std::move(copy), std::move(pads))};
  };
  const ExprPtr thread = variable(core.thread);
  KernelBlock all;
  if (tile.by_depth) {
    // Eight threads along the depth, where memory is contiguous; the others beside them.
    const std::int64_t rows = core.threads / kUnrolled;
    const std::string m = unit_.fresh("m"), q = unit_.fresh("q"), i = unit_.fresh("i"), c = unit_.fresh("c");
    KernelBlock copy{
        declare(kInt, q, plus(infix("%", thread, number_of(kUnrolled)), mul(variable(c), number_of(kUnrolled))))};
    KernelBlock body = element(variable(m), variable(q), 1);
    if (depth % kUnrolled != 0) body = {kernel::branch(infix("<", variable(q), number_of(depth)), std::move(body))};
    append(copy, std::move(body));
    KernelBlock row{
        declare(kInt, m, plus(infix("/", thread, number_of(kUnrolled)), mul(variable(i), number_of(rows))))};
    row.push_back(unrolled(c, (depth + kUnrolled - 1) / kUnrolled, std::move(copy)));
    if (side.extent % rows != 0)
      row = {row[0], kernel::branch(infix("<", variable(m), number_of(side.extent)), {row[1]})};
    all.push_back(unrolled(i, (side.extent + rows - 1) / rows, std::move(row)));
  } else {
    // Neighbouring threads take neighbouring rows.
    const auto rows = [&](std::int64_t width) {
      const std::int64_t groups = side.extent / width, total = groups * depth;
      const std::string x = unit_.fresh("x"), e = unit_.fresh("e");
      KernelBlock body{declare(kInt, x, plus(thread, mul(variable(e), number_of(core.threads))))};
      KernelBlock copy = element(mul(infix("%", variable(x), number_of(groups)), number_of(width)),
                                 infix("/", variable(x), number_of(groups)), width);
      if (total % core.threads != 0)
        copy = {kernel::branch(infix("<", variable(x), number_of(total)), std::move(copy))};
      append(body, std::move(copy));
      return unrolled(e, (total + core.threads - 1) / core.threads, std::move(body));
    };
    const std::int64_t width = 16 / bytes;
    if (tile.by_row && width > 1 && side.extent % width == 0) {
      KernelBlock vectors{rows(width)}, singles{rows(1)};
      all.push_back(kernel::branch(core_alignment(op, tile, width), std::move(vectors), std::move(singles)));
    } else {
      all.push_back(rows(1));
    }
  }
  for (std::size_t k = outer.size(); k-- > 0;)
    if (outer[k].size > 1) {
      Stmt loop = for_loop(kInt, outer[k].name, number_of(outer[k].size), std::move(all));
      all.clear();
      all.push_back(std::move(loop));
    }
  append(out, std::move(all));
  copies_pending_ = true;
}

// Whether vectors of rows can be copied: a variable of the block, worked out once a tile.
ExprPtr Kernel::core_alignment(const CopyTile& op, const CoreTile& tile, std::int64_t width) {
  const MemoryBinding& source = *unit_.function.type(op.source).memory;
  // A vector lies inside the innermost dim, or beyond all.
  const TileGuard& rows = op.guards[tile.row_axis];
  std::vector<Poly> positions;
  if (!rows.split.empty()) {
    positions.push_back(rows.split.back().bound);
  } else if (rows.bound) {
    positions.push_back(*rows.bound);
  }
  positions.push_back(source.layout.offset());
  positions.push_back(op.window.offset());
  for (std::size_t k = 0; k < tile.axes.size(); ++k)
    if (k != tile.row_axis) positions.push_back(op.window.dims()[k].stride);
  for (std::size_t p = 0; p + 1 < tile.split.size(); ++p) positions.push_back(tile.split[p].stride);
  ExprPtr test = call("apl_aligned<16>", {variable(buffer(source.block, stm_.location).name)});
  if (const ExprPtr sizes = aligned(positions, width)) test = infix("&&", test, sizes);
  std::string& name = core_->alignments[kernel::print(test, unit_.dialect())];
  if (!name.empty()) return variable(name);
  name = unit_.fresh(unit_.function.values.name(op.source) + "_aligned");
  core_declarations_.push_back(declare({ScalarType::boolean, false}, name, test));
  return variable(name);
}

void Kernel::finish_copies(KernelBlock& out) {
  if (!copies_pending_) return;
  copies_pending_ = false;
  out.push_back(do_call("apl_cp_async_commit", {}));
  out.push_back(do_call("apl_cp_async_wait<0>", {}));
}

// ---- the contraction ------------------------------------------------------------------------------------------------

void Kernel::core_contract(const TileContract& op, const Stm& stm, const ExprPtr& stage, KernelBlock& out) {
  Core& core = *core_;
  const ValueTable& values = unit_.function.values;
  const std::size_t rank = op.space.size();
  std::vector<std::string> names;
  std::vector<ExprPtr> at;
  for (const Poly& depth : op.depth) {
    const bool one = unit_.fold(depth) == 1;
    names.push_back(one ? "" : unit_.fresh("q"));
    at.push_back(one ? number_of(0) : variable(names.back()));
  }
  // One step of the depth; `ahead` is added to the innermost index, and `period` is what the swizzle depends on.
  const auto step = [&](const ExprPtr& ahead, const ExprPtr& period) {
    KernelBlock body;
    std::vector<std::string> registers;
    for (const TileOperand& operand : op.operands) {
      const Value block = core.copied.at(operand.tile);
      const CoreTile& tile = core.tiles.at(block);
      const CoreSide& side = core.sides[tile.side];
      const Lmad& layout = values.type(operand.tile).memory->layout;
      ExprPtr position = core_stage(block, stage);
      for (std::size_t k = 0; k < operand.axes.size(); ++k) {
        const auto d = static_cast<std::size_t>(operand.axes[k]);
        if (d < rank) continue;
        const ExprPtr q = d - rank == core.inner_depth ? plus(at[d - rank], ahead) : at[d - rank];
        position = plus(position, mul(q, number_of(*unit_.fold(layout.dims()[k].stride))));
      }
      std::string base = values.name(operand.tile);
      registers.push_back(unit_.fresh(base.substr(0, base.find("_s")) + "_r"));
      body.push_back(declare_array({tile.element, false}, registers.back(), side.each));
      const std::int64_t group = side.lanes * side.vector;  // rows that a warp reads at once
      const auto load = [&](const ExprPtr& g) {
        const ExprPtr further = mul(g, number_of(group));
        ExprPtr row = plus(variable(side.first), further);
        if (tile.swizzled) {
          // Groups are powers of two, so that their bits can be swizzled apart from the thread's.
          const std::int64_t mask = (side.lanes * side.each - 1) & ~(group - 1) & (kSwizzled - 1);
          const ExprPtr swizzle = call("apl_swizzle", {period});
          const auto part = [&](std::int64_t bits) {
            return bits == kSwizzled - 1 ? swizzle : infix("&", swizzle, number_of(bits));
          };
          row = plus(infix("^", variable(side.first), part(kSwizzled - 1 - mask)),
                     mask == 0 ? further : infix("^", further, part(mask)));
        }
        return do_call(fmt::format("apl_load<{}>", side.vector),
                       {variable(buffer(block, stm.location).name), plus(position, row),
                        plus(variable(registers.back()), mul(g, number_of(side.vector)))});
      };
      if (side.each == side.vector) {
        body.push_back(load(number_of(0)));
      } else {
        const std::string g = unit_.fresh("g");
        body.push_back(unrolled(g, side.each / side.vector, {load(variable(g))}));
      }
    }
    // Columns outside, rows back and forth: neighbouring products share an operand.
    const std::int64_t rows = core.sides[0].each, columns = core.sides[1].each;
    const std::string n = unit_.fresh("n"), i = unit_.fresh("i"), m = unit_.fresh("m");
    KernelBlock inner{declare(
        kInt, m,
        select(infix("&", variable(n), number_of(1)), infix("-", number_of(rows - 1), variable(i)), variable(i)))};
    std::vector<ExprPtr> elements;
    for (std::size_t o = 0; o < op.operands.size(); ++o)
      elements.push_back(kernel::element(
          registers[o], variable(core.tiles.at(core.copied.at(op.operands[o].tile)).side == 0 ? m : n)));
    std::vector<ExprPtr> mapped = inline_lambda(op.map, elements, inner);
    std::vector<ExprPtr> accumulators;
    for (Value acc : op.accumulators)
      accumulators.push_back(kernel::element(buffer(values.type(acc).memory->block, stm.location).name,
                                             plus(mul(variable(m), number_of(columns)), variable(n))));
    std::vector<ExprPtr> arguments = accumulators;
    arguments.insert(arguments.end(), mapped.begin(), mapped.end());
    std::vector<ExprPtr> reduced = inline_lambda(op.reduce.op, arguments, inner);
    // All results first: one may be computed from another's old value.
    for (std::size_t k = 0; k < reduced.size() && reduced.size() > 1; ++k) {
      const std::string next = unit_.fresh("next");
      inner.push_back(declare({values.type(op.accumulators[k]).element, false}, next, reduced[k]));
      reduced[k] = variable(next);
    }
    for (std::size_t k = 0; k < reduced.size(); ++k) inner.push_back(assign(accumulators[k], reduced[k]));
    KernelBlock row;
    row.push_back(unrolled(i, rows, std::move(inner)));
    body.push_back(unrolled(n, columns, std::move(row)));
    return body;
  };

  KernelBlock all;
  const Poly& inner = op.depth.back();
  const auto constant = unit_.fold(inner);
  if (constant == 1) {
    all = step(number_of(0), number_of(0));
  } else {
    // Eight steps at once, as far as they go.
    const std::string& q = names.back();
    const CType type = constant ? kInt : kIndex;
    const std::string u = unit_.fresh("u");
    const ExprPtr bound = values_.poly(inner);
    if (!constant) all.push_back(declare(kInt, q, number_of(0), false));
    if (!constant || *constant >= kUnrolled) {
      Stmt fast = for_loop(type, q, bound, {});
      fast.body.push_back(unrolled(u, kUnrolled, step(variable(u), variable(u))));
      if (constant) {
        fast.value = number_of(*constant / kUnrolled * kUnrolled);
        fast.step = number_of(kUnrolled);
        all.push_back(std::move(fast));
      } else {
        Stmt loop;
        loop.kind = Stmt::Kind::while_loop;
        loop.value = infix("<=", plus(variable(q), number_of(kUnrolled)), bound);
        loop.body = std::move(fast.body);
        loop.body.push_back(assign(variable(q), plus(variable(q), number_of(kUnrolled))));
        all.push_back(std::move(loop));
      }
    }
    if (!constant) {
      Stmt rest;
      rest.kind = Stmt::Kind::while_loop;
      rest.value = infix("<", variable(q), bound);
      rest.body = step(number_of(0), variable(q));
      rest.body.push_back(assign(variable(q), plus(variable(q), number_of(1))));
      all.push_back(std::move(rest));
    } else if (*constant % kUnrolled != 0) {
      Stmt rest = for_loop(kInt, q, number_of(*constant), step(number_of(0), variable(q)));
      rest.from = number_of(*constant / kUnrolled * kUnrolled);
      all.push_back(std::move(rest));
    }
  }
  for (std::size_t e = op.depth.size() - 1; e-- > 0;)
    if (!names[e].empty()) {
      Stmt loop = for_loop(kIndex, names[e], values_.poly(op.depth[e]), std::move(all));
      all.clear();
      all.push_back(std::move(loop));
    }
  append(out, std::move(all));
}

// A loop of copies and a contraction: the copies run stages ahead.
bool Kernel::core_loop(const Loop& op, KernelBlock& out) {
  Core& core = *core_;
  if (core.stages < 2 || !op.index) return false;
  std::vector<std::pair<const CopyTile*, Value>> copies;
  const TileContract* contract = nullptr;
  const Stm* contracting = nullptr;
  for (const Stm& stm : op.body->stms) {
    if (contract != nullptr) return false;
    if (const CopyTile* copy = get_if<CopyTile>(stm)) {
      copies.emplace_back(copy, stm.pattern.front());
    } else if ((contract = get_if<TileContract>(stm)) != nullptr) {
      contracting = &stm;
    } else {
      return false;
    }
  }
  if (contract == nullptr) return false;
  const ValueTable& table = unit_.function.values;
  for (std::size_t k = 0; k < op.params.size(); ++k)
    if (!table.type(op.params[k]).memory ||
        *table.type(op.params[k]).memory != *table.type(op.body->results[k]).memory ||
        *table.type(op.params[k]).memory != *table.type(op.initial[k]).memory)
      return false;
  const std::string tiles = unit_.fresh("tiles"), stage = unit_.fresh("stage"), index = unit_.name(op.index);
  out.push_back(declare(kIndex, tiles, values_.poly(op.bound)));
  const auto copy_all = [&](const std::string& which, const ExprPtr& to) {
    KernelBlock made;
    values_.scalars[op.index] = variable(which);
    for (const auto& [copy, copied] : copies) core_copy(*copy, copied, to, made);
    values_.scalars.erase(op.index);
    return kernel::branch(infix("<", variable(which), variable(tiles)), std::move(made));
  };
  const std::string first = unit_.fresh("ahead");
  KernelBlock start{copy_all(first, variable(first)), do_call("apl_cp_async_commit", {})};
  out.push_back(unrolled(first, core.stages - 1, std::move(start)));
  out.push_back(declare(kInt, stage, number_of(0), false));
  KernelBlock body{do_call(fmt::format("apl_cp_async_wait<{}>", core.stages - 2), {}), barrier()};
  const std::string ahead = unit_.fresh("ahead"), free = unit_.fresh("free_stage");
  body.push_back(declare(kIndex, ahead, plus(variable(index), number_of(core.stages - 1))));
  body.push_back(declare(kInt, free,
                         select(infix("==", variable(stage), number_of(0)), number_of(core.stages - 1),
                                infix("-", variable(stage), number_of(1)))));
  body.push_back(copy_all(ahead, variable(free)));
  body.push_back(do_call("apl_cp_async_commit", {}));
  core_contract(*contract, *contracting, variable(stage), body);
  body.push_back(assign(variable(stage), select(infix("==", variable(stage), number_of(core.stages - 1)), number_of(0),
                                                plus(variable(stage), number_of(1)))));
  copies_pending_ = false;
  out.push_back(for_loop(kIndex, index, variable(tiles), std::move(body)));
  return true;
}

// ---- write-back -----------------------------------------------------------------------------------------------------

void Kernel::core_write(const SegOp& op, KernelBlock& out) {
  Core& core = *core_;
  const ValueTable& values = unit_.function.values;
  const CoreSide &slow = core.sides[0], &fast = core.sides[1];
  const Lmad& layout = values.type(stm_.pattern[0]).memory->layout;
  const TileExtent& extent = op.results[0].extents[fast.dim];
  const auto axis =
      static_cast<std::size_t>(extent.split.empty() ? static_cast<int>(fast.dim) : extent.split.back().axis);
  const bool contiguous = unit_.fold(layout.dims()[axis].stride) == 1;
  const auto row_of = [&](const ExprPtr& i) {
    const ExprPtr group = mul(infix("/", i, number_of(slow.vector)), number_of(slow.lanes * slow.vector));
    return plus(plus(variable(slow.first), group), infix("%", i, number_of(slow.vector)));
  };
  struct Result {
    std::string target, acc;
    ScalarType element;
  };
  std::vector<Result> results;
  for (std::size_t k = 0; k < op.results.size(); ++k) {
    const Type& type = values.type(stm_.pattern[k]);
    results.push_back({buffer(type.memory->block, stm_.location).name,
                       buffer(values.type(op.body->results[k].value()).memory->block, stm_.location).name,
                       type.element});
  }
  out.push_back(comment("write-back; what is out of range is dropped"));

  // Vectors, straight from registers.
  KernelBlock direct;
  const std::int64_t groups = fast.each / fast.vector;
  const std::string columns = unit_.fresh("columns"), g = unit_.fresh("g"), i = unit_.fresh("i"), z = unit_.fresh("z");
  direct.push_back(declare_array(kIndex, columns, groups));
  direct.push_back(unrolled(
      g, groups,
      {assign(kernel::element(columns, variable(g)),
              kernel::element(fast.results,
                              plus(variable(fast.first), mul(variable(g), number_of(fast.lanes * fast.vector)))))}));
  KernelBlock stores;
  for (const Result& result : results)
    stores.push_back(do_call(fmt::format("apl_store<{}>", fast.vector),
                             {variable(result.target), plus(variable(z), kernel::element(columns, variable(g))),
                              plus(plus(variable(result.acc), mul(variable(i), number_of(fast.each))),
                                   mul(variable(g), number_of(fast.vector)))}));
  const auto inside = [](const ExprPtr& a, const ExprPtr& b) {
    return infix("&&", infix(">=", a, number_of(0)), infix(">=", b, number_of(0)));
  };
  KernelBlock row{declare(kIndex, z, kernel::element(slow.results, row_of(variable(i))))};
  row.push_back(unrolled(
      g, groups, {kernel::branch(inside(variable(z), kernel::element(columns, variable(g))), std::move(stores))}));
  direct.push_back(unrolled(i, slow.each, std::move(row)));
  if (fast.vector == 1) {
    append(out, std::move(direct));
    return;
  }

  // By way of shared memory: a warp puts down one row of each of its slow lanes and picks up neighbours.
  KernelBlock staged;
  const std::int64_t width = fast.lanes * fast.each, per_warp = slow.lanes * width;
  const std::string wide = unit_.fresh("column"), part = unit_.fresh("c"), line = unit_.fresh("l");
  staged.push_back(declare_array(kIndex, columns, (width + kWarp - 1) / kWarp));
  const ExprPtr column = plus(variable(core.lane), mul(variable(part), number_of(kWarp)));
  const std::int64_t parts = (width + kWarp - 1) / kWarp;
  const auto beyond = [&](ExprPtr value) {
    return width % kWarp == 0 ? value : select(infix("<", column, number_of(width)), value, number_of(-1));
  };
  staged.push_back(unrolled(part, parts,
                            {assign(kernel::element(columns, variable(part)),
                                    beyond(kernel::element(fast.results, plus(variable(fast.warp_first), column))))}));
  const ExprPtr warp_at = mul(infix("/", variable(core.thread), number_of(kWarp)), number_of(per_warp));
  for (const Result& result : results) {
    Stmt shared;
    shared.kind = Stmt::Kind::shared;
    shared.name = unit_.fresh(result.target + "_s");
    shared.type = {result.element, false};
    shared.count = core.threads / kWarp * per_warp;
    shared.offset = core.staging;
    shared_bytes_ =
        std::max(shared_bytes_, core.staging + shared.count * static_cast<std::int64_t>(byte_size(result.element)));
    staged.push_back(shared);
    const std::string j = unit_.fresh("i"), h = unit_.fresh("g"), y = unit_.fresh("z");
    KernelBlock pass{barrier()};
    const ExprPtr mine =
        infix("/", infix("-", variable(slow.first), variable(slow.warp_first)), number_of(slow.vector));
    const ExprPtr put = plus(plus(warp_at, mul(mine, number_of(width))),
                             plus(infix("-", variable(fast.first), variable(fast.warp_first)),
                                  mul(variable(h), number_of(fast.lanes * fast.vector))));
    pass.push_back(unrolled(h, groups,
                            {do_call(fmt::format("apl_store<{}>", fast.vector),
                                     {variable(shared.name), put,
                                      plus(plus(variable(result.acc), mul(variable(j), number_of(fast.each))),
                                           mul(variable(h), number_of(fast.vector)))})}));
    pass.push_back(barrier());
    const ExprPtr their =
        plus(plus(variable(slow.warp_first),
                  plus(mul(infix("/", variable(j), number_of(slow.vector)), number_of(slow.lanes * slow.vector)),
                       infix("%", variable(j), number_of(slow.vector)))),
             mul(variable(line), number_of(slow.vector)));
    KernelBlock lines{declare(kIndex, y, kernel::element(slow.results, their))};
    const ExprPtr got =
        kernel::element(shared.name, plus(plus(warp_at, mul(variable(line), number_of(width))), column));
    lines.push_back(unrolled(
        part, parts,
        {kernel::branch(
            inside(variable(y), kernel::element(columns, variable(part))),
            {assign(kernel::element(result.target, plus(variable(y), kernel::element(columns, variable(part)))),
                    got)})}));
    pass.push_back(unrolled(line, slow.lanes, std::move(lines)));
    staged.push_back(unrolled(j, slow.each, std::move(pass)));
  }
  if (!contiguous) {
    append(out, std::move(staged));
    return;
  }
  // A vector lies inside the innermost dim, or beyond all.
  std::vector<Poly> positions{extent.split.empty() ? extent.bound : extent.split.back().bound, layout.offset()};
  for (std::size_t d = 0; d < layout.dims().size(); ++d)
    if (d != axis) positions.push_back(layout.dims()[d].stride);
  ExprPtr test;
  for (const Result& result : results) {
    const auto bytes = fast.vector * static_cast<std::int64_t>(byte_size(result.element));
    const ExprPtr base = call(fmt::format("apl_aligned<{}>", bytes), {variable(result.target)});
    test = test ? infix("&&", test, base) : base;
  }
  if (const ExprPtr sizes = aligned(positions, fast.vector)) test = infix("&&", test, sizes);
  out.push_back(kernel::branch(test, std::move(direct), std::move(staged)));
}

}  // namespace apl::lower
